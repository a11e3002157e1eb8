// SPDX-License-Identifier: Apache-2.0

package archivetest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/ethereum/go-ethereum/crypto"

	"glimpse/archive"
	"glimpse/chain"
)

// A World is the few addresses, slots and codes that random blocks are about.
// They are few so that the same ones are met again and again.
type World struct {
	Addresses []chain.Address
	Slots     []chain.Slot
	Codes     []chain.Code
	SideKeys  []string

	// Transactions are more than blocks take, so that one often comes again after
	// an unwind. Many begin with the same bytes, in which the archive finds them.
	Transactions []chain.Hash
}

// NewWorld returns a World of n addresses with n slots each. Some keys begin
// and end with 0xff, where successors carry over.
func NewWorld(n int) World {
	w := World{SideKeys: []string{"", "a", "aa", "ab", "b", "\xff", "\xff\xff"}}
	for i := range n {
		seed := crypto.Keccak256([]byte{byte(i)})
		a, s := chain.Address(seed[:20]), chain.Slot(seed)
		if i%3 == 1 {
			a[19], s[31] = 0xff, 0xff
		}
		if i%3 == 2 {
			s = chain.Slot{31: byte(i)}
		}
		w.Addresses = append(w.Addresses, a)
		w.Slots = append(w.Slots, s)
		w.Codes = append(w.Codes, chain.NewCode(fmt.Appendf(nil, "code %d", i)))
	}
	for i := range 8 * n {
		h := crypto.Keccak256Hash([]byte("transaction"), []byte{byte(i)})
		if i%4 > 1 {
			copy(h[:16], w.Transactions[i-1][:])
		}
		w.Transactions = append(w.Transactions, h)
	}
	for i := range w.Slots[0] {
		w.Slots[0][i] = 0xff
	}
	return w
}

// Block returns a random block that follows the head of m.
func (w World) Block(rng *rand.Rand, m *Model) archive.Block {
	head := m.Blocks[len(m.Blocks)-1]
	b := w.block(rng, head.Number+1, head.State, m.Codes)
	b.Parent = head.Hash
	w.addTransactions(rng, m, &b)
	b.Side = w.SideWrites(rng)
	return b
}

// addTransactions gives a block some that the chain does not have yet.
func (w World) addTransactions(rng *rand.Rand, m *Model, b *archive.Block) {
	b.Receipts = fmt.Appendf(nil, "receipts of %s", b.Hash)
	for _, i := range rng.Perm(len(w.Transactions))[:rng.IntN(4)] {
		if _, _, mined := m.Place(w.Transactions[i]); !mined {
			b.Transactions = append(b.Transactions, w.Transactions[i])
		}
	}
}

// Genesis returns a random block 0 and an identity for it.
func (w World) Genesis(rng *rand.Rand) (archive.Identity, archive.Block) {
	b := w.block(rng, 0, State{}, nil)
	return archive.Identity{ChainID: 1337, Genesis: b.Hash, Config: []byte("config")}, b
}

func (w World) block(rng *rand.Rand, n chain.Number, state State, known map[chain.Hash][]byte) archive.Block {
	var salt [16]byte
	binary.BigEndian.PutUint64(salt[:], rng.Uint64())
	binary.BigEndian.PutUint64(salt[8:], uint64(n))
	b := archive.Block{
		Ref:    chain.Ref{Number: n, Hash: crypto.Keccak256Hash(salt[:])},
		Header: fmt.Appendf(nil, "header %x", salt),
		Body:   fmt.Appendf(nil, "body %x", salt),
		Diff:   new(chain.Diff),
	}
	codes := make(map[chain.Hash]bool)
	for _, a := range w.Addresses {
		if rng.IntN(2) == 0 {
			continue
		}
		d := w.account(rng, a, state)
		if !d.Changed && !d.Wiped && len(d.Slots) == 0 {
			continue
		}
		b.Diff.Accounts = append(b.Diff.Accounts, d)
		for _, c := range w.Codes {
			if d.Account.CodeHash == c.Hash && !codes[c.Hash] && (known[c.Hash] == nil || rng.IntN(2) == 0) {
				codes[c.Hash] = true
				b.Diff.Codes = append(b.Diff.Codes, c)
			}
		}
	}
	b.Diff.Sort()
	return b
}

func (w World) account(rng *rand.Rand, a chain.Address, state State) chain.AccountDiff {
	d := chain.AccountDiff{Address: a}
	switch d.Account = state.Accounts[a]; rng.IntN(6) {
	case 0: // destroyed, for good or for now
		d.Changed, d.Wiped, d.Account = true, true, chain.Account{}
		if rng.IntN(2) == 0 {
			d.Account = w.newAccount(rng)
		}
	case 1, 2: // created or changed
		d.Changed, d.Account = true, w.newAccount(rng)
	default:
		d.Account = chain.Account{}
	}
	if d.Changed && !d.Account.Exists && rng.IntN(2) == 0 {
		return d
	}
	for _, s := range w.Slots {
		if rng.IntN(3) != 0 {
			continue
		}
		v := chain.Value{31: byte(rng.IntN(4))}
		if rng.IntN(8) == 0 {
			v[0] = 0xee
		}
		if !d.Wiped || v != (chain.Value{}) {
			d.Slots = append(d.Slots, chain.SlotDiff{Slot: s, Value: v})
		}
	}
	return d
}

func (w World) newAccount(rng *rand.Rand) chain.Account {
	a := chain.Account{Exists: true, Nonce: uint64(rng.IntN(300))}
	a.Balance.SetUint64(rng.Uint64() >> rng.IntN(64))
	if rng.IntN(2) == 0 {
		a.CodeHash = w.Codes[rng.IntN(len(w.Codes))].Hash
	}
	return a
}

// SideWrites returns a few random changes of side data.
func (w World) SideWrites(rng *rand.Rand) (side []archive.SideWrite) {
	for range rng.IntN(3) {
		write := archive.SideWrite{Key: []byte(w.SideKeys[rng.IntN(len(w.SideKeys))])}
		switch rng.IntN(6) {
		case 0:
			write.Prefix = true
		case 1:
		default:
			write.Value = []byte{byte(rng.IntN(256))}
		}
		side = append(side, write)
	}
	return side
}
