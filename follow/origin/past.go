// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"context"
	"fmt"
	"sync"

	"github.com/ethereum/go-ethereum/common/lru"

	"glimpse/chain"
)

// A PastSource is an upstream node that also knows which block is meant.
type PastSource interface {
	Source

	// Block returns the canonical block that a number or a hash means. Where
	// there is none the error is a *chain.Miss.
	Block(context.Context, chain.Selector) (chain.Ref, error)
}

// A Past answers for blocks before those that a node has state of, from the
// upstream. Only what is final is remembered, within a bound. It is safe for
// concurrent use.
type Past struct {
	source    PastSource
	finalized func() (chain.Ref, bool)
	options   Options

	blocks   *lru.Cache[chain.Selector, chain.Ref]
	values   *lru.Cache[pastSlot, chain.Value]
	holders  *lru.Cache[pastAccount, chain.Account]
	bytecode *lru.SizeConstrainedCache[chain.Hash, []byte]

	slots    *batcher[pastSlot, chain.Value]
	accounts *batcher[pastAccount, chain.Account]
	codes    *batcher[pastCode, []byte]
	end      context.CancelFunc
}

type (
	pastSlot struct {
		block chain.Hash
		key   Key
	}
	pastAccount struct {
		block   chain.Hash
		address chain.Address
	}
	pastCode struct {
		pastAccount
		hash chain.Hash
	}
)

// entryBytes is what a remembered value takes with its key and its places in
// map and list, rounded up.
const entryBytes = 400

// NewPast returns a Past. Finalized returns the newest block that cannot change
// any more; false where none is known. The caller must Close it.
func NewPast(source PastSource, finalized func() (chain.Ref, bool), options Options) *Past {
	options = options.filled()
	life, end := context.WithCancel(context.Background())
	// Half is for bytecode, the rest for what has a fixed size.
	entries := max(options.CacheBytes/2/3/entryBytes, 1)
	p := &Past{
		source:    source,
		finalized: finalized,
		options:   options,
		end:       end,
		blocks:    lru.NewCache[chain.Selector, chain.Ref](entries),
		values:    lru.NewCache[pastSlot, chain.Value](entries),
		holders:   lru.NewCache[pastAccount, chain.Account](entries),
		bytecode:  lru.NewSizeConstrainedCache[chain.Hash, []byte](uint64(options.CacheBytes / 2)),
	}
	p.slots = newBatcher(life, options, p.fetchSlots)
	p.accounts = newBatcher(life, options, p.fetchAccounts)
	p.codes = newBatcher(life, options, p.fetchCodes)
	return p
}

// Close ends what is being fetched and waits for that. Reads after it fail.
func (p *Past) Close() {
	p.end()
	p.slots.close()
	p.accounts.close()
	p.codes.close()
}

// View returns the state of the block before miss.Oldest that sel means, a
// number or a hash. The error is miss where there is no such block, and wraps
// ErrFetch where that could not be found out. The View answers with miss where
// the upstream does not have the state either (P8).
func (p *Past) View(sel chain.Selector, miss *chain.Miss) (chain.View, error) {
	block, known := p.blocks.Get(sel)
	if !known {
		ctx, cancel := context.WithTimeout(context.Background(), p.options.Timeout)
		defer cancel()
		var err error
		if block, err = p.source.Block(ctx, sel); isMiss(err) {
			return nil, miss
		} else if err != nil {
			return nil, fmt.Errorf("find block %s: %w", sel, fetchError(err))
		}
		if p.final(block) {
			p.blocks.Add(sel, block)
		}
	}
	if block.Number >= miss.Oldest {
		return nil, miss // the snapshot knows better
	}
	return &pastView{past: p, block: block, miss: miss}, nil
}

func (p *Past) final(block chain.Ref) bool {
	last, ok := p.finalized()
	return ok && block.Number <= last.Number
}

func (p *Past) fetchSlots(ctx context.Context, calls []*call[pastSlot, chain.Value]) {
	fetchPast(calls, func(at chain.Ref, keys []pastSlot) ([]chain.Value, error) {
		plain := make([]Key, len(keys))
		for i, k := range keys {
			plain[i] = k.key
		}
		return p.source.Slots(ctx, at, plain)
	})
	remember(p, p.values, calls)
}

