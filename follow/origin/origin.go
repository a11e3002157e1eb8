// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"glimpse/chain"
)

// A Keeper keeps what was read, for ever. archive.DB is one.
type Keeper interface {
	// KeepOrigin keeps values at the first block, all of them or none. An
	// account whose code is not among the Facts has one that HasCode knows.
	KeepOrigin(*chain.Facts) error

	// HasCode reports whether a bytecode is kept already.
	HasCode(chain.Hash) (bool, error)
}

// A Base is the state of one block as a sparse store knows it, archive.View: its
// errors wrap chain.ErrUnknown for what nobody has told the store.
type Base interface {
	chain.View

	// SlotHeldUntil and AccountHeldUntil are asked about what the Base does
	// not know. They return the newest block at whose end it still is as it
	// was at the first block.
	SlotHeldUntil(chain.Address, chain.Slot) (chain.Ref, error)
	AccountHeldUntil(chain.Address) (chain.Ref, error)
}

// An Origin reads through to the state of a node's first block. It is safe for
// concurrent use.
type Origin struct {
	first  chain.Ref
	source Source
	keeper Keeper

	// lostUntil is when to ask at the first block again after the upstream said
	// that it has pruned it, in nanoseconds.
	lostUntil atomic.Int64

	slots    *batcher[Key, chain.Value]
	accounts *batcher[chain.Address, Account]
	end      context.CancelFunc
}

// retryFirst is how long an Origin believes that the upstream has pruned the
// first block. Another upstream may take its place.
const retryFirst = time.Minute

// New returns an Origin for a node that began at first. The caller must Close it.
func New(first chain.Ref, source Source, keeper Keeper, options Options) *Origin {
	options = options.filled()
	life, end := context.WithCancel(context.Background())
	o := &Origin{first: first, source: source, keeper: keeper, end: end}
	o.slots = newBatcher(life, options, o.fetchSlots)
	o.accounts = newBatcher(life, options, o.fetchAccounts)
	return o
}

// Close ends what is being fetched and waits for that. Reads after it fail.
func (o *Origin) Close() {
	o.end()
	o.slots.close()
	o.accounts.close()
}

// Slot returns a slot that base does not know. Errors wrap ErrFetch.
func (o *Origin) Slot(base Base, a chain.Address, s chain.Slot) (chain.Value, error) {
	at, err := base.SlotHeldUntil(a, s)
	if err != nil {
		return chain.Value{}, err
	}
	v, err := o.slots.get(context.Background(), Key{a, s}, at)
	if err != nil {
		return chain.Value{}, fmt.Errorf("read slot %s of %s: %w", s, a, fetchError(err))
	}
	return v, nil
}

// Account returns an account that base does not know, when its code is kept too.
// Errors wrap ErrFetch.
func (o *Origin) Account(base Base, a chain.Address) (chain.Account, error) {
	at, err := base.AccountHeldUntil(a)
	if err != nil {
		return chain.Account{}, err
	}
	account, err := o.accounts.get(context.Background(), a, at)
	if err != nil {
		return chain.Account{}, fmt.Errorf("read account %s: %w", a, fetchError(err))
	}
	return account.Account, nil
}

// fetchError marks err as one of a fetch. It hides a *chain.Miss of the
// upstream: that tells of the range of blocks there, not here.
func fetchError(err error) error {
	if isMiss(err) {
		return fmt.Errorf("%w: %v", ErrFetch, err)
	}
	return fmt.Errorf("%w: %w", ErrFetch, err)
}

func (o *Origin) fetchSlots(ctx context.Context, calls []*call[Key, chain.Value]) {
	fetch(o, calls, func(at chain.Ref, keys []Key) ([]chain.Value, error) {
		return o.source.Slots(ctx, at, keys)
	})
	f := new(chain.Facts)
	for _, c := range calls {
		if c.err == nil {
			f.Slots = append(f.Slots, chain.SlotFact{Address: c.key.Address, Slot: c.key.Slot, Value: c.value})
		}
	}
	if len(f.Slots) > 0 {
		if err := o.keeper.KeepOrigin(f); err != nil {
			setErrors(calls, err)
		}
	}
}

