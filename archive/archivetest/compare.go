// SPDX-License-Identifier: Apache-2.0

package archivetest

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"glimpse/archive"
	"glimpse/chain"
)

// Compare fails the test where r answers a question otherwise than m. It asks
// everything about a few random blocks.
func Compare(t testing.TB, rng *rand.Rand, w World, r *archive.Reader, m *Model) {
	t.Helper()
	c := comparison{t: t, rng: rng, World: w, r: r, m: m}
	c.heads()
	c.hashes()
	c.transactions()
	c.side()
	head := m.Head().Number
	blocks := []chain.Number{m.Oldest, head, head + 1, below(rng, head+1), below(rng, head+1)}
	if m.Oldest > 0 {
		blocks = append(blocks, m.Oldest-1)
	}
	for _, n := range blocks {
		c.block(n)
		c.state(n)
	}
	from := m.Oldest + below(rng, head-m.Oldest+1)
	c.histories(from, from+below(rng, head-from+1))
}

type comparison struct {
	t   testing.TB
	rng *rand.Rand
	World
	r *archive.Reader
	m *Model
}

// equal compares by value; nil and empty slices are equal.
func (c comparison) equal(what string, got, want any) {
	c.t.Helper()
	if g, w := reflect.ValueOf(got), reflect.ValueOf(want); g.Kind() == reflect.Slice && g.Len() == 0 && w.Len() == 0 {
		return
	}
	if !reflect.DeepEqual(got, want) {
		c.t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func (c comparison) no(what string, err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("%s: got error %v, want none", what, err)
	}
}

// miss expects an error with this reason and the model's range.
func (c comparison) miss(what string, err error, want chain.Reason) {
	c.t.Helper()
	var miss *chain.Miss
	if !errors.As(err, &miss) {
		c.t.Fatalf("%s: got error %v, want a miss: %s", what, err, want)
	}
	c.equal(what, *miss, chain.Miss{Reason: want, Oldest: c.m.Oldest, Latest: c.m.Head().Number})
}

func (c comparison) unknown(what string, err error) {
	c.t.Helper()
	if !errors.Is(err, chain.ErrUnknown) {
		c.t.Fatalf("%s: got error %v, want ErrUnknown", what, err)
	}
}

func (c comparison) heads() {
	c.t.Helper()
	first, sparse := c.r.First()
	c.equal("first", first, c.m.First)
	c.equal("sparse", sparse, c.m.Sparse)
	c.equal("head", c.r.Head(), c.m.Head())
	c.equal("oldest", c.r.Oldest(), c.m.Oldest)
	c.equal("identity", c.r.Identity(), c.m.Identity)
	c.equal("safe", optional(c.r.Safe()), c.m.Safe)
	c.equal("finalized", optional(c.r.Finalized()), c.m.Finalized)
}

func optional(ref chain.Ref, ok bool) *chain.Ref {
	if !ok {
		return nil
	}
	return &ref
}

func (c comparison) hashes() {
	c.t.Helper()
	for h, want := range c.m.Hashes {
		n, canonical, err := c.r.Number(h)
		c.no("number of a hash", err)
		c.equal("number of a hash", n, want)
		c.equal("canonical", canonical, int(n) < len(c.m.Blocks) && c.m.Blocks[n].Hash == h)
	}
	_, _, err := c.r.Number(chain.Hash{1})
	c.miss("unknown hash", err, chain.UnknownHash)
}

func (c comparison) transactions() {
	c.t.Helper()
	for _, h := range append(c.Transactions, chain.Hash{1}) {
		n, index, ok, err := c.r.Transaction(h)
		c.no("transaction", err)
		wantN, wantIndex, mined := c.m.Place(h)
		if n != wantN || index != wantIndex || ok != mined {
			c.t.Fatalf("transaction %s: got %d of %d, %v, want %d of %d, %v", h, index, n, ok, wantIndex, wantN, mined)
		}
	}
}

func (c comparison) side() {
	c.t.Helper()
	for _, key := range c.SideKeys {
		got, ok, err := c.r.Side([]byte(key))
		c.no("side data", err)
		want, exists := c.m.Side[key]
		if ok != exists || !bytes.Equal(got, want) {
			c.t.Fatalf("side data %q: got %x, %v, want %x, %v", key, got, ok, want, exists)
		}
	}
}

// block compares what is stored of a block beside its state.
func (c comparison) block(n chain.Number) {
	c.t.Helper()
	hash, errHash := c.r.Hash(n)
	header, errHeader := c.r.Header(n)
	body, errBody := c.r.Body(n)
	receipts, errReceipts := c.r.Receipts(n)
	diff, errDiff := c.r.Diff(n)
	_, reason := c.m.At(n)
	if reason == chain.Future || n < c.m.First {
		c.miss("hash", errHash, reason)
		c.miss("header", errHeader, reason)
		c.miss("body", errBody, reason)
		c.miss("receipts", errReceipts, reason)
		c.miss("diff", errDiff, reason)
		return
	}
	c.no("block", errors.Join(errHash, errHeader, errBody, errReceipts))
	want := c.m.Blocks[n]
	c.equal("hash", hash, want.Hash)
	c.equal("header", string(header), string(want.Header))
	c.equal("body", string(body), string(want.Body))
	c.equal("receipts", string(receipts), string(want.Receipts))
	if reason != "" {
		c.miss("diff", errDiff, reason)
		return
	}
	if c.m.Sparse && n == c.m.First {
		c.unknown("diff of the first block", errDiff)
		return
	}
	c.no("diff", errDiff)
	c.equal("diff", chain.AppendDiff(nil, diff), chain.AppendDiff(nil, want.Diff))
}

func (c comparison) state(n chain.Number) {
	c.t.Helper()
	v, err := c.r.At(n)
	state, reason := c.m.At(n)
	if reason != "" {
		c.miss("state", err, reason)
		_, _, err = c.r.Slots(c.Addresses[0], n, nil, 1)
		c.miss("slots", err, reason)
		_, _, err = c.r.Accounts(n, nil, 1)
		c.miss("accounts", err, reason)
		return
	}
	c.no("state", err)
	for _, a := range c.Addresses {
		c.account(v, a, state)
		for _, s := range c.Slots {
			c.slot(v, SlotKey{a, s}, state)
		}
		c.slotList(a, n, state)
	}
	c.accountList(n, state)
}

func (c comparison) account(v archive.View, a chain.Address, state State) {
	c.t.Helper()
	account, err := v.Account(a)
	if !c.m.KnowsAccount(a, v.Number()) {
		c.unknown("account", err)
		until, err := v.AccountHeldUntil(a)
		c.no("account held until", err)
		c.equal("account held until", until, c.m.HeldUntil(accountChange(a)))
		return
	}
	c.no("account", err)
	c.equal("account", account, state.Accounts[a])
	code, err := v.Code(account.CodeHash)
	c.no("code", err)
	c.equal("code", code, c.Code(account.CodeHash))
}

func (c comparison) slot(v archive.View, k SlotKey, state State) {
	c.t.Helper()
	got, err := v.Slot(k.Address, k.Slot)
	if !c.m.KnowsSlot(k, v.Number()) {
		c.unknown("slot", err)
		until, err := v.SlotHeldUntil(k.Address, k.Slot)
		c.no("slot held until", err)
		c.equal("slot held until", until, c.m.HeldUntil(slotChange(k)))
		return
	}
	c.no("slot", err)
	if want := state.Slots[k]; got != want {
		c.t.Fatalf("slot %s of %s at %d: got %s, want %s", k.Slot, k.Address, v.Number(), got, want)
	}
}

// slotList reads the listing page by page.
func (c comparison) slotList(a chain.Address, n chain.Number, state State) {
	c.t.Helper()
	if !c.m.KnowsAllSlots(a, n) {
		_, _, err := c.r.Slots(a, n, nil, 1)
		c.unknown("slots", err)
		return
	}
	var all []chain.SlotDiff
	var after *chain.Slot
	for more := true; more; {
		var page []chain.SlotDiff
		var err error
		page, more, err = c.r.Slots(a, n, after, 1+c.rng.IntN(3))
		c.no("slots", err)
		if all = append(all, page...); more {
			after = &page[len(page)-1].Slot
		}
	}
	c.equal("slots", all, state.SlotsOf(a))
}

func (c comparison) accountList(n chain.Number, state State) {
	c.t.Helper()
	if c.m.Sparse {
		_, _, err := c.r.Accounts(n, nil, 1)
		c.unknown("accounts", err)
		return
	}
	var all []archive.AccountEntry
	var after *chain.Address
	for more := true; more; {
		var page []archive.AccountEntry
		var err error
		page, more, err = c.r.Accounts(n, after, 1+c.rng.IntN(3))
		c.no("accounts", err)
		if all = append(all, page...); more {
			after = &page[len(page)-1].Address
		}
	}
	c.equal("accounts", all, state.AccountList())
}

func (c comparison) histories(from, to chain.Number) {
	c.t.Helper()
	a := c.Addresses[c.rng.IntN(len(c.Addresses))]
	for _, s := range c.Slots {
		if !c.m.KnowsSlot(SlotKey{a, s}, from) {
			_, _, err := c.r.SlotHistory(a, s, from, to, 1)
			c.unknown("slot history", err)
			continue
		}
		var all []chain.SlotVersion
		for begin, more := from, true; more; begin = all[len(all)-1].Block {
			var page []chain.SlotVersion
			var err error
			page, more, err = c.r.SlotHistory(a, s, begin, to, 2+c.rng.IntN(3))
			c.no("slot history", err)
			all = append(all[:max(0, len(all)-1)], page...)
		}
		c.equal("slot history", all, c.m.SlotHistory(SlotKey{a, s}, from, to))
	}
	codes, _, err := c.r.CodeHistory(a, from, to, int(to-from)+1)
	if c.m.KnowsAccount(a, from) {
		c.no("code history", err)
		c.equal("code history", codes, c.m.CodeHistory(a, from, to))
	} else {
		c.unknown("code history", err)
	}
	_, _, err = c.r.SlotHistory(a, c.Slots[0], from, c.m.Head().Number+1, 1)
	c.miss("slot history past the head", err, chain.Future)
}

// Matches reports whether r is at the same point of the same history as m, by
// its markers alone. It tells which write a crash left as the last.
func Matches(t testing.TB, w World, r *archive.Reader, m *Model) bool {
	t.Helper()
	if r.Head() != m.Head() || r.Oldest() != m.Oldest ||
		!reflect.DeepEqual(optional(r.Safe()), m.Safe) || !reflect.DeepEqual(optional(r.Finalized()), m.Finalized) {
		return false
	}
	for h := range m.Hashes {
		if _, _, err := r.Number(h); err != nil {
			return false
		}
	}
	if m.Sparse && !matchesOrigin(w, r, m) {
		return false
	}
	return !slices.ContainsFunc(w.SideKeys, func(key string) bool {
		got, ok, err := r.Side([]byte(key))
		want, exists := m.Side[key]
		return err != nil || ok != exists || !bytes.Equal(got, want)
	})
}

// matchesOrigin reports whether the archive was told of the first block what m
// says.
func matchesOrigin(w World, r *archive.Reader, m *Model) bool {
	for _, a := range w.Addresses {
		if _, err := r.OriginAccount(a); (err == nil) != m.Known.Accounts[a] {
			return false
		}
		for _, s := range w.Slots {
			if _, err := r.OriginSlot(a, s); (err == nil) != m.Known.Slots[SlotKey{a, s}] {
				return false
			}
		}
	}
	return true
}

func below(rng *rand.Rand, n chain.Number) chain.Number {
	return chain.Number(rng.Uint64N(uint64(n)))
}
