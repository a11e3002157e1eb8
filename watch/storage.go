// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"maps"
	"slices"

	"glimpse/chain"
)

// maxChanged is how many slots of one contract a Step may have to look at for a
// subscriber to all of them: more would not fit into its queue.
const maxChanged = 10_000

// none is the place among the added blocks of one that is not there.
const none = -1

// storage is what a Step knows about the storage of one address before it reads
// a value. State of both snapshots, on latest and on pending, is that of the
// common ancestor with changes on top, all of which are named here; so a slot that
// is not named, of an account that is not wiped, has not changed.
type storage struct {
	slots map[chain.Slot]*touched

	removedWipe bool // a removed block wiped it
	addedWipe   int  // the newest added block that wiped it, or none

	// Whether what is pre-confirmed, before and after, wipes it.
	oldWiped, newWiped bool

	complete bool // what is pre-confirmed is in it

	all []*Change // of all slots; nil until asked for
}

// touched is a slot that may have changed.
type touched struct {
	sealed bool // a removed or an added block wrote it
	writer int  // the newest added block that wrote it, or none

	before, after *chain.Value // pre-confirmed; nil where it is as on latest

	read    bool
	changes []*Change // once read: at most one for each tag
}

func newStorage() *storage {
	return &storage{slots: make(map[chain.Slot]*touched), addedWipe: none}
}

func of(all map[chain.Address]*storage, a chain.Address) *storage {
	s := all[a]
	if s == nil {
		s = newStorage()
		all[a] = s
	}
	return s
}

func (s *storage) slot(k chain.Slot) *touched {
	t := s.slots[k]
	if t == nil {
		t = &touched{writer: none}
		s.slots[k] = t
	}
	return t
}

func (s *storage) remove(a *chain.AccountDiff) {
	s.removedWipe = s.removedWipe || a.Wiped
	for i := range a.Slots {
		s.slot(a.Slots[i].Slot).sealed = true
	}
}

// add takes in what the added block of this place did. They come oldest first.
func (s *storage) add(a *chain.AccountDiff, place int) {
	if a.Wiped {
		s.addedWipe = place
	}
	for i := range a.Slots {
		t := s.slot(a.Slots[i].Slot)
		t.sealed, t.writer = true, place
	}
}

// setPending takes in what is pre-confirmed before and after.
func (s *storage) setPending(before, after []chain.SlotDiff) {
	for i := range before {
		s.slot(before[i].Slot).before = &before[i].Value
	}
	for i := range after {
		s.slot(after[i].Slot).after = &after[i].Value
	}
}

// wiped reports whether slots that nothing names may have changed.
func (s *storage) wiped() bool {
	return s.removedWipe || s.addedWipe != none || s.oldWiped || s.newWiped
}

// Changes returns what changed in the storage of an address that the Topic
// watches: in the given slots, or in all where that is nil. They are in the order
// of slots, latest before pending. The slice and what is in it is shared and must
// not be modified. The error is ErrGap or ErrTooMuch, or that of a read.
func (s *Step[S]) Changes(a chain.Address, slots []chain.Slot) ([]*Change, error) {
	st, err := s.storageOf(a)
	if err != nil {
		return nil, err
	}
	if slots == nil {
		return s.allChanges(a, st)
	}
	var found []*Change
	if len(st.slots) == 0 && !st.wiped() {
		return nil, nil // nothing changed, which is most contracts in most steps
	}
	for _, k := range slots {
		t := st.slots[k]
		if t == nil {
			if !st.wiped() {
				continue
			}
			t = &touched{writer: none}
		}
		if err := s.compare(a, k, st, t); err != nil {
			return nil, err
		}
		found = append(found, t.changes...)
	}
	return found, nil
}

// storageOf returns what is known about an address.
func (s *Step[S]) storageOf(a chain.Address) (*storage, error) {
	if err := s.load(); err != nil {
		return nil, err
	}
	st := of(s.storage, a)
	if !st.complete {
		before, oldWiped := s.Old.PendingChanges(a)
		after, newWiped := s.New.PendingChanges(a)
		st.oldWiped, st.newWiped, st.complete = oldWiped, newWiped, true
		st.setPending(before, after)
	}
	return st, nil
}

func (s *Step[S]) allChanges(a chain.Address, st *storage) ([]*Change, error) {
	if st.all != nil {
		return st.all, nil
	}
	if st.wiped() {
		if err := s.list(a, st); err != nil {
			return nil, err
		}
	}
	if len(st.slots) > maxChanged {
		return nil, ErrTooMuch
	}
	all := []*Change{}
	for _, k := range slices.SortedFunc(maps.Keys(st.slots), chain.Slot.Cmp) {
		t := st.slots[k]
		if err := s.compare(a, k, st, t); err != nil {
			return nil, err
		}
		all = append(all, t.changes...)
	}
	st.all = all
	return all, nil
}

// list adds the slots that a wipe, or a wipe that was taken back, changed without
// naming them: those that are not zero at the common ancestor.
func (s *Step[S]) list(a chain.Address, st *storage) error {
	const page = 1000
	var after *chain.Slot
	for more := true; more; {
		var slots []chain.SlotDiff
		var err error
		slots, more, err = s.Old.Slots(chain.ByNumber(s.Ancestor.Number), a, after, page)
		if err != nil {
			return fmt.Errorf("slots of %s at %d: %w", a, s.Ancestor.Number, err)
		}
		for i := range slots {
			st.slot(slots[i].Slot)
			after = &slots[i].Slot
		}
		if len(st.slots) > maxChanged {
			return ErrTooMuch
		}
	}
	return nil
}
