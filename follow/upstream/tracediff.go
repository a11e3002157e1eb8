// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"

	"glimpse/chain"
)

// TraceRules say what a chain's blocks change that no trace shows.
type TraceRules struct {
	// Requests says that the contracts of EIP-7002 and EIP-7251 are emptied at
	// the end of each block from Prague on, as on Ethereum and not on OP-Stack
	// chains.
	Requests bool

	// Unseen are accounts that change without a trace, such as OP-Stack's fee
	// vaults where the upstream is a geth. They are read from After.
	Unseen []chain.Address

	// After is the state after the block, read through from an upstream. It is
	// asked about Unseen, and about accounts that the trace calls destroyed:
	// geth says so too where a call that destroyed was reverted. Nil believes
	// the trace, and must not be together with Unseen.
	After chain.View
}

// TraceDiff returns what a block changed, from the trace of all its
// transactions and the state before it. The result is canonical and holds
// absolute values; where what a trace says was before is not what base holds,
// the trace is believed, so that an account heals that changed without a trace.
//
// These are covered:
//   - accounts, code and storage that transactions changed, as traced;
//   - withdrawals, the beacon root of EIP-4788 and the parent hash of EIP-2935,
//     as header and body have them;
//   - the queues of EIP-7002 and EIP-7251, with TraceRules.Requests;
//   - TraceRules.Unseen.
//
// These are not: rewards of proof of work, for which there is an error; changes
// that a chain makes outside of its transactions by rules of its own, which go
// unnoticed; and, of upstreams that leave an empty code out, the end of an
// EIP-7702 delegation.
//
// The error wraps ErrTrace where the trace is of no use, else it is of base or
// After.
func TraceDiff(b *Block, trace json.RawMessage, base chain.View, rules TraceRules) (*chain.Diff, error) {
	if len(rules.Unseen) > 0 && rules.After == nil {
		return nil, errors.New("accounts that no trace shows, and no state after the block to read them from")
	}
	traces, err := decodeTraces(trace)
	if err == nil {
		err = checkTraces(b, traces)
	}
	if err == nil && b.Header.Difficulty.Sign() != 0 {
		err = errors.New("a block of proof of work has rewards")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: block %s: %w", ErrTrace, b.Ref, err)
	}
	f := newFold(base)
	if err := f.beforeTransactions(b.Header); err != nil {
		return nil, fmt.Errorf("block %s: %w", b.Ref, err)
	}
	gone := make(destroyed)
	for _, t := range traces {
		if err := f.transaction(&t, gone); err != nil {
			return nil, fmt.Errorf("block %s: %w", b.Ref, err)
		}
	}
	if err := f.afterTransactions(b, rules); err != nil {
		return nil, fmt.Errorf("block %s: %w", b.Ref, err)
	}
	if rules.After != nil {
		if err := f.reread(b.Header, rules, gone); err != nil {
			return nil, fmt.Errorf("block %s: %w", b.Ref, err)
		}
	}
	diff, err := f.diff()
	if err != nil {
		return nil, fmt.Errorf("%w: block %s: %w", ErrTrace, b.Ref, err)
	}
	return diff, nil
}

// destroyed are accounts that a trace calls destroyed, with the slots that were
// touched in the block before that, or by it.
type destroyed map[chain.Address]map[chain.Slot]bool

// transaction puts what one transaction changed on top.
func (f *fold) transaction(t *transactionTrace, gone destroyed) error {
	for addr, pre := range t.Result.Pre {
		a, err := f.account(addr)
		if err != nil {
			return err
		}
		if t.Result.Post[addr] == nil {
			gone.add(addr, a.slots)
			gone.add(addr, pre.Storage)
			a.destroy()
			continue
		}
		f.apply(a, pre)
		for slot := range pre.Storage {
			a.slots[slot] = chain.Value{} // unless post has another value
		}
	}
	for addr, post := range t.Result.Post {
		a, err := f.account(addr)
		if err != nil {
			return err
		}
		f.apply(a, post)
		maps.Copy(a.slots, post.Storage)
	}
	return nil
}

func (d destroyed) add(addr chain.Address, slots map[chain.Slot]chain.Value) {
	if d[addr] == nil {
		d[addr] = make(map[chain.Slot]bool)
	}
	for slot := range slots {
		d[addr][slot] = true
	}
}

// apply sets the fields that are there.
func (f *fold) apply(a *folded, t *tracedAccount) {
	if t.Balance != nil {
		a.now.Balance = uint256.Int(*t.Balance)
	}
	if t.Nonce != nil {
		a.now.Nonce = uint64(*t.Nonce)
	}
	switch {
	case t.Code != nil:
		f.setCode(a, *t.Code)
	case t.CodeHash == nil:
	case *t.CodeHash == types.EmptyCodeHash:
		f.setCode(a, nil)
	default:
		a.now.CodeHash = *t.CodeHash
	}
}

// reread asks the state after the block about what the trace does not tell, or
// not truly.
func (f *fold) reread(h *types.Header, rules TraceRules, gone destroyed) error {
	for _, addr := range rules.Unseen {
		if err := f.rereadAccount(addr, rules.After); err != nil {
			return err
		}
	}
	for addr, slots := range gone {
		if err := f.rereadAccount(addr, rules.After); err != nil {
			return err
		}
		a := f.accounts[addr]
		if !a.now.Exists {
			continue // it is destroyed indeed
		}
		if h.ParentBeaconRoot == nil {
			if a.now.CodeHash != (chain.Hash{}) && a.now.CodeHash == a.before.CodeHash {
				return fmt.Errorf("%w: whether account %s was destroyed and created again cannot be told", ErrTrace, addr)
			}
			continue // it is another one
		}
		// From Cancun on only what was created by the same transaction is
		// destroyed, and had no storage before.
		a.wiped = false
		for slot := range a.slots {
			slots[slot] = true
		}
		for slot := range slots {
			value, err := rules.After.Slot(addr, slot)
			if err != nil {
				return fmt.Errorf("slot %s of %s after the block: %w", slot, addr, err)
			}
			a.slots[slot] = value
		}
	}
	return nil
}

func (f *fold) rereadAccount(addr chain.Address, after chain.View) error {
	a, err := f.account(addr)
	if err != nil {
		return err
	}
	if a.now, err = after.Account(addr); err != nil {
		return fmt.Errorf("account %s after the block: %w", addr, err)
	}
	hash := a.now.CodeHash
	if hash == (chain.Hash{}) || hash == a.before.CodeHash || f.codes[hash] != nil {
		return nil
	}
	if f.codes[hash], err = after.Code(hash); err != nil {
		return fmt.Errorf("code of account %s after the block: %w", addr, err)
	}
	return nil
}
