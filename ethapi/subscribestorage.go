// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"slices"

	"glimpse/chain"
	"glimpse/jsonrpc"
	"glimpse/watch"
)

// maxWatchedSlots is how many slots one subscription may name.
const maxWatchedSlots = 1000

// A storageTopic tells every change of value in the storage of a contract, on
// latest and on pending.
type storageTopic struct {
	address chain.Address
	slots   []chain.Slot // sorted; nil for all
}

// storageTopic takes {address, slots?}. Members that it does not know are refused:
// a misspelt one would be a subscription to something else.
func (a *arguments) storageTopic() *storageTopic {
	t := new(storageTopic)
	v, given := a.required()
	if !given {
		return t
	}
	var address *chain.Address
	bad := v.Members(func(name []byte, value jsonrpc.Value) *jsonrpc.Error {
		switch string(name) {
		case "address":
			return assign(&address, name, value, pointer(parseAddress))
		case "slots":
			return assign(&t.slots, name, value, list(maxWatchedSlots, parsePosition))
		}
		return jsonrpc.InvalidParams("unknown member %q", clip(name))
	})
	switch {
	case bad != nil:
		a.refuse("storage", bad.Message)
	case address == nil:
		a.refuse("storage", "want an address")
	case t.slots != nil && len(t.slots) == 0:
		a.refuse("storage", "slots is empty: leave it out to watch all")
	default:
		t.address = *address
		slices.SortFunc(t.slots, chain.Slot.Cmp)
		t.slots = slices.Compact(t.slots)
	}
	return t
}

// Storage implements watch.Topic.
func (t *storageTopic) Storage() (chain.Address, bool) { return t.address, true }

// Begin tells where the subscriber starts: the snapshot, and the values that it
// cannot ask for in that snapshot by itself.
func (t *storageTopic) Begin(s WatchedSnapshot) ([]watch.Message, error) {
	changes, err := watch.Current(s, t.address, t.slots)
	if err != nil {
		return nil, err
	}
	messages := make([]watch.Message, 0, 1+len(changes))
	messages = append(messages, watch.Message{Text: t.appendStart(nil, s), Tail: tail(len(changes) > 0)})
	for i, c := range changes {
		text := appendChange(nil, t.address, c, s.Stamp())
		messages = append(messages, watch.Message{Text: text, Tail: tail(i+1 < len(changes))})
	}
	return messages, nil
}

func (t *storageTopic) Step(s *step) ([]watch.Message, error) {
	changes, err := s.Changes(t.address, t.slots)
	if err != nil {
		return nil, err
	}
	messages := make([]watch.Message, len(changes))
	for i, c := range changes {
		text, err := watch.Shared(s, c, func() ([]byte, error) {
			return appendChange(nil, t.address, c, s.New.Stamp()), nil
		})
		if err != nil {
			return nil, err
		}
		messages[i] = watch.Message{Text: text, Tail: tail(i+1 < len(changes))}
	}
	return messages, nil
}

// tail ends a message with whether another of the same step follows. It is apart
// from the rest because subscribers to other slots share that.
func tail(more bool) string {
	if more {
		return `true}`
	}
	return `false}`
}

func (t *storageTopic) appendStart(dst []byte, s WatchedSnapshot) []byte {
	latest := s.Latest()
	dst = appendData(append(dst, `{"start":true,"address":`...), t.address[:])
	dst = appendQuantity(append(dst, `,"block":`...), uint64(latest.Number))
	dst = appendData(append(dst, `,"blockHash":`...), latest.Hash[:])
	return appendSnapshot(dst, s.Stamp())
}

func appendChange(dst []byte, a chain.Address, c *watch.Change, stamp []byte) []byte {
	dst = appendData(append(dst, `{"address":`...), a[:])
	dst = appendData(append(dst, `,"slot":`...), c.Slot[:])
	dst = appendData(append(dst, `,"value":`...), c.Value[:])
	dst = append(append(dst, `,"tag":"`...), c.Tag...)
	dst = append(append(dst, `","level":"`...), c.Level...)
	dst = appendQuantity(append(dst, `","block":`...), uint64(c.Block))
	if c.Level == watch.Preconfirmed {
		dst = appendQuantity(append(dst, `,"blockHash":null,"index":`...), c.Index)
	} else {
		dst = appendData(append(dst, `,"blockHash":`...), c.Hash[:])
		dst = append(dst, `,"index":null`...)
	}
	return appendSnapshot(dst, stamp)
}

func appendSnapshot(dst, stamp []byte) []byte {
	dst = append(append(dst, `,"snapshot":"`...), stamp...)
	return append(dst, `","more":`...)
}
