// SPDX-License-Identifier: Apache-2.0

package archivetest

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"glimpse/archive"
	"glimpse/chain"
)

// A Model is an archive that keeps the whole state of every block in maps. It
// expects to be used rightly and checks nothing.
type Model struct {
	Identity        archive.Identity
	Blocks          []ModelBlock // by number
	Oldest          chain.Number
	Safe, Finalized *chain.Ref
	Side            map[string][]byte
	Hashes          map[chain.Hash]chain.Number // of every block there ever was
	Codes           map[chain.Hash][]byte       // of the blocks there are

	// Sparse says that the archive begins with block First and was told of
	// its state only what is Known.
	Sparse bool
	First  chain.Number
	Known  Known
}

// Place returns where a transaction is; ok is false where no block has it.
func (m *Model) Place(h chain.Hash) (n chain.Number, index int, ok bool) {
	for _, b := range m.Blocks {
		if i := slices.Index(b.Transactions, h); i >= 0 {
			return b.Number, i, true
		}
	}
	return 0, 0, false
}

// A ModelBlock is a block with the state after it.
type ModelBlock struct {
	archive.Block
	State State
}

// A State is all accounts that exist and all slots that are not zero.
type State struct {
	Accounts map[chain.Address]chain.Account
	Slots    map[SlotKey]chain.Value
}

// A SlotKey is a slot of an account.
type SlotKey struct {
	Address chain.Address
	Slot    chain.Slot
}

// NewModel returns a Model of a chain that has only its genesis block.
func NewModel(id archive.Identity, genesis archive.Block) *Model {
	m := &Model{
		Identity: id,
		Side:     make(map[string][]byte),
		Hashes:   make(map[chain.Hash]chain.Number),
		Codes:    make(map[chain.Hash][]byte),
	}
	m.Commit(genesis)
	return m
}

// Clone returns a copy that later changes of m do not reach.
func (m *Model) Clone() *Model {
	c := *m
	c.Blocks = slices.Clone(m.Blocks)
	c.Side = maps.Clone(m.Side)
	c.Hashes = maps.Clone(m.Hashes)
	c.Codes = maps.Clone(m.Codes)
	c.Known = m.Known.clone()
	return &c
}

// Head returns the newest block.
func (m *Model) Head() chain.Ref { return m.Blocks[len(m.Blocks)-1].Ref }

// At returns the state of block n, or the reason why there is none.
func (m *Model) At(n chain.Number) (State, chain.Reason) {
	switch {
	case n > m.Head().Number:
		return State{}, chain.Future
	case n < m.Oldest:
		return State{}, chain.Pruned
	}
	return m.Blocks[n].State, ""
}

// Commit adds a block.
func (m *Model) Commit(b archive.Block) {
	state := State{make(map[chain.Address]chain.Account), make(map[SlotKey]chain.Value)}
	if len(m.Blocks) > 0 {
		last := m.Blocks[len(m.Blocks)-1].State
		state = State{maps.Clone(last.Accounts), maps.Clone(last.Slots)}
	}
	for _, a := range b.Diff.Accounts {
		state.apply(a)
	}
	m.addCodes(b.Diff)
	m.Hashes[b.Hash] = b.Number
	m.Blocks = append(m.Blocks, ModelBlock{b, state})
	m.WriteSide(b.Side)
}

func (m *Model) addCodes(d *chain.Diff) {
	for _, c := range d.Codes {
		m.Codes[c.Hash] = c.Bytes
	}
}

func (s State) apply(a chain.AccountDiff) {
	if a.Changed {
		s.Accounts[a.Address] = a.Account
		if !a.Account.Exists {
			delete(s.Accounts, a.Address)
		}
	}
	if a.Wiped {
		maps.DeleteFunc(s.Slots, func(k SlotKey, _ chain.Value) bool { return k.Address == a.Address })
	}
	for _, slot := range a.Slots {
		key := SlotKey{a.Address, slot.Slot}
		if s.Slots[key] = slot.Value; slot.Value == (chain.Value{}) {
			delete(s.Slots, key)
		}
	}
}

// Unwind takes the blocks above to away.
func (m *Model) Unwind(to chain.Number, side []archive.SideWrite) {
	m.Blocks = slices.Clone(m.Blocks[:to+1])
	m.collectCodes()
	for _, tag := range []**chain.Ref{&m.Safe, &m.Finalized} {
		if *tag != nil && (*tag).Number > to {
			*tag = nil
		}
	}
	m.WriteSide(side)
}

// Prune forgets the state before oldest.
func (m *Model) Prune(oldest chain.Number) { m.Oldest = max(m.Oldest, oldest) }

// WriteSide changes side data.
func (m *Model) WriteSide(side []archive.SideWrite) {
	for _, w := range side {
		switch {
		case w.Prefix:
			maps.DeleteFunc(m.Side, func(k string, _ []byte) bool { return strings.HasPrefix(k, string(w.Key)) })
		case w.Value == nil:
			delete(m.Side, string(w.Key))
		default:
			m.Side[string(w.Key)] = bytes.Clone(w.Value)
		}
	}
}

// SlotHistory returns what archive.Reader.SlotHistory does without a limit.
func (m *Model) SlotHistory(key SlotKey, from, to chain.Number) (versions []chain.SlotVersion) {
	for n := from; n <= to; n++ {
		v := m.Blocks[n].State.Slots[key]
		if n == from || v != versions[len(versions)-1].Value {
			versions = append(versions, chain.SlotVersion{Block: n, Value: v})
		}
	}
	return versions
}

// CodeHistory returns what archive.Reader.CodeHistory does without a limit.
func (m *Model) CodeHistory(a chain.Address, from, to chain.Number) (versions []chain.CodeVersion) {
	for n := from; n <= to; n++ {
		h := m.Blocks[n].State.Accounts[a].CodeHash
		if n == from || h != versions[len(versions)-1].Hash {
			versions = append(versions, chain.CodeVersion{Block: n, Hash: h})
		}
	}
	return versions
}

// SlotsOf returns the non-zero slots of an account, in order.
func (s State) SlotsOf(a chain.Address) (slots []chain.SlotDiff) {
	for key, v := range s.Slots {
		if key.Address == a {
			slots = append(slots, chain.SlotDiff{Slot: key.Slot, Value: v})
		}
	}
	slices.SortFunc(slots, func(x, y chain.SlotDiff) int { return x.Slot.Cmp(y.Slot) })
	return slots
}

// AccountList returns the accounts, in order.
func (s State) AccountList() (accounts []archive.AccountEntry) {
	for a, v := range s.Accounts {
		accounts = append(accounts, archive.AccountEntry{Address: a, Account: v})
	}
	slices.SortFunc(accounts, func(x, y archive.AccountEntry) int { return x.Address.Cmp(y.Address) })
	return accounts
}