func (o *Origin) fetchAccounts(ctx context.Context, calls []*call[chain.Address, Account]) {
	fetch(o, calls, func(at chain.Ref, addresses []chain.Address) ([]Account, error) {
		return o.source.Accounts(ctx, at, addresses)
	})
	codes := o.fetchCodes(ctx, calls)
	f := &chain.Facts{Codes: codes}
	for _, c := range calls {
		if c.err == nil {
			f.Accounts = append(f.Accounts, chain.AccountFact{Address: c.key, Account: c.value.Account})
		}
	}
	if len(f.Accounts) > 0 {
		if err := o.keeper.KeepOrigin(f); err != nil {
			setErrors(calls, err)
		}
	}
}

// fetch reads at the first block while the upstream has its state: all keys are
// then read at one block, which can be final. Otherwise each is read at the
// newest block where it still is as it was then. Upstreams have no common way to
// say that they have pruned a block, so any failure leads to the second attempt.
func fetch[K comparable, V any](o *Origin, calls []*call[K, V], get func(chain.Ref, []K) ([]V, error)) {
	var failed error
	if time.Now().UnixNano() >= o.lostUntil.Load() {
		failed = ask(calls, func(keys []K) ([]V, error) { return get(o.first, keys) })
		if failed == nil {
			for _, c := range calls {
				c.at = o.first
			}
			return
		}
	}
	for _, group := range byBlock(calls) {
		at, err := group[0].at, failed
		if at != o.first || failed == nil {
			err = ask(group, func(keys []K) ([]V, error) { return get(at, keys) })
		}
		if err != nil {
			setErrors(group, fmt.Errorf("at block %s: %w", at, err))
		} else if failed != nil {
			o.lostUntil.Store(time.Now().Add(retryFirst).UnixNano())
		}
	}
}

func isMiss(err error) bool { return errors.As(err, new(*chain.Miss)) }

// fetchCodes returns the bytecodes of accounts that were read and whose code is
// not kept yet. Where that fails the account is not known either: its code
// could not be read later.
func (o *Origin) fetchCodes(ctx context.Context, calls []*call[chain.Address, Account]) (codes []chain.Code) {
	wanted := o.withNewCode(calls)
	o.askCodes(ctx, wanted)
	for _, c := range wanted {
		if c.err == nil {
			c.err = verifyCode(c.value.CodeHash, c.value.Code)
		}
		if c.err == nil {
			codes = append(codes, chain.Code{Hash: c.value.CodeHash, Bytes: c.value.Code})
		}
	}
	failSharers(wanted, calls)
	return codes
}

// askCodes fills in the codes that did not come with their accounts.
func (o *Origin) askCodes(ctx context.Context, calls []*call[chain.Address, Account]) {
	var without []*call[chain.Address, Account]
	for _, c := range calls {
		if c.err == nil && len(c.value.Code) == 0 {
			without = append(without, c)
		}
	}
	for _, group := range byBlock(without) {
		keys := make([]CodeKey, len(group))
		for i, c := range group {
			keys[i] = CodeKey{c.key, c.value.CodeHash}
		}
		codes, err := o.source.Codes(ctx, group[0].at, keys)
		if err == nil && len(codes) != len(group) {
			err = errWrongCount
		}
		if err != nil {
			setErrors(group, err)
			continue
		}
		for i, c := range group {
			c.value.Code = codes[i]
		}
	}
}

// withNewCode returns one call for each code that is not kept.
func (o *Origin) withNewCode(calls []*call[chain.Address, Account]) (wanted []*call[chain.Address, Account]) {
	seen := make(map[chain.Hash]bool)
	for _, c := range calls {
		h := c.value.CodeHash
		if c.err != nil || h == (chain.Hash{}) || seen[h] {
			continue
		}
		seen[h] = true
		known, err := o.keeper.HasCode(h)
		if err != nil {
			c.err = err
		}
		if !known {
			wanted = append(wanted, c)
		}
	}
	return wanted
}

// failSharers gives the error of a code to all accounts that have it.
func failSharers(wanted, calls []*call[chain.Address, Account]) {
	failed := make(map[chain.Hash]error)
	for _, c := range wanted {
		if c.err != nil {
			failed[c.value.CodeHash] = c.err
		}
	}
	for _, c := range calls {
		if err := failed[c.value.CodeHash]; err != nil && c.err == nil {
			c.err = err
		}
	}
}

// verifyCode refuses bytes that do not have the hash that the account names.
func verifyCode(want chain.Hash, code []byte) error {
	if got := crypto.Keccak256Hash(code); got != want {
		return fmt.Errorf("the upstream's code has hash %s, want the account's %s", got, want)
	}
	return nil
}
