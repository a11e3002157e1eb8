// SPDX-License-Identifier: Apache-2.0

package devchain

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/txpool"
	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
)

// Limits bound the transaction pool. The zero value of a field means its default.
type Limits struct {
	Transactions int    // in the whole pool; default 4096
	Bytes        uint64 // of all transactions, without blobs; default 64 MiB
	PerAccount   int    // default 256

	// MinTip is the least that a transaction must offer per gas, in wei, beside
	// the base fee; default 0.
	MinTip uint64
}

func (l Limits) withDefaults() Limits {
	l.Transactions = cmp.Or(l.Transactions, 4096)
	l.Bytes = cmp.Or(l.Bytes, 64<<20)
	l.PerAccount = cmp.Or(l.PerAccount, 256)
	return l
}

// A replacement must pay this many per cent more; one of, or by, a blob
// transaction twice as much, as in go-ethereum: blobs are dear to pass on.
const (
	priceBump     = 10
	blobPriceBump = 100
)

// An entry is a transaction that waits.
type entry struct {
	tx      *types.Transaction // without its blobs
	from    chain.Address
	cost    *big.Int // at most, with the value
	size    uint64
	arrival uint64 // order of arrival
}

func newEntry(tx *types.Transaction, from chain.Address) *entry {
	tx = tx.WithoutBlobTxSidecar()
	return &entry{tx: tx, from: from, cost: tx.Cost(), size: tx.Size()}
}

// A pool is the transactions that wait. It belongs to one goroutine.
type pool struct {
	limits   Limits
	byHash   map[chain.Hash]*entry
	accounts map[chain.Address][]*entry // ascending by nonce, none empty
	bytes    uint64
	arrivals uint64
}

func newPool(limits Limits) *pool {
	return &pool{limits: limits, byHash: make(map[chain.Hash]*entry), accounts: make(map[chain.Address][]*entry)}
}

// find returns where the transaction of this nonce is, or belongs.
func find(list []*entry, nonce uint64) (int, bool) {
	return slices.BinarySearchFunc(list, nonce, func(e *entry, nonce uint64) int { return cmp.Compare(e.tx.Nonce(), nonce) })
}

// add takes a transaction in whose sender's account is sender, and returns the
// one that it replaces, if any. The error says why it is refused.
func (p *pool) add(e *entry, sender chain.Account) (replaced *entry, err error) {
	if p.byHash[e.tx.Hash()] != nil {
		return nil, txpool.ErrAlreadyKnown
	}
	if next := sender.Nonce; e.tx.Nonce() < next {
		return nil, fmt.Errorf("%w: next nonce %d, tx nonce %d", core.ErrNonceTooLow, next, e.tx.Nonce())
	}
	list := p.accounts[e.from]
	at, taken := find(list, e.tx.Nonce())
	if taken {
		replaced = list[at]
	}
	if err := p.checkFunds(e, replaced, sender); err != nil {
		return nil, err
	}
	if replaced == nil && len(list) >= p.limits.PerAccount {
		return nil, fmt.Errorf("%w: pooled %d txs", txpool.ErrAccountLimitExceeded, len(list))
	}
	if replaced != nil && !outbids(e.tx, replaced.tx) {
		return nil, txpool.ErrReplaceUnderpriced
	}
	if !p.fits(e, replaced) {
		return nil, ErrPoolFull
	}
	if replaced != nil {
		p.remove(replaced)
	}
	p.insert(e)
	return replaced, nil
}

// checkFunds requires that the sender can pay for all that it has waiting.
func (p *pool) checkFunds(e, replaced *entry, sender chain.Account) error {
	balance := sender.Balance.ToBig()
	if balance.Cmp(e.cost) < 0 {
		return fmt.Errorf("%w: balance %v, tx cost %v, overshot %v", core.ErrInsufficientFunds, balance, e.cost, new(big.Int).Sub(e.cost, balance))
	}
	queued := new(big.Int)
	for _, other := range p.accounts[e.from] {
		queued.Add(queued, other.cost)
	}
	what, more := "tx cost", e.cost
	if replaced != nil {
		what, more = "tx bumped", new(big.Int).Sub(e.cost, replaced.cost)
	}
	if need := new(big.Int).Add(queued, more); balance.Cmp(need) < 0 {
		return fmt.Errorf("%w: balance %v, queued cost %v, %s %v, overshot %v", core.ErrInsufficientFunds, balance, queued, what, more, need.Sub(need, balance))
	}
	return nil
}

// outbids reports whether a transaction pays enough more than another to take
// its place.
func outbids(tx, other *types.Transaction) bool {
	bump := int64(priceBump)
	if tx.Type() == types.BlobTxType || other.Type() == types.BlobTxType {
		bump = blobPriceBump
	}
	ok := func(price, old *big.Int) bool {
		least := new(big.Int).Mul(old, big.NewInt(100+bump))
		least.Div(least, big.NewInt(100))
		return price.Cmp(old) > 0 && price.Cmp(least) >= 0
	}
	if !ok(tx.GasFeeCap(), other.GasFeeCap()) || !ok(tx.GasTipCap(), other.GasTipCap()) {
		return false
	}
	if tx.Type() == types.BlobTxType && other.Type() == types.BlobTxType {
		return ok(tx.BlobGasFeeCap(), other.BlobGasFeeCap())
	}
	return true
}

func (p *pool) fits(e, replaced *entry) bool {
	count, bytes := len(p.byHash)+1, p.bytes+e.size
	if replaced != nil {
		count, bytes = count-1, bytes-replaced.size
	}
	return count <= p.limits.Transactions && bytes <= p.limits.Bytes
}

// restore puts a transaction back that was in a block, as if it had never left.
// One that does not fit, or whose place is taken, is dropped: ok is false.
func (p *pool) restore(e *entry) (ok bool) {
	_, taken := find(p.accounts[e.from], e.tx.Nonce())
	if taken || !p.fits(e, nil) {
		return false
	}
	p.insert(e)
	return true
}

func (p *pool) insert(e *entry) {
	if e.arrival == 0 {
		p.arrivals++
		e.arrival = p.arrivals
	}
	list := p.accounts[e.from]
	at, _ := find(list, e.tx.Nonce())
	p.accounts[e.from] = slices.Insert(list, at, e)
	p.byHash[e.tx.Hash()] = e
	p.bytes += e.size
}

func (p *pool) remove(e *entry) {
	list := p.accounts[e.from]
	at, _ := find(list, e.tx.Nonce())
	if list = slices.Delete(list, at, at+1); len(list) == 0 {
		delete(p.accounts, e.from)
	} else {
		p.accounts[e.from] = list
	}
	delete(p.byHash, e.tx.Hash())
	p.bytes -= e.size
}

// first returns an account's transaction with the lowest nonce, nil where none
// waits.
func (p *pool) first(addr chain.Address) *entry {
	if list := p.accounts[addr]; len(list) > 0 {
		return list[0]
	}
	return nil
}

// nonceAfter returns the nonce after those that wait without a gap from next on.
func (p *pool) nonceAfter(addr chain.Address, next uint64) uint64 {
	for _, e := range p.accounts[addr] {
		if e.tx.Nonce() == next {
			next++
		}
	}
	return next
}
