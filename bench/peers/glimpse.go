// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"glimpse/bench/workload"
)

// The lines that glimpse says where it listens with.
var glimpseListens = map[string]*regexp.Regexp{
	"rpc": regexp.MustCompile(`msg="json-rpc listening" addr=(\S+)`),
	"ops": regexp.MustCompile(`msg="operations listening" addr=(\S+)`),
}

// glimpseStore is the datadir below the directory of a store, where glimpse is
// started: a store that is opened under another name than before is refused, and
// so a copy of it can have the same.
const glimpseStore = "store"

func (c *config) importGlimpse(ctx context.Context, chain, store string) (importResult, error) {
	return once(store, func() (r importResult, err error) {
		_, r.Elapsed, r.CPU, err = toEnd(ctx, store, c.glimpse,
			"import", "--datadir", glimpseStore, "--genesis", workload.Genesis(chain), workload.Blocks(chain))
		return r, err
	})
}

func (c *config) startGlimpse(ctx context.Context, name, store string, args ...string) (*peer, error) {
	p, err := start(ctx, command{
		name: name, program: c.glimpse, workdir: store, logs: filepath.Dir(store), cores: c.serverCores(), awaited: glimpseListens,
		args: append(args, "--datadir", glimpseStore, "--http.port", "0", "--ws.port", "0", "--ops.port", "0"),
	})
	if err != nil {
		return nil, err
	}
	return &peer{name: glimpseName, addr: p.said["rpc"], server: p}, nil
}

func (c *config) serveGlimpse(ctx context.Context, store string) (*peer, error) {
	return c.startGlimpse(ctx, glimpseName, store, "serve", "--ops.pprof")
}

// serveLiveGlimpse starts a chain that goes on from a copy of a store, with a
// flashblock every 200 ms.
func (c *config) serveLiveGlimpse(ctx context.Context, chain, store string) (*peer, error) {
	copied := store + "-live"
	if err := os.RemoveAll(copied); err != nil {
		return nil, err
	}
	if err := os.CopyFS(copied, os.DirFS(store)); err != nil {
		return nil, err
	}
	live, err := c.startGlimpse(ctx, glimpseName+"-live", copied, "dev", "--genesis", workload.Genesis(chain), "--dev.feed-port", "0")
	if err != nil {
		return nil, err
	}
	live.ready = func(ctx context.Context) error { return awaitPending(ctx, live.addr) }
	return live, nil
}

// startFeed has transactions sent to a live glimpse from now on.
func (c *config) startFeed(ctx context.Context, live *peer, chain string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	live.helper, err = start(ctx, command{
		name: "feed", program: self, logs: filepath.Dir(chain),
		args: []string{feedCommand, "-chain", chain, "-addr", live.addr, "-size", strconv.Itoa(c.feedSize)},
	})
	return err
}

const pendingTimeout = 30 * time.Second

var errNotLive = errors.New("nothing is pre-confirmed on the live chain")

// awaitPending returns once something is pre-confirmed.
func awaitPending(ctx context.Context, addr string) error {
	type block struct{ Number hexutil.Uint64 }
	for deadline := time.Now().Add(pendingTimeout); time.Now().Before(deadline); {
		latest, err := call[block](ctx, addr, "eth_getBlockByNumber", "latest", false)
		if err != nil {
			return err
		}
		pending, err := call[block](ctx, addr, "eth_getBlockByNumber", "pending", false)
		if err != nil {
			return err
		}
		if pending.Number > latest.Number {
			return nil
		}
		if err := wait(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return errNotLive
}
