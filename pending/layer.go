// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"bytes"
	"maps"
	"slices"

	"glimpse/chain"
)

// A layer is what one flashblock, or several that were folded, changed. It is
// searched as it is: a Diff is sorted, so a layer costs nothing to make.
type layer struct {
	diff  *chain.Diff
	first int // index in the layer's block of its first transaction

	// txs says which transaction of the layer's block has which hash.
	txs map[chain.Hash]int
}

// newLayer returns the layer with the transactions of a block from one to another.
func newLayer(diff *chain.Diff, hashes []chain.Hash, from, to int) *layer {
	l := &layer{diff: diff, first: from}
	if to > from {
		l.txs = make(map[chain.Hash]int, to-from)
		for i := from; i < to; i++ {
			l.txs[hashes[i]] = i
		}
	}
	return l
}

// size is what folding the layer costs, roughly.
func (l *layer) size() int {
	n := len(l.txs)
	for i := range l.diff.Accounts {
		n += 1 + len(l.diff.Accounts[i].Slots)
	}
	return n
}

// account returns what changed at an address, nil where nothing did.
func (l *layer) account(addr chain.Address) *chain.AccountDiff {
	accounts := l.diff.Accounts
	low, high := 0, len(accounts)
	for low < high {
		middle := int(uint(low+high) / 2)
		switch bytes.Compare(accounts[middle].Address[:], addr[:]) {
		case 0:
			return &accounts[middle]
		case -1:
			low = middle + 1
		default:
			high = middle
		}
	}
	return nil
}

// slot returns the value that a put into a slot. Cleared is a value, zero; a
// slot that a leaves as it was is not ok.
func slot(a *chain.AccountDiff, key chain.Slot) (value chain.Value, ok bool) {
	low, high := 0, len(a.Slots)
	for low < high {
		middle := int(uint(low+high) / 2)
		switch bytes.Compare(a.Slots[middle].Slot[:], key[:]) {
		case 0:
			return a.Slots[middle].Value, true
		case -1:
			low = middle + 1
		default:
			high = middle
		}
	}
	return chain.Value{}, a.Wiped // what was there before is void
}

// code returns the bytecode with a hash, if an account of the layer has it.
func (l *layer) code(hash chain.Hash) ([]byte, bool) {
	codes := l.diff.Codes
	low, high := 0, len(codes)
	for low < high {
		middle := int(uint(low+high) / 2)
		switch bytes.Compare(codes[middle].Hash[:], hash[:]) {
		case 0:
			return codes[middle].Bytes, true
		case -1:
			low = middle + 1
		default:
			high = middle
		}
	}
	return nil, false
}

// fold returns one layer that reads like the given ones, oldest first. It joins
// halves, so that no change is copied more often than there are halvings.
func fold(layers []*layer) *layer {
	if len(layers) == 1 {
		return layers[0]
	}
	older, newer := fold(layers[:len(layers)/2]), fold(layers[len(layers)/2:])
	txs := make(map[chain.Hash]int, len(older.txs)+len(newer.txs))
	maps.Copy(txs, older.txs)
	maps.Copy(txs, newer.txs)
	return &layer{diff: foldDiffs(older.diff, newer.diff), first: older.first, txs: txs}
}

func foldDiffs(older, newer *chain.Diff) *chain.Diff {
	return &chain.Diff{
		Accounts: merge(older.Accounts, newer.Accounts,
			func(a, b *chain.AccountDiff) int { return bytes.Compare(a.Address[:], b.Address[:]) }, foldAccounts),
		Codes: merge(older.Codes, newer.Codes,
			func(a, b *chain.Code) int { return bytes.Compare(a.Hash[:], b.Hash[:]) }, second),
	}
}

func foldAccounts(older, newer chain.AccountDiff) chain.AccountDiff {
	sum := newer
	if !newer.Changed {
		sum.Changed, sum.Account = older.Changed, older.Account
	}
	if newer.Wiped {
		return sum
	}
	sum.Wiped = older.Wiped
	sum.Slots = merge(older.Slots, newer.Slots,
		func(a, b *chain.SlotDiff) int { return bytes.Compare(a.Slot[:], b.Slot[:]) }, second)
	if sum.Wiped {
		// After a wipe a slot that is not listed is zero, and zeros are not listed.
		sum.Slots = slices.DeleteFunc(sum.Slots, func(s chain.SlotDiff) bool { return s.Value == chain.Value{} })
	}
	return sum
}

// merge joins two sorted lists; where both have an element, both decides. The
// result shares no memory with the lists.
func merge[T any](a, b []T, compare func(*T, *T) int, both func(T, T) T) []T {
	out := make([]T, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch c := compare(&a[0], &b[0]); {
		case c < 0:
			out, a = append(out, a[0]), a[1:]
		case c > 0:
			out, b = append(out, b[0]), b[1:]
		default:
			out, a, b = append(out, both(a[0], b[0])), a[1:], b[1:]
		}
	}
	return append(append(out, a...), b...)
}

func second[T any](_, newer T) T { return newer }
