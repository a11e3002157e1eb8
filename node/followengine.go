// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/archive"
	"glimpse/chain"
	"glimpse/evm"
	"glimpse/follow"
	"glimpse/follow/upstream"
)

// executing executes blocks by Ethereum's rules.
type executing struct {
	rules     *evm.Rules
	ancestors *ancestors
	ahead     *ahead
}

// Produce implements follow.Producer.
func (e executing) Produce(_ context.Context, b *follow.Block, parent *types.Header, base chain.View) (*follow.Result, error) {
	block, err := b.Ethereum()
	if err != nil {
		return nil, err
	}
	signer := e.rules.Signer(b.Header)
	evm.RecoverSenders(signer, block.Transactions())
	e.ahead.transactions(signer, block.Transactions())
	result, err := e.rules.Execute(block, parent, base, e.ancestors.hash, evm.Checks{Receipts: true})
	if err != nil {
		return nil, err
	}
	return &follow.Result{Diff: result.Diff, Receipts: result.Receipts}, nil
}

// tracing asks the upstream what a block changed.
type tracing struct {
	pool  *upstream.Pool
	rules upstream.TraceRules
}

// Produce implements follow.Producer.
func (t tracing) Produce(ctx context.Context, b *follow.Block, _ *types.Header, base chain.View) (*follow.Result, error) {
	trace, err := t.pool.Trace(ctx, b)
	if err != nil {
		return nil, err
	}
	rules := t.rules
	rules.After = upstreamView{ctx, t.pool, b.Ref}
	diff, err := upstream.TraceDiff(b, trace, base, rules)
	if err != nil {
		return nil, err
	}
	return withReceipts(ctx, t.pool, b, diff)
}

// listing takes what a block changed from its access list.
type listing struct{ pool *upstream.Pool }

// Produce implements follow.Producer.
func (l listing) Produce(ctx context.Context, b *follow.Block, _ *types.Header, base chain.View) (*follow.Result, error) {
	list, err := l.pool.AccessList(ctx, b)
	if err != nil {
		return nil, err
	}
	diff, err := upstream.AccessListDiff(list, base)
	if err != nil {
		return nil, err
	}
	return withReceipts(ctx, l.pool, b, diff)
}

// withReceipts asks for the receipts of a block that was not executed; there are
// none where no upstream has them.
func withReceipts(ctx context.Context, pool *upstream.Pool, b *follow.Block, diff *chain.Diff) (*follow.Result, error) {
	receipts, err := pool.Receipts(ctx, b)
	if errors.Is(err, upstream.ErrCannot) {
		return &follow.Result{Diff: diff}, nil
	}
	if err != nil {
		return nil, err
	}
	return &follow.Result{Diff: diff, Receipts: receipts}, nil
}

// upstreamView is the state of a block as the upstream has it.
type upstreamView struct {
	ctx  context.Context
	pool *upstream.Pool
	at   chain.Ref
}

func (v upstreamView) Account(a chain.Address) (chain.Account, error) {
	account, err := v.pool.Account(v.ctx, v.at, a)
	return account.Account, err
}

func (v upstreamView) Slot(a chain.Address, s chain.Slot) (chain.Value, error) {
	return v.pool.Slot(v.ctx, v.at, a, s)
}

func (v upstreamView) Code(h chain.Hash) ([]byte, error) {
	return nil, fmt.Errorf("code %s: an upstream is asked for it by its address", h)
}

// ancestors answers for the hashes of blocks, those before the first block of the
// store too: from there on each block names its parent.
type ancestors struct {
	db   *archive.DB
	pool *upstream.Pool

	mu     sync.Mutex
	before map[chain.Number]chain.Hash // guarded by mu: below the first, without a gap
	lowest chain.Ref                   // guarded by mu
}

func newAncestors(db *archive.DB, pool *upstream.Pool, first chain.Ref) *ancestors {
	return &ancestors{db: db, pool: pool, before: make(map[chain.Number]chain.Hash), lowest: first}
}

// hash implements evm.Ancestors.
func (a *ancestors) hash(n chain.Number) (chain.Hash, error) {
	h, err := read(a.db, func(r *archive.Reader) (chain.Hash, error) { return r.Hash(n) })
	var miss *chain.Miss
	if !errors.As(err, &miss) || miss.Reason != chain.Pruned {
		return h, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.lowest.Number > n {
		b, err := a.pool.BlockByHash(context.Background(), a.lowest.Hash)
		if err != nil {
			return chain.Hash{}, unavailable(err)
		}
		a.lowest = chain.Ref{Number: a.lowest.Number - 1, Hash: b.Header.ParentHash}
		a.before[a.lowest.Number] = a.lowest.Hash
	}
	return a.before[n], nil
}
