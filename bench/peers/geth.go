// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"glimpse/bench/workload"
)

var (
	gethListens  = map[string]*regexp.Regexp{"rpc": regexp.MustCompile(`HTTP server started +endpoint=(\S+) auth=false`)}
	gethImported = regexp.MustCompile(`Import done in (\S+)\.\n`)
)

// gethArgs are those of an archive with the path scheme: all state history, and
// an index of it.
func gethArgs(store string, more ...string) []string {
	return append([]string{"--datadir", store, "--gcmode", "archive", "--state.scheme", "path", "--history.state", "0"}, more...)
}

// importGeth takes the time that geth says, which is without opening the store
// and without compacting it in the end.
func (c *config) importGeth(ctx context.Context, chain, store string) (importResult, error) {
	return once(store, func() (r importResult, err error) {
		dir := filepath.Dir(store)
		if _, _, _, err = toEnd(ctx, dir, c.geth, gethArgs(store, "init", workload.Genesis(chain))...); err != nil {
			return r, err
		}
		var out []byte
		if out, _, r.CPU, err = toEnd(ctx, dir, c.geth, gethArgs(store, "import", workload.Blocks(chain))...); err != nil {
			return r, err
		}
		m := gethImported.FindSubmatch(out)
		if m == nil {
			return r, errors.New("geth does not say how long its import took")
		}
		if r.Elapsed, err = time.ParseDuration(string(m[1])); err != nil {
			return r, fmt.Errorf("time of geth's import: %w", err)
		}
		return r, nil
	})
}

// gethInMemory is how many of the newest states geth keeps beside its history.
const gethInMemory = 128

// serveGeth starts a geth with so many blocks.
func (c *config) serveGeth(ctx context.Context, store string, blocks int) (*peer, error) {
	args := gethArgs(store, "--networkid", "7771", "--syncmode", "full", "--nodiscover", "--maxpeers", "0", "--port", "0",
		"--ipcdisable", "--authrpc.port", "0", "--http", "--http.port", "0", "--http.api", "eth")
	server, err := start(ctx, command{
		name: gethName, program: c.geth, args: args, logs: filepath.Dir(store), cores: c.serverCores(), awaited: gethListens,
	})
	if err != nil {
		return nil, err
	}
	p := &peer{name: gethName, addr: strings.TrimPrefix(server.said["rpc"], "http://"), server: server}
	if blocks <= gethInMemory {
		return p, nil // there is no history, and geth would wait for some to index
	}
	if err := awaitIndex(ctx, p.addr); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

const indexTimeout = 10 * time.Minute

var errNotIndexed = errors.New("geth does not finish the index of its state history")

// awaitIndex returns once geth says that it has nothing more to do, indexes of
// old state included.
func awaitIndex(ctx context.Context, addr string) error {
	for deadline := time.Now().Add(indexTimeout); time.Now().Before(deadline); {
		syncing, err := call[json.RawMessage](ctx, addr, "eth_syncing")
		if err != nil {
			return err
		}
		if string(syncing) == "false" {
			return nil
		}
		if err := wait(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	return errNotIndexed
}
