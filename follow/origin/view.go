// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"context"
	"errors"
	"fmt"

	"glimpse/chain"
)

// View returns the whole state of the block that base is of: what base does not
// know is read through. It is good as long as base is. A read that base can
// answer costs nothing more.
func (o *Origin) View(base Base) chain.View { return &view{base, o} }

type view struct {
	base   Base
	origin *Origin
}

func (v *view) Account(a chain.Address) (chain.Account, error) {
	account, err := v.base.Account(a)
	if err != nil && errors.Is(err, chain.ErrUnknown) {
		return v.origin.Account(v.base, a)
	}
	return account, err
}

func (v *view) Slot(a chain.Address, s chain.Slot) (chain.Value, error) {
	value, err := v.base.Slot(a, s)
	if err != nil && errors.Is(err, chain.ErrUnknown) {
		return v.origin.Slot(v.base, a, s)
	}
	return value, err
}

// Code needs no upstream: it was kept with the account that has it.
func (v *view) Code(h chain.Hash) ([]byte, error) { return v.base.Code(h) }

// Prefetch reads what base does not know of these accounts and slots, many at
// once, so that reading them one by one finds them kept. It waits until all are
// there or ctx ends; the error is the first, wraps ErrFetch, and leaves what else
// was read in place.
func (o *Origin) Prefetch(ctx context.Context, base Base, addresses []chain.Address, keys []Key) error {
	accounts, err := unknown(addresses, base.AccountHeldUntil, func(a chain.Address) error {
		_, err := base.Account(a)
		return err
	})
	if err != nil {
		return fmt.Errorf("prefetch accounts: %w", err)
	}
	slots, err := unknown(keys,
		func(k Key) (chain.Ref, error) { return base.SlotHeldUntil(k.Address, k.Slot) },
		func(k Key) error {
			_, err := base.Slot(k.Address, k.Slot)
			return err
		})
	if err != nil {
		return fmt.Errorf("prefetch slots: %w", err)
	}
	done := make(chan error, 1) // never full: there is one result
	go func() { done <- o.accounts.getAll(ctx, accounts) }()
	err = o.slots.getAll(ctx, slots)
	if other := <-done; other != nil {
		err = other
	}
	if err != nil {
		return fmt.Errorf("prefetch: %w", fetchError(err))
	}
	return nil
}

// unknown returns which of the keys a Base does not know, and where to ask.
func unknown[K any](keys []K, heldUntil func(K) (chain.Ref, error), read func(K) error) (wishes []wish[K], err error) {
	for _, k := range keys {
		err := read(k)
		if err == nil {
			continue
		}
		w := wish[K]{key: k}
		if errors.Is(err, chain.ErrUnknown) {
			w.at, err = heldUntil(k)
		}
		if err != nil {
			return nil, err
		}
		wishes = append(wishes, w)
	}
	return wishes, nil
}
