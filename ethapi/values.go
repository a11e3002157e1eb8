// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"fmt"

	"glimpse/chain"
	"glimpse/jsonrpc"
)

// maxSlots is how many slots one eth_getStorageValues may ask for.
const maxSlots = 1024

const codeTooManySlots = -38026

// A slotRequest is one address of eth_getStorageValues with its slots.
type slotRequest struct {
	addr  chain.Address
	slots []chain.Slot
}

func getStorageValues(s *session, dst []byte, args *arguments) ([]byte, error) {
	requests := args.slotRequests()
	sel := args.block()
	if err := args.done(); err != nil {
		return nil, err
	}
	view, err := s.View(sel)
	if err != nil {
		return nil, err
	}
	dst = append(dst, '{')
	for i, r := range requests {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendData(dst, r.addr[:])
		dst = append(dst, ':', '[')
		for j, slot := range r.slots {
			if j > 0 {
				dst = append(dst, ',')
			}
			value, err := view.Slot(r.addr, slot)
			if err != nil {
				return nil, err
			}
			dst = appendData(dst, value[:])
		}
		dst = append(dst, ']')
	}
	return append(dst, '}'), nil
}

// slotRequests takes an object of addresses, each with a list of slots.
func (a *arguments) slotRequests() []slotRequest {
	v, given := a.required()
	if !given {
		return nil
	}
	var requests []slotRequest
	total := 0
	seen := make(map[chain.Address]struct{})
	a.err = v.Members(func(name []byte, value jsonrpc.Value) *jsonrpc.Error {
		r, err := parseSlotRequest(name, value, maxSlots-total)
		if err != nil {
			return err
		}
		// Written in two ways, one address can pass for two members.
		if _, twice := seen[r.addr]; twice {
			return jsonrpc.InvalidParams("address %s comes twice", r.addr)
		}
		seen[r.addr] = struct{}{}
		total += len(r.slots)
		requests = append(requests, r)
		return nil
	})
	if a.err == nil && total == 0 {
		a.err = jsonrpc.InvalidParams("empty request")
	}
	return requests
}

func parseSlotRequest(name []byte, value jsonrpc.Value, room int) (r slotRequest, _ *jsonrpc.Error) {
	if !decodeHex(r.addr[:], name) {
		return r, jsonrpc.InvalidParams("invalid address %q: want 0x and 40 hex digits", clip(name))
	}
	elements, ok := value.Elements()
	if !ok {
		return r, jsonrpc.InvalidParams("slots of %s must be an array", r.addr)
	}
	for {
		v, ok := elements.Next()
		if !ok {
			return r, nil
		}
		if len(r.slots) == room {
			return r, &jsonrpc.Error{Code: codeTooManySlots, Message: fmt.Sprintf("too many slots (max %d)", maxSlots)}
		}
		slot, why := parsePosition(v)
		if why != "" {
			return r, jsonrpc.InvalidParams("slot %d of %s: %s", len(r.slots), r.addr, why)
		}
		r.slots = append(r.slots, slot)
	}
}
