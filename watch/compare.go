// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"

	"glimpse/chain"
)

// compare fills in what changed in one slot. It reads sealed state only where
// what is pre-confirmed does not tell.
func (s *Step[S]) compare(a chain.Address, k chain.Slot, st *storage, t *touched) error {
	if t.read {
		return nil
	}
	before, after := preconfirmed(t.before, st.oldWiped), preconfirmed(t.after, st.newWiped)
	sealed := t.sealed || st.removedWipe || st.addedWipe != none
	writer := max(t.writer, st.addedWipe)
	if sealed || before == nil || after == nil {
		was, err := slotOf(s.Old, a, k)
		if err != nil {
			return err
		}
		is := was
		if sealed {
			if is, err = slotOf(s.New, a, k); err != nil {
				return err
			}
		}
		if was != is {
			t.changes = append(t.changes, s.change(k, is, Latest, false, writer))
		}
		if before == nil {
			before = &was
		}
		if after == nil {
			after = &is
		}
	}
	if *before != *after {
		fromOverlay := t.after != nil || st.newWiped
		t.changes = append(t.changes, s.change(k, *after, Pending, fromOverlay, writer))
	}
	t.read = true
	return nil
}

// preconfirmed is the value that an overlay has for a slot; nil where it has none.
func preconfirmed(named *chain.Value, wiped bool) *chain.Value {
	if named == nil && wiped {
		return new(chain.Value)
	}
	return named
}

func slotOf[S Snapshot](s S, a chain.Address, k chain.Slot) (chain.Value, error) {
	view, err := s.View(chain.Latest)
	if err != nil {
		return chain.Value{}, fmt.Errorf("state of the latest block: %w", err)
	}
	v, err := view.Slot(a, k)
	if err != nil {
		return v, fmt.Errorf("slot %s of %s: %w", k, a, err)
	}
	return v, nil
}

// change describes a slot that shows v now.
func (s *Step[S]) change(k chain.Slot, v chain.Value, tag Tag, fromOverlay bool, writer int) *Change {
	c := &Change{Slot: k, Value: v, Tag: tag, Level: levelOf(tag, fromOverlay, writer != none)}
	switch {
	case c.Level == Preconfirmed:
		c.promise(s.New.Pending())
	case c.Level == Sealed:
		c.seal(s.Added[writer])
	case tag == Latest:
		c.seal(s.Ancestor)
	default:
		c.seal(s.New.Latest())
	}
	return c
}

func (c *Change) seal(at chain.Ref) { c.Block, c.Hash = at.Number, at.Hash }

func (c *Change) promise(p *chain.Preconfirmed, ok bool) {
	if ok { // always, where something is pre-confirmed
		c.Block, c.Index = chain.Number(p.Header.Number.Uint64()), p.Index
	}
}

// Current returns where a subscriber to the storage of an address begins in s:
// for slots that are given, the value of each on latest and on pending; where they
// are nil, those that pending shows otherwise than latest, so that the state of
// the latest block and these are all of it. The error is ErrTooMuch, or that of a
// read.
func Current[S Snapshot](s S, a chain.Address, slots []chain.Slot) ([]*Change, error) {
	named, wiped := s.PendingChanges(a)
	st := newStorage()
	st.setPending(nil, named)
	st.newWiped = wiped
	still := &Step[S]{Old: s, New: s, Ancestor: s.Latest()}
	if slots == nil {
		return still.allChanges(a, st)
	}
	changes := make([]*Change, 0, 2*len(slots))
	for _, k := range slots {
		v, err := slotOf(s, a, k)
		if err != nil {
			return nil, err
		}
		latest := &Change{Slot: k, Value: v, Tag: Latest, Level: Sealed}
		latest.seal(s.Latest())
		pending := *latest
		pending.Tag = Pending
		if t := st.slots[k]; t != nil || wiped {
			pending = Change{Slot: k, Tag: Pending, Level: Preconfirmed}
			pending.promise(s.Pending())
			if t != nil {
				pending.Value = *t.after
			}
		}
		changes = append(changes, latest, &pending)
	}
	return changes, nil
}
