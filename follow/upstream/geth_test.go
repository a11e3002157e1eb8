// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"glimpse/chain"
	"glimpse/follow/upstream"
	"glimpse/internal/chaingen"
)

// TestAgainstGeth reads a generated chain back from a real geth, over HTTP and
// over WebSocket: its blocks, raw and as JSON, its receipts, all changed state
// with and without proofs, and its traces, which must give the Diffs that
// executing the same blocks gives.
//
// GLIMPSE_GETH is the geth to ask; make e2e-geth builds one.
func TestAgainstGeth(t *testing.T) {
	geth := os.Getenv("GLIMPSE_GETH")
	if geth == "" {
		t.Skip("GLIMPSE_GETH is not set; make e2e-geth builds a geth and sets it")
	}
	for _, seed := range []uint64{1, 2} {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			w := newWorld(t, seed, 200, chaingen.Options{})
			http, ws := startGeth(t, geth, w)
			for _, url := range []string{http, ws} {
				t.Run(url[:strings.Index(url, ":")], func(t *testing.T) { readBack(t, w, url) })
			}
		})
	}
}

func readBack(t *testing.T, w *world, url string) {
	ctx := t.Context()
	p, err := upstream.Open(ctx, upstream.Options{URLs: []string{url}, Genesis: w.blocks[0].Hash(), ChainID: w.rules.ChainID()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	can := *p.Can()
	t.Logf("%+v", can)
	if !can.RawBlocks || !can.Receipts || !can.Proofs || !can.TraceByHash || !can.TraceByNumber || !can.RequireCanonical ||
		can.State != upstream.StateAll || can.Subscriptions != strings.HasPrefix(url, "ws") {
		t.Errorf("geth can do more than was found: %+v", can)
	}
	var traced, doubtful, slots int
	for n := 1; n < len(w.blocks); n++ {
		b, err := p.BlockByHash(ctx, w.blocks[n].Hash())
		if err != nil {
			t.Fatal(err)
		}
		checkReceipts(t, p, w, b)
		slots += checkState(t, p, w, n)
		trace, err := p.Trace(ctx, b)
		if err != nil {
			t.Fatal(err)
		}
		diff, err := upstream.TraceDiff(b, trace, w.states[n-1], upstream.TraceRules{Requests: true, After: w.states[n]})
		if errors.Is(err, upstream.ErrTrace) && b.Header.ParentBeaconRoot == nil {
			doubtful++ // before Cancun a trace does not tell rebirth from a reverted destruction
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := w.leadsTo(n, diff); err != nil {
			t.Errorf("block %d: %v\n%s", n, err, trace)
		}
		if !reflect.DeepEqual(diff, w.results[n].Diff) && b.Header.ParentBeaconRoot != nil {
			t.Errorf("block %d: got %+v, want %+v", n, diff, w.results[n].Diff)
		}
		traced++
	}
	t.Logf("%d traced blocks are equal, %d are doubtful, %d slots are equal", traced, doubtful, slots)
}

func checkReceipts(t *testing.T, p *upstream.Pool, w *world, b *upstream.Block) {
	t.Helper()
	receipts, err := p.Receipts(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range receipts {
		if want := w.results[b.Number].Receipts[i]; r.TxHash != want.TxHash || r.Status != want.Status || r.GasUsed != want.GasUsed {
			t.Errorf("block %d: got receipt %+v, want %+v", b.Number, r, want)
		}
	}
}

// checkState compares all that block n changed, asked for at once and proven.
func checkState(t *testing.T, p *upstream.Pool, w *world, n int) (slots int) {
	t.Helper()
	var q upstream.Query
	for _, a := range w.results[n].Diff.Accounts {
		q.Accounts = append(q.Accounts, a.Address)
		for _, s := range a.Slots {
			q.Slots = append(q.Slots, upstream.SlotKey{Address: a.Address, Slot: s.Slot})
		}
	}
	state, err := p.State(t.Context(), w.ref(n), q)
	if err != nil {
		t.Fatal(err)
	}
	for i, addr := range q.Accounts {
		want, _ := w.states[n].Account(addr)
		if state.Accounts[i].Account != want {
			t.Errorf("block %d: account %s = %+v, want %+v", n, addr, state.Accounts[i], want)
		}
		keys := slices.DeleteFunc(slices.Clone(q.Slots), func(k upstream.SlotKey) bool { return k.Address != addr })
		var of []chain.Slot
		for _, k := range keys {
			of = append(of, k.Slot)
		}
		proven, err := p.Proof(t.Context(), w.ref(n), w.blocks[n].Root(), addr, of)
		if err != nil {
			t.Fatal(err)
		}
		if proven.Account != want {
			t.Errorf("block %d: account %s is proven as %+v, want %+v", n, addr, proven.Account, want)
		}
		for j, slot := range of {
			if want, _ := w.states[n].Slot(addr, slot); proven.Slots[j] != want {
				t.Errorf("block %d: slot %s of %s is proven as %s, want %s", n, slot, addr, proven.Slots[j], want)
			}
		}
	}
	for i, k := range q.Slots {
		if want, _ := w.states[n].Slot(k.Address, k.Slot); state.Slots[i] != want {
			t.Errorf("block %d: slot %s of %s = %s, want %s", n, k.Slot, k.Address, state.Slots[i], want)
		}
	}
	return len(q.Slots)
}

var gethListens = regexp.MustCompile(`(HTTP server started|WebSocket enabled).*(?:endpoint=|url=ws://)([0-9.:]+)`)

func startGeth(t *testing.T, geth string, w *world) (http, ws string) {
	t.Helper()
	dir := t.TempDir()
	genesis, blocks := filepath.Join(dir, "genesis.json"), filepath.Join(dir, "chain.rlp")
	var data bytes.Buffer
	for _, b := range w.blocks[1:] {
		if err := b.EncodeRLP(&data); err != nil {
			t.Fatal(err)
		}
	}
	for path, content := range map[string][]byte{genesis: w.genesisText, blocks: data.Bytes()} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	common := []string{"--datadir", filepath.Join(dir, "geth"), "--gcmode", "archive", "--state.scheme", "hash"}
	for _, args := range [][]string{{"init", genesis}, {"import", blocks}} {
		if out, err := exec.CommandContext(t.Context(), geth, append(slices.Clone(common), args...)...).CombinedOutput(); err != nil {
			t.Fatalf("geth %v: %v\n%s", args, err, out)
		}
	}
	cmd := exec.Command(geth, append(common, "--networkid", fmt.Sprint(w.rules.ChainID()),
		"--syncmode", "full", "--nodiscover", "--maxpeers", "0", "--port", "0", "--ipcdisable", "--authrpc.port", "0",
		"--http", "--http.port", "0", "--http.api", "eth,debug,web3", "--ws", "--ws.port", "0", "--ws.api", "eth,debug,web3")...)
	return runGeth(t, cmd)
}

// runGeth starts a geth and returns where it listens once it does.
func runGeth(t *testing.T, cmd *exec.Cmd) (http, ws string) {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listening, done, log := make(chan [2]string, 2), make(chan struct{}), new(bytes.Buffer)
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			fmt.Fprintln(log, lines.Text())
			if m := gethListens.FindStringSubmatch(lines.Text()); m != nil {
				listening <- [2]string{m[1], m[2]}
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // if it is gone already, Wait tells
		<-done
		if err := cmd.Wait(); err != nil {
			t.Errorf("geth: %v\n%s", err, log)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for http == "" || ws == "" {
		select {
		case at := <-listening:
			if strings.HasPrefix(at[0], "HTTP") {
				http = "http://" + at[1]
			} else {
				ws = "ws://" + at[1]
			}
		case <-done:
			t.Fatalf("geth ended before it listened:\n%s", log)
		case <-ctx.Done():
			t.Fatal("geth does not listen after a minute")
		}
	}
	return http, ws
}
