// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"glimpse/chain"
)

func listStorage(s *session, dst []byte, args *arguments) ([]byte, error) {
	addr, sel, p := args.address(), args.block(), takePage(args, parseHash)
	if err := args.done(); err != nil {
		return nil, err
	}
	slots, more, err := s.Slots(sel, addr, p.after, p.limit)
	if err != nil {
		return nil, err
	}
	dst, _, err = s.appendPlace(dst, sel)
	if err != nil {
		return nil, err
	}
	dst = append(dst, `,"slots":`...)
	dst = appendSlots(dst, slots)
	dst = append(dst, `,"next":`...)
	if more {
		dst = appendData(dst, slots[len(slots)-1].Slot[:])
	} else {
		dst = appendNull(dst)
	}
	return append(dst, '}'), nil
}

// appendPlace begins an object with which state it is about: "block" and "hash"
// of a sealed block, or "block" and "index" of the last flashblock. It returns
// the height of the sealed block that this is, or stands on.
func (s *session) appendPlace(dst []byte, sel chain.Selector) ([]byte, chain.Number, error) {
	n, err := s.Locate(sel)
	if err != nil {
		return nil, 0, err
	}
	dst = append(dst, `{"block":`...)
	if p, ok := s.Pending(); ok && sel.IsPending() {
		dst = appendQuantity(dst, p.Header.Number.Uint64())
		dst = append(dst, `,"hash":null`...)
		return appendLevel(dst, p), n, nil
	}
	hash, err := s.Hash(n)
	if err != nil {
		return nil, 0, err
	}
	dst = appendQuantity(dst, uint64(n))
	dst = append(dst, `,"hash":`...)
	dst = appendData(dst, hash[:])
	return appendLevel(dst, nil), n, nil
}

// appendSlots appends an array of slots with their values.
func appendSlots(dst []byte, slots []chain.SlotDiff) []byte {
	dst = append(dst, '[')
	for i := range slots {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"slot":`...)
		dst = appendData(dst, slots[i].Slot[:])
		dst = append(dst, `,"value":`...)
		dst = appendData(dst, slots[i].Value[:])
		dst = append(dst, '}')
	}
	return append(dst, ']')
}
