// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"glimpse/chain"
)

// followedBlocks is how many blocks the tests follow: a few by default, as many
// as GLIMPSE_FOLLOW_BLOCKS says in the targets.
func followedBlocks(t *testing.T) uint64 {
	t.Helper()
	return uint64(number(t, "GLIMPSE_FOLLOW_BLOCKS", 20))
}

// startFollow starts a node that follows another.
func startFollow(t *testing.T, upstream string, args ...string) *server {
	t.Helper()
	return serve(t, append([]string{"follow", "--upstream", upstream, "--http.port", "0"}, args...)...)
}

// glimpse follows glimpse, with and without its feed.
func TestFollowDev(t *testing.T) {
	for _, feed := range []bool{true, false} {
		t.Run(fmt.Sprintf("feed=%v", feed), func(t *testing.T) {
			s := startDev(t, "--dev.block-time", "200ms", "--dev.flashblock-time", "20ms")
			source, args := s.url(), []string{"--datadir", t.TempDir()}
			if feed { // with heads as soon as they are there, so that blocks are taken as they were promised
				source, args = "ws://"+s.ws, append(args, "--feed", "ws://"+s.feed(t)+"/ws")
			}
			followLoad(t, s.url(), source, args...)
		})
	}
}

// A geth that makes its own blocks, followed by execution and by its tracer.
func TestFollowGeth(t *testing.T) {
	geth := os.Getenv("GLIMPSE_GETH")
	if geth == "" {
		t.Skip("GLIMPSE_GETH is not set; make e2e-follow builds a geth and sets it")
	}
	for _, engine := range []string{"execute", "trace"} {
		t.Run(engine, func(t *testing.T) {
			genesis := filepath.Join(t.TempDir(), "genesis.json")
			if err := os.WriteFile(genesis, []byte(mustRun(t, "genesis")), 0o600); err != nil {
				t.Fatal(err)
			}
			upstream := startGethDev(t, geth, genesis)
			followLoad(t, upstream, upstream, "--engine", engine, "--datadir", t.TempDir())
		})
	}
}

// An anvil, followed by execution and by its tracer.
func TestFollowAnvil(t *testing.T) {
	anvil := os.Getenv("GLIMPSE_ANVIL")
	if anvil == "" {
		t.Skip("GLIMPSE_ANVIL is not set; make e2e-follow installs an anvil and sets it")
	}
	for _, engine := range []string{"execute", "trace"} {
		t.Run(engine, func(t *testing.T) {
			upstream := startAnvil(t, anvil)
			followLoad(t, upstream, upstream, "--engine", engine, "--datadir", t.TempDir())
		})
	}
}

// followLoad follows a node while it is sent random transactions that change much
// storage, and then compares every slot and code that changed, at every block.
// The follower finds the node at source.
func followLoad(t *testing.T, upstream, source string, args ...string) {
	t.Helper()
	seed := rand.Uint64()
	t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
		l := newStorageLoad(t, seed, upstream)
		for range 5 { // what the follower does not see happen
			l.step(t)
		}
		eventually(t, "a first block", func() bool { return height(t, upstream) > 1 })
		f := startFollow(t, source, args...)
		first := height(t, f.url())
		last := first + followedBlocks(t)
		for n := first; n < last; {
			for range 1 + l.random.IntN(4) {
				l.step(t)
			}
			pause(t, time.Duration(l.random.IntN(100))*time.Millisecond)
			n = height(t, upstream)
		}
		eventually(t, "the follower to catch up", func() bool { return height(t, f.url()) >= last })
		compareFollowed(t, f.url(), upstream, first, last)
	})
}

// bundle puts slots together to be read by one call each, which a chain of thousands
// of blocks needs to be compared in minutes.
func bundle(slots map[chain.Address]map[chain.Slot]bool) (all []map[chain.Address][]chain.Slot) {
	const most = 1000
	size := most
	for addr, of := range slots {
		for slot := range of {
			if size == most {
				all, size = append(all, make(map[chain.Address][]chain.Slot)), 0
			}
			last := all[len(all)-1]
			last[addr] = append(last[addr], slot)
			size++
		}
	}
	return all
}

// compareFollowed compares all that the follower says changed, and all slots of
// the contracts, at every block. From an upstream of our own it also compares the
// blocks and receipts, byte by byte.
func compareFollowed(t *testing.T, follower, upstream string, first, last uint64) {
	t.Helper()
	c := comparison{glimpse: follower, geth: upstream}
	slots := make(map[chain.Address]map[chain.Slot]bool)
	coded := make(map[chain.Address]bool)
	touched := make(map[chain.Address]bool)
	for n := first + 1; n <= last; n++ {
		var diff struct {
			Accounts []struct {
				Address chain.Address
				Account *struct{ CodeHash *chain.Hash }
				Slots   []struct{ Slot chain.Slot }
			}
		}
		mustDecode(t, call(t, follower, "glimpse_getStateDiff", fmt.Sprintf("%#x", n)), &diff)
		for _, a := range diff.Accounts {
			touched[a.Address] = true
			coded[a.Address] = coded[a.Address] || a.Account != nil && a.Account.CodeHash != nil
			for _, s := range a.Slots {
				if slots[a.Address] == nil {
					slots[a.Address] = make(map[chain.Slot]bool)
				}
				slots[a.Address][s.Slot] = true
			}
		}
	}
	if len(slots) == 0 {
		t.Fatal("no slot changed")
	}
	ours := strings.HasPrefix(string(call(t, upstream, "web3_clientVersion")), `"glimpse/`)
	var bundles []map[chain.Address][]chain.Slot
	if ours {
		bundles = bundle(slots)
	}
	for n := first; n <= last; n++ {
		var calls []rpcCall
		add := func(method string, params ...any) {
			calls = append(calls, rpcCall{"2.0", len(calls), method, append(params, fmt.Sprintf("%#x", n))})
		}
		if ours && n > first {
			add("debug_getRawBlock")
			add("debug_getRawReceipts")
		}
		for _, b := range bundles {
			add("eth_getStorageValues", b)
		}
		for addr, of := range slots {
			for slot := range of {
				add("eth_getStorageAt", addr, slot)
				if ours {
					break // one of each; all are in the bundles
				}
			}
		}
		for addr := range touched {
			add("eth_getBalance", addr)
			add("eth_getTransactionCount", addr)
			if coded[addr] {
				add("eth_getCode", addr)
			}
		}
		for len(calls) > 0 {
			part := calls[:min(200, len(calls))]
			calls = calls[len(part):]
			if err := c.batch(t, part); err != nil {
				t.Fatalf("block %d: %v", n, err)
			}
		}
	}
	t.Logf("%d comparisons at blocks %d to %d, %d differences", c.compared.Load(), first, last, c.different.Load())
}