func (p *Past) fetchAccounts(ctx context.Context, calls []*call[pastAccount, chain.Account]) {
	fetchPast(calls, func(at chain.Ref, keys []pastAccount) ([]chain.Account, error) {
		addresses := make([]chain.Address, len(keys))
		for i, k := range keys {
			addresses[i] = k.address
		}
		found, err := p.source.Accounts(ctx, at, addresses)
		accounts := make([]chain.Account, len(found))
		for i, a := range found {
			if accounts[i] = a.Account; err == nil && len(a.Code) > 0 {
				err = p.rememberCode(a.CodeHash, a.Code)
			}
		}
		return accounts, err
	})
	remember(p, p.holders, calls)
}

// fetchCodes remembers all codes: what a hash stands for is always final.
func (p *Past) fetchCodes(ctx context.Context, calls []*call[pastCode, []byte]) {
	fetchPast(calls, func(at chain.Ref, keys []pastCode) ([][]byte, error) {
		plain := make([]CodeKey, len(keys))
		for i, k := range keys {
			plain[i] = CodeKey{k.address, k.hash}
		}
		return p.source.Codes(ctx, at, plain)
	})
	for _, c := range calls {
		if c.err == nil {
			c.err = p.rememberCode(c.key.hash, c.value)
		}
	}
}

func (p *Past) rememberCode(h chain.Hash, code []byte) error {
	err := verifyCode(h, code)
	if err == nil {
		p.bytecode.Add(h, code)
	}
	return err
}

func fetchPast[K comparable, V any](calls []*call[K, V], get func(chain.Ref, []K) ([]V, error)) {
	for _, group := range byBlock(calls) {
		if err := ask(group, func(keys []K) ([]V, error) { return get(group[0].at, keys) }); err != nil {
			setErrors(group, fmt.Errorf("at block %s: %w", group[0].at, err))
		}
	}
}

func remember[K comparable, V any](p *Past, cache *lru.Cache[K, V], calls []*call[K, V]) {
	for _, c := range calls {
		if c.err == nil && p.final(c.at) {
			cache.Add(c.key, c.value)
		}
	}
}

// A pastView is the state of one block of the past.
type pastView struct {
	past  *Past
	block chain.Ref
	miss  *chain.Miss

	mu      sync.Mutex
	holders map[chain.Hash]chain.Address // an address for each code that was met
}

func (v *pastView) Slot(a chain.Address, s chain.Slot) (chain.Value, error) {
	key := pastSlot{v.block.Hash, Key{a, s}}
	if value, ok := v.past.values.Get(key); ok {
		return value, nil
	}
	value, err := v.past.slots.get(context.Background(), key, v.block)
	if err != nil {
		return chain.Value{}, fmt.Errorf("read slot %s of %s: %w", s, a, v.explain(err))
	}
	return value, nil
}

func (v *pastView) Account(a chain.Address) (chain.Account, error) {
	key := pastAccount{v.block.Hash, a}
	account, ok := v.past.holders.Get(key)
	if !ok {
		var err error
		if account, err = v.past.accounts.get(context.Background(), key, v.block); err != nil {
			return chain.Account{}, fmt.Errorf("read account %s: %w", a, v.explain(err))
		}
	}
	if account.CodeHash != (chain.Hash{}) {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.holders == nil {
			v.holders = make(map[chain.Hash]chain.Address)
		}
		v.holders[account.CodeHash] = a
	}
	return account, nil
}

// Code asks at an address that has the code: the upstream does not know codes
// by their hash.
func (v *pastView) Code(h chain.Hash) ([]byte, error) {
	if h == (chain.Hash{}) {
		return nil, nil
	}
	if code, ok := v.past.bytecode.Get(h); ok {
		return code, nil
	}
	v.mu.Lock()
	a, ok := v.holders[h]
	v.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("read code %s: no account that was read has it", h)
	}
	code, err := v.past.codes.get(context.Background(), pastCode{pastAccount{v.block.Hash, a}, h}, v.block)
	if err != nil {
		return nil, fmt.Errorf("read code %s of %s: %w", h, a, v.explain(err))
	}
	return code, nil
}

// explain turns a miss of the upstream into the one that the caller would have
// had without it.
func (v *pastView) explain(err error) error {
	if isMiss(err) {
		return v.miss
	}
	return fetchError(err)
}
