// SPDX-License-Identifier: Apache-2.0

package head

import (
	"errors"

	"glimpse/chain"
)

// pastNumber returns the state of block n, which is before the oldest one here.
// Where its hash is known, as that of a block whose state was pruned, or of a
// tag, it is asked for by that: by number it could be one of another branch than
// this snapshot is of (P6).
func (l *Lease) pastNumber(sel chain.Selector, n chain.Number) (chain.View, error) {
	if l.publisher.Past == nil {
		return nil, l.miss(chain.Pruned)
	}
	if ref, ok := l.state.Safe(); ok && sel.IsSafe() {
		return l.pastView(chain.ByHash(ref.Hash), chain.Pruned)
	}
	if ref, ok := l.state.Finalized(); ok && sel.IsFinalized() {
		return l.pastView(chain.ByHash(ref.Hash), chain.Pruned)
	}
	switch h, err := l.state.Hash(n); {
	case err == nil:
		return l.pastView(chain.ByHash(h), chain.Pruned)
	case errors.As(err, new(*chain.Miss)):
		return l.pastView(chain.ByNumber(n), chain.Pruned)
	default:
		return nil, err
	}
}

// pastHash returns the state of the block with a hash that is not known here,
// which is what failed says. Any other error stays what it is.
func (l *Lease) pastHash(sel chain.Selector, failed error) (chain.View, error) {
	var miss *chain.Miss
	if l.publisher.Past == nil || !errors.As(failed, &miss) || miss.Reason != chain.UnknownHash {
		return nil, failed
	}
	return l.pastView(sel, chain.UnknownHash)
}

// pastView asks for each block once: what a number means elsewhere may change
// while the Lease is held, and two answers of one request must not differ (P1).
func (l *Lease) pastView(sel chain.Selector, why chain.Reason) (chain.View, error) {
	if v, ok := l.past[sel]; ok {
		return v, nil
	}
	v, err := l.publisher.Past(sel, l.miss(why))
	if err != nil {
		return nil, err
	}
	if l.past == nil {
		l.past = make(map[chain.Selector]chain.View)
	}
	l.past[sel] = v
	return v, nil
}
