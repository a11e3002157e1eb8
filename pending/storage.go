// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"slices"

	"glimpse/chain"
)

// Storage returns up to limit slots of an address that were changed, in order of
// their keys, beginning after the slot after, or at the first where that is nil.
// More says that there are others after the last. A slot that was cleared is
// listed as zero; where wiped is true everything that is not listed is zero, and
// no zero is listed. The result must not be modified.
//
// Of the layers only what is returned is copied.
func (o *Overlay) Storage(addr chain.Address, after *chain.Slot, limit int) (slots []chain.SlotDiff, more, wiped bool) {
	lists, wiped := o.written(addr, after)
	for {
		s, ok := takeLeast(lists)
		switch {
		case !ok:
			return slots, false, wiped
		case wiped && s.Value == (chain.Value{}):
		case len(slots) >= limit:
			return slots, true, wiped
		default:
			slots = append(slots, s)
		}
	}
}

// written returns what each layer wrote to an address after a slot, the newest
// first, down to the one that wiped it. The lists are for the caller to shorten.
func (o *Overlay) written(addr chain.Address, after *chain.Slot) (lists [][]chain.SlotDiff, wiped bool) {
	for i := len(o.layers) - 1; i >= 0 && !wiped; i-- {
		a := o.layers[i].account(addr)
		if a == nil {
			continue
		}
		list := a.Slots
		if after != nil {
			at, found := slices.BinarySearchFunc(list, *after, func(s chain.SlotDiff, k chain.Slot) int { return s.Slot.Cmp(k) })
			if found {
				at++
			}
			list = list[at:]
		}
		lists, wiped = append(lists, list), a.Wiped
	}
	return lists, wiped
}

// takeLeast takes the slot with the lowest key from all lists that have it, and
// returns what the first of them says. It looks at each list: there are at most
// a few more than maxDepth.
func takeLeast(lists [][]chain.SlotDiff) (least chain.SlotDiff, ok bool) {
	for _, list := range lists {
		if len(list) > 0 && (!ok || list[0].Slot.Cmp(least.Slot) < 0) {
			least, ok = list[0], true
		}
	}
	if !ok {
		return least, false
	}
	for i, list := range lists {
		if len(list) > 0 && list[0].Slot == least.Slot {
			lists[i] = list[1:]
		}
	}
	return least, true
}

// Diff returns everything that was changed as one Diff, which must not be
// modified.
func (o *Overlay) Diff() *chain.Diff { return foldLayers(o.layers) }

func foldLayers(layers []*layer) *chain.Diff {
	switch len(layers) {
	case 0:
		return new(chain.Diff)
	case 1:
		return layers[0].diff
	}
	half := len(layers) / 2
	return foldDiffs(foldLayers(layers[:half]), foldLayers(layers[half:]))
}
