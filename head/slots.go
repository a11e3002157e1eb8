// SPDX-License-Identifier: Apache-2.0

package head

import "glimpse/chain"

// Slots returns up to limit non-zero slots of an account in the block that sel
// means, in order of their keys, beginning after the slot after, or at the first
// where that is nil. More says that there are others after the last. The errors
// are those of View. The result may be shared and must not be modified.
//
// It holds a few times limit in memory, however many slots there are.
func (l *Lease) Slots(sel chain.Selector, a chain.Address, after *chain.Slot, limit int) (slots []chain.SlotDiff, more bool, err error) {
	n, err := l.Locate(sel)
	if err != nil {
		return nil, false, err
	}
	limit = max(limit, 1)
	if !sel.IsPending() || l.state.overlay == nil {
		return l.state.Slots(a, n, after, limit)
	}
	changed, more, wiped := l.state.overlay.Storage(a, after, limit)
	if wiped {
		return changed, more, nil
	}
	return merge(
		&listing{page: changed, more: more, read: func(after *chain.Slot) ([]chain.SlotDiff, bool, error) {
			slots, more, _ := l.state.overlay.Storage(a, after, limit)
			return slots, more, nil
		}},
		&listing{last: after, more: true, read: func(after *chain.Slot) ([]chain.SlotDiff, bool, error) {
			return l.state.Slots(a, n, after, limit)
		}},
		limit)
}

// A listing is a sorted sequence of slots that is read page by page.
type listing struct {
	page []chain.SlotDiff
	last *chain.Slot // the slot taken last, which the next page begins after
	more bool        // there are others after the page
	read func(after *chain.Slot) (page []chain.SlotDiff, more bool, err error)
}

// peek returns the next slot; false at the end.
func (g *listing) peek() (s *chain.SlotDiff, ok bool, err error) {
	if len(g.page) == 0 && g.more {
		if g.page, g.more, err = g.read(g.last); err != nil {
			return nil, false, err
		}
	}
	if len(g.page) == 0 {
		return nil, false, nil
	}
	return &g.page[0], true, nil
}

func (g *listing) skip() {
	g.last, g.page = &g.page[0].Slot, g.page[1:]
}

// merge returns the first slots of what changes makes of sealed, without zeros.
func merge(changes, sealed *listing, limit int) (slots []chain.SlotDiff, more bool, err error) {
	for {
		s, isChange, err := changes.peek()
		if err != nil {
			return nil, false, err
		}
		below, isSealed, err := sealed.peek()
		if err != nil {
			return nil, false, err
		}
		if !isChange && !isSealed {
			return slots, false, nil
		}
		order := -1
		if !isChange {
			order = 1
		} else if isSealed {
			order = s.Slot.Cmp(below.Slot)
		}
		if order > 0 {
			s = below
		}
		if s.Value != (chain.Value{}) {
			if len(slots) == limit {
				return slots, true, nil
			}
			slots = append(slots, *s)
		}
		if order <= 0 {
			changes.skip()
		}
		if order >= 0 {
			sealed.skip()
		}
	}
}
