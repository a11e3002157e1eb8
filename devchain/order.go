// SPDX-License-Identifier: Apache-2.0

package devchain

import (
	"container/heap"
	"math/big"
)

// An order is whose turn it is: the first waiting transaction of each account,
// the one that pays the highest tip first, among equals the one that came
// first. It is right for one base fee.
type order struct {
	baseFee *big.Int
	turns   turns
}

func (p *pool) order(baseFee *big.Int) *order {
	o := &order{baseFee: baseFee, turns: make(turns, 0, len(p.accounts))}
	for _, list := range p.accounts {
		o.turns = append(o.turns, o.turn(list[0]))
	}
	heap.Init(&o.turns)
	return o
}

// pop returns whose turn it is, nil at the end.
func (o *order) pop() *entry {
	if len(o.turns) == 0 {
		return nil
	}
	return heap.Pop(&o.turns).(turn).entry
}

// push adds the next transaction of an account whose last one was popped; nil
// does nothing.
func (o *order) push(e *entry) {
	if e != nil {
		heap.Push(&o.turns, o.turn(e))
	}
}

type turn struct {
	*entry
	tip *big.Int // negative where the fee cap is below the base fee
}

func (o *order) turn(e *entry) turn {
	tip := new(big.Int).Sub(e.tx.GasFeeCap(), o.baseFee)
	if limit := e.tx.GasTipCap(); tip.Cmp(limit) > 0 {
		tip = limit
	}
	return turn{e, tip}
}

// turns is a heap.
type turns []turn

func (t turns) Len() int { return len(t) }

func (t turns) Less(i, j int) bool {
	if c := t[i].tip.Cmp(t[j].tip); c != 0 {
		return c > 0
	}
	return t[i].arrival < t[j].arrival
}

func (t turns) Swap(i, j int) { t[i], t[j] = t[j], t[i] }

func (t *turns) Push(x any) { *t = append(*t, x.(turn)) }

func (t *turns) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}
