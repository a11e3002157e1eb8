// SPDX-License-Identifier: Apache-2.0

package archivetest

import (
	"maps"
	"math/rand/v2"

	"glimpse/archive"
	"glimpse/chain"
)

// Known says what an archive was told of its first block. It is all that a
// sparse archive knows of it; the Model itself knows everything.
type Known struct {
	Accounts map[chain.Address]bool
	Slots    map[SlotKey]bool
}

func (k Known) clone() Known { return Known{maps.Clone(k.Accounts), maps.Clone(k.Slots)} }

// BeginAtHead makes m the model of a sparse archive that begins at the head of
// m, and returns what to give to InitAt. The blocks before stay in the Model,
// as what is known elsewhere.
func (m *Model) BeginAtHead() archive.Block {
	head := &m.Blocks[len(m.Blocks)-1]
	m.Sparse, m.First, m.Oldest = true, head.Number, head.Number
	m.Known = Known{make(map[chain.Address]bool), make(map[SlotKey]bool)}
	m.Hashes = map[chain.Hash]chain.Number{head.Hash: head.Number}
	m.Side = make(map[string][]byte)
	for i := range m.First {
		m.Blocks[i].Transactions = nil
	}
	// Random blocks give storage to accounts that do not exist. A chain does
	// not, and a sparse archive relies on it.
	maps.DeleteFunc(head.State.Slots, func(k SlotKey, _ chain.Value) bool { return !head.State.Accounts[k.Address].Exists })
	m.collectCodes()
	first := head.Block
	first.Diff, first.Side = nil, nil
	return first
}

// collectCodes finds the codes that the archive has.
func (m *Model) collectCodes() {
	m.Codes = make(map[chain.Hash][]byte)
	for _, b := range m.Blocks {
		if !m.Sparse || b.Number > m.First {
			m.addCodes(b.Diff)
		}
	}
	for a := range m.Known.Accounts {
		m.addFirstCode(m.Blocks[m.First].State.Accounts[a].CodeHash)
	}
}

// addFirstCode adds a code that an account has at the first block.
func (m *Model) addFirstCode(h chain.Hash) {
	for _, b := range m.Blocks[:m.First+1] {
		for _, c := range b.Diff.Codes {
			if c.Hash == h {
				m.Codes[h] = c.Bytes
			}
		}
	}
}

// Facts returns some of what is true of the first block of a sparse Model.
func (w World) Facts(rng *rand.Rand, m *Model) *chain.Facts {
	first := m.Blocks[m.First].State
	f := new(chain.Facts)
	brought := make(map[chain.Hash]bool)
	for _, a := range w.Addresses {
		if rng.IntN(4) == 0 {
			account := first.Accounts[a]
			f.Accounts = append(f.Accounts, chain.AccountFact{Address: a, Account: account})
			if h := account.CodeHash; h != (chain.Hash{}) && !brought[h] && (m.Codes[h] == nil || rng.IntN(2) == 0) {
				brought[h] = true
				f.Codes = append(f.Codes, chain.Code{Hash: h, Bytes: w.Code(h)})
			}
		}
		for _, s := range w.Slots {
			if rng.IntN(6) == 0 {
				f.Slots = append(f.Slots, chain.SlotFact{Address: a, Slot: s, Value: first.Slots[SlotKey{a, s}]})
			}
		}
	}
	return f
}

// Code returns the bytecode of a hash, nil for none.
func (w World) Code(h chain.Hash) []byte {
	for _, c := range w.Codes {
		if c.Hash == h {
			return c.Bytes
		}
	}
	return nil
}

// KeepOrigin notes what the archive was told.
func (m *Model) KeepOrigin(f *chain.Facts) {
	for _, a := range f.Accounts {
		m.Known.Accounts[a.Address] = true
		m.addFirstCode(a.Account.CodeHash)
	}
	for _, s := range f.Slots {
		m.Known.Slots[SlotKey{s.Address, s.Slot}] = true
	}
}

// KnowsAccount reports whether the archive knows an account at block n, and
// KnowsSlot whether it knows a slot.
func (m *Model) KnowsAccount(a chain.Address, n chain.Number) bool {
	return !m.Sparse || m.Known.Accounts[a] || m.firstChange(n, accountChange(a)) <= n
}

// KnowsSlot is described at KnowsAccount.
func (m *Model) KnowsSlot(k SlotKey, n chain.Number) bool {
	return !m.Sparse || m.Known.Slots[k] || m.firstChange(n, slotChange(k)) <= n || m.createdSince(k.Address, n)
}

// createdSince reports whether the archive can tell that an account with code is
// newer than the first block.
func (m *Model) createdSince(a chain.Address, n chain.Number) bool {
	return m.Known.Accounts[a] && !m.Blocks[m.First].State.Accounts[a].Exists &&
		m.Blocks[n].State.Accounts[a].CodeHash != (chain.Hash{})
}

// KnowsAllSlots reports whether the archive can list the slots of an account.
func (m *Model) KnowsAllSlots(a chain.Address, n chain.Number) bool {
	wiped := func(d chain.AccountDiff) bool { return d.Address == a && d.Wiped }
	return !m.Sparse || m.createdSince(a, n) || m.firstChange(n, wiped) <= n
}

// HeldUntil returns the last block before the first of these changes.
func (m *Model) HeldUntil(change func(chain.AccountDiff) bool) chain.Ref {
	return m.Blocks[m.firstChange(m.Head().Number, change)-1].Ref
}

func accountChange(a chain.Address) func(chain.AccountDiff) bool {
	return func(d chain.AccountDiff) bool { return d.Address == a && d.Changed }
}

func slotChange(k SlotKey) func(chain.AccountDiff) bool {
	return func(d chain.AccountDiff) bool {
		if d.Address != k.Address {
			return false
		}
		for _, s := range d.Slots {
			if s.Slot == k.Slot {
				return true
			}
		}
		return d.Wiped
	}
}

// firstChange returns the first block after First, up to n, that has a change,
// or the one after n.
func (m *Model) firstChange(n chain.Number, change func(chain.AccountDiff) bool) chain.Number {
	for b := m.First + 1; b <= n; b++ {
		for _, d := range m.Blocks[b].Diff.Accounts {
			if change(d) {
				return b
			}
		}
	}
	return n + 1
}
