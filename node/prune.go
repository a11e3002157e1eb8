// SPDX-License-Identifier: Apache-2.0

package node

import (
	"sort"

	"glimpse/archive"
	"glimpse/chain"
)

// prune forgets the state that the plan does not keep.
func (p *importPlan) prune(db *archive.DB) error {
	if p.KeepBlocks == 0 && p.KeepTime == 0 {
		return nil
	}
	oldest, err := read(db, p.oldestKept)
	if err != nil {
		return err
	}
	have, err := read(db, func(r *archive.Reader) (chain.Number, error) { return r.Oldest(), nil })
	if err != nil || oldest <= have {
		return err
	}
	p.Log.Info("pruning state", "from", have, "to", oldest)
	return db.Prune(oldest)
}

// oldestKept is the first block whose state either rule keeps.
func (p *importPlan) oldestKept(r *archive.Reader) (chain.Number, error) {
	oldest := r.Head().Number
	if p.KeepBlocks > 0 {
		oldest -= min(oldest, chain.Number(p.KeepBlocks-1))
	}
	if p.KeepTime == 0 {
		return oldest, nil
	}
	since, err := p.firstWithin(r)
	if p.KeepBlocks > 0 {
		since = min(since, oldest)
	}
	return since, err
}

// firstWithin returns the first block of the last KeepTime before the head.
// Times never decrease along a chain, so it is found by halving.
func (p *importPlan) firstWithin(r *archive.Reader) (chain.Number, error) {
	head := r.Head().Number
	last, err := headerAt(r, head)
	if err != nil {
		return 0, err
	}
	var failed error
	n := sort.Search(int(head), func(n int) bool {
		header, err := headerAt(r, chain.Number(n))
		if err != nil {
			failed = err
			return true
		}
		return float64(last.Time-header.Time) <= p.KeepTime.Seconds()
	})
	return chain.Number(n), failed
}
