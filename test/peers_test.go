// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"
)

// startPeer starts another node and returns what it says about where it listens,
// the first group of the pattern. It is stopped at the end of the test.
func startPeer(t *testing.T, listens *regexp.Regexp, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	endpoint, done, log := make(chan string, 1), make(chan struct{}), new(bytes.Buffer)
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			fmt.Fprintln(log, lines.Text())
			if m := listens.FindStringSubmatch(lines.Text()); m != nil {
				select {
				case endpoint <- m[1]:
				default: // it says it again
				}
			}
		}
	}()
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.Wait()
		in.Close()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // if it is gone already, Wait tells
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		<-done
	})
	select {
	case addr := <-endpoint:
		return addr
	case <-done:
		t.Fatalf("%s ended before it listened:\n%s", name, log)
	case <-time.After(time.Minute):
		t.Fatalf("%s does not listen after a minute", name)
	}
	return ""
}

// startGethDev starts a geth that makes a block whenever there is a transaction,
// from a genesis.
func startGethDev(t *testing.T, geth, genesis string) (url string) {
	t.Helper()
	common := []string{"--datadir", t.TempDir(), "--gcmode", "archive", "--state.scheme", "hash"}
	runGeth(t, geth, append(common, "init", genesis)...)
	return "http://" + startPeer(t, gethListens, geth, append(common, "--dev", "--port", "0", "--ipcdisable",
		"--http", "--http.port", "0", "--http.api", "eth,debug,net,web3")...)
}

var anvilListens = regexp.MustCompile(`Listening on (\S+)`)

// startAnvil starts an anvil that makes five blocks a second.
func startAnvil(t *testing.T, anvil string) (url string) {
	t.Helper()
	return "http://" + startPeer(t, anvilListens, anvil, "--port", "0", "--block-time", "0.2", "--hardfork", "prague",
		"--mnemonic", "test test test test test test test test test test test junk")
}
