// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"testing"

	"glimpse/archive"
	"glimpse/chain"
)

func FuzzAccount(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 0})
	f.Add(join("\xac\x02\x02\x12\x34", code.Hash))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := archive.DecodeAccount(data)
		if err != nil {
			return
		}
		if again := archive.AppendAccount(nil, &a); !bytes.Equal(again, data) {
			t.Errorf("account %x: got %x after decoding and encoding", data, again)
		}
	})
}

func FuzzSlotValue(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0})
	f.Add(bytes.Repeat([]byte{1}, 33))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := archive.DecodeSlotValue(data)
		if err != nil {
			return
		}
		if again := archive.AppendSlotValue(nil, v); !bytes.Equal(again, data) {
			t.Errorf("slot value %x: got %x after decoding and encoding", data, again)
		}
	})
}

func FuzzBlock(f *testing.F) {
	f.Add(join(chain.Hash{1}, chain.Hash{2}, "\x04headbody"))
	f.Add(join(chain.Hash{1}, chain.Hash{2}, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		again, err := archive.DecodeAndEncodeBlock(data)
		if err == nil && !bytes.Equal(again, data) {
			t.Errorf("block %x: got %x after decoding and encoding", data, again)
		}
	})
}

func FuzzJournal(f *testing.F) {
	f.Add([]byte{0, 1, 0, 0})
	f.Add(join("\x02", chain.Hash{1}, chain.Hash{2}, "\x02\x00\x00"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		again, err := archive.DecodeAndEncodeJournal(data)
		if err == nil && !bytes.Equal(again, data) {
			t.Errorf("journal %x: got %x after decoding and encoding", data, again)
		}
	})
}

func FuzzReceipts(f *testing.F) {
	f.Add([]byte{0})
	f.Add(join("\x01", chain.Hash{1}, "receipts"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		again, err := archive.DecodeAndEncodeReceipts(data)
		if err == nil && !bytes.Equal(again, data) {
			t.Errorf("receipts %x: got %x after decoding and encoding", data, again)
		}
	})
}

// What Pebble asks of a Comparer, over keys at the edges of every space.
func TestComparerKeepsItsContract(t *testing.T) {
	var top chain.Address
	var topSlot chain.Slot
	for i := range top {
		top[i] = 0xff
	}
	for i := range topSlot {
		topSlot[i] = 0xff
	}
	keys := [][]byte{
		join("a"), join("a", alice), join("a", alice, ^0), join("a", alice, ^5), join("a", bob, ^5), join("a", top, ^5),
		join("b", 1), join("c", code.Hash), join("h", code.Hash), join("j", 1), join("m", "head"),
		join("s"), join("s", alice), join("s", alice, slot1), join("s", alice, slot1, ^9), join("s", alice, slot1, ^8),
		join("s", alice, slot2, ^9), join("s", alice, topSlot, ^9), join("s", top, topSlot, ^9),
		join("t"), join("t", "\xff"), join("t", "long side key that is as long as the key of a slot is, and longer"),
		join("w", alice, ^9), join("w", top, ^9),
	}
	c := archive.Comparer()
	for _, a := range keys {
		stem := c.Split.Prefix(a)
		next := c.ImmediateSuccessor(nil, stem)
		if c.Compare(next, a) <= 0 || !bytes.Equal(c.Split.Prefix(next), next) {
			t.Errorf("successor of stem %x: got %x, want a stem above every version", stem, next)
		}
		for _, b := range keys {
			if c.Compare(a, b) < 0 {
				if c.Compare(stem, c.Split.Prefix(b)) > 0 {
					t.Errorf("stems of %x and %x: got another order than that of the keys", a, b)
				}
				if k := c.Separator(nil, a, b); c.Compare(a, k) > 0 || c.Compare(k, b) >= 0 {
					t.Errorf("separator of %x and %x: got %x", a, b, k)
				}
			}
			if c.Compare(stem, c.Split.Prefix(b)) < 0 && c.Compare(next, c.Split.Prefix(b)) > 0 {
				t.Errorf("successor of stem %x: got %x, but %x is between", stem, next, b)
			}
		}
	}
}
