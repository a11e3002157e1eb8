// SPDX-License-Identifier: Apache-2.0

package ethapi_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"glimpse/chain"
	"glimpse/ethapi"
)

// fakeDev writes down what it is told.
type fakeDev struct{ told []string }

func (d *fakeDev) tell(format string, args ...any) error {
	d.told = append(d.told, fmt.Sprintf(format, args...))
	return nil
}

func (d *fakeDev) Mine(context.Context) error           { return d.tell("mine") }
func (d *fakeDev) Pause(context.Context) error          { return d.tell("pause") }
func (d *fakeDev) Resume(context.Context) error         { return d.tell("resume") }
func (d *fakeDev) Reorg(_ context.Context, n int) error { return d.tell("reorg %d", n) }
func (d *fakeDev) Revoke(_ context.Context, h chain.Hash) error {
	if h == (chain.Hash{}) {
		return &ethapi.Refusal{Message: "transaction not found"}
	}
	return d.tell("revoke %x", h[31])
}

type fakeFeed struct{ *fakeDev }

func (f fakeFeed) Drop(_ context.Context, n int) error      { return f.tell("drop %d", n) }
func (f fakeFeed) Duplicate(_ context.Context, n int) error { return f.tell("duplicate %d", n) }
func (f fakeFeed) Reorder(_ context.Context, n int) error   { return f.tell("reorder %d", n) }
func (f fakeFeed) Delay(_ context.Context, n int, d time.Duration) error {
	return f.tell("delay %d by %v", n, d)
}
func (f fakeFeed) Stall(context.Context) error  { return f.tell("stall") }
func (f fakeFeed) Resume(context.Context) error { return f.tell("resume the feed") }

func TestMisbehaviour(t *testing.T) {
	tests := []struct{ method, params, told string }{
		{"evm_mine", `[]`, "mine"},
		{"dev_pauseSealing", `[]`, "pause"},
		{"dev_resumeSealing", `[]`, "resume"},
		{"dev_stallFeed", `[]`, "stall"},
		{"dev_resumeFeed", `[]`, "resume the feed"},
		{"dev_dropFlashblocks", `[]`, "drop 1"},
		{"dev_dropFlashblocks", `[3]`, "drop 3"},
		{"dev_duplicateFlashblocks", `["0x2"]`, "duplicate 2"},
		{"dev_reorderFlashblocks", `[4]`, "reorder 4"},
		{"dev_delayFlashblocks", `[2,500]`, "delay 2 by 500ms"},
		{"dev_delayFlashblocks", `[]`, "delay 1 by 1s"},
		{"dev_revoke", `["0x0000000000000000000000000000000000000000000000000000000000000007"]`, "revoke 7"},
		{"dev_reorg", `[5]`, "reorg 5"},
	}
	for _, tt := range tests {
		dev := new(fakeDev)
		with := func(c *ethapi.Config) { c.Dev, c.Feed = dev, fakeFeed{dev} }
		got, bad := callWith(t, new(fake), with, tt.method, tt.params)
		if bad != nil || got != "true" || len(dev.told) != 1 || dev.told[0] != tt.told {
			t.Errorf("%s%s answers %s, %v after %v, want true after %s", tt.method, tt.params, got, bad, dev.told, tt.told)
		}
	}
}

func TestMisbehaviourIsRefused(t *testing.T) {
	tests := []struct {
		method, params string
		code           int
	}{
		{"dev_reorg", `[-1]`, -32602},
		{"dev_reorg", `[1.5]`, -32602},
		{"dev_dropFlashblocks", `[1000001]`, -32602},
		{"dev_dropFlashblocks", `["one"]`, -32602},
		{"evm_mine", `[1]`, -32602},
		{"dev_revoke", `[]`, -32602},
		{"dev_revoke", `["0x0000000000000000000000000000000000000000000000000000000000000000"]`, -32000},
	}
	dev := new(fakeDev)
	with := func(c *ethapi.Config) { c.Dev, c.Feed = dev, fakeFeed{dev} }
	for _, tt := range tests {
		if got, bad := callWith(t, new(fake), with, tt.method, tt.params); bad == nil || bad.Code != tt.code {
			t.Errorf("%s%s answers %s, %v, want %d", tt.method, tt.params, got, bad, tt.code)
		}
	}
	if len(dev.told) > 0 {
		t.Errorf("it did %v", dev.told)
	}
}

// What belongs to an embedded chain does not exist on a node that only reads.
func TestDevMethodsDoNotExistElsewhere(t *testing.T) {
	for _, method := range []string{"evm_mine", "dev_reorg", "dev_stallFeed", "eth_sendRawTransaction", "eth_sendTransaction", "eth_accounts"} {
		if got, bad := call(t, new(fake), method, `[]`); bad == nil || bad.Code != -32601 {
			t.Errorf("%s answers %s, %v, want -32601", method, got, bad)
		}
	}
}
