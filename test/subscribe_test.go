// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"testing"
)

// A storageChange is a message of a storage subscription.
type storageChange struct {
	Address, Slot, Value string
	Tag, Level           string
	Block                string
	BlockHash, Index     *string
}

// A subscriber to a slot sees a write when it is promised and when it is sealed,
// and sees a promise that is not kept withdrawn.
func TestStorageSubscription(t *testing.T) {
	s := startDev(t, "--dev.block-time", "400ms", "--dev.flashblock-time", "40ms")
	w := newWallet(t, 0)
	cell := deployCell(t, s.url(), w)
	eventually(t, "the cell", func() bool { return slotAt(t, s.url(), cell, "latest") == 42 })
	call(t, s.url(), "dev_pauseSealing")

	socket := s.dial(t)
	id := socket.subscribe(t, "storage", map[string]any{"address": cell, "slots": []string{"0x0"}})
	// until returns the message that says value, after those that lead to it.
	until := func(tag, level string, value uint64) {
		t.Helper()
		for range 50 {
			var c storageChange
			socket.notification(t, id, &c)
			if c.Tag == tag && c.Level == level && slotValue(t, json.RawMessage(`"`+c.Value+`"`)) == value {
				return
			}
		}
		t.Fatalf("no message says that %d is %s on %s", value, level, tag)
	}
	until("latest", "sealed", 42)
	hash := send(t, s.url(), w.sign(t, &cell, word(7)))
	until("pending", "preconfirmed", 7)
	call(t, s.url(), "dev_revoke", hash)
	call(t, s.url(), "evm_mine")
	until("pending", "revoked", 42)
	w.nonce--
	send(t, s.url(), w.sign(t, &cell, word(8)))
	until("pending", "preconfirmed", 8)
	call(t, s.url(), "evm_mine")
	until("latest", "sealed", 8)
}

func TestHeadAndFlashblockSubscriptions(t *testing.T) {
	s := startDev(t, "--dev.block-time", "300ms", "--dev.flashblock-time", "30ms")
	heads, flashblocks := s.dial(t), s.dial(t)
	headID, flashblockID := heads.subscribe(t, "newHeads"), flashblocks.subscribe(t, "newFlashblocks")
	var last struct{ Number, Hash, ParentHash string }
	for i := range 3 {
		before := last.Hash
		heads.notification(t, headID, &last)
		if i > 0 && last.ParentHash != before {
			t.Errorf("block %s follows %s, but its parent is %s", last.Number, before, last.ParentHash)
		}
		var block struct{ Hash string }
		mustDecode(t, call(t, s.url(), "eth_getBlockByNumber", last.Number, false), &block)
		if block.Hash != last.Hash {
			t.Errorf("block %s is announced as %s and is %s", last.Number, last.Hash, block.Hash)
		}
	}
	indexes := make(map[string]bool)
	for len(indexes) < 4 {
		var b struct{ Number, Index string }
		flashblocks.notification(t, flashblockID, &b)
		indexes[b.Number+"."+b.Index] = true
	}
}

// Over HTTP there is nowhere to send notifications to.
func TestNoSubscriptionsOverHTTP(t *testing.T) {
	s := startDev(t)
	if got := errorCode(t, s.url(), "eth_subscribe", "newHeads"); got.Code != -32601 {
		t.Errorf("eth_subscribe over HTTP gives code %d, want -32601", got.Code)
	}
}
