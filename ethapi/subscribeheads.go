// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"errors"
	"slices"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/jsonrpc"
	"glimpse/watch"
)

// sharedHeads is the key of what all subscribers to newHeads are told.
type sharedHeads struct{}

// A headTopic tells the header of each block that is new, in order. After a reorg
// these are the headers of the new branch.
type headTopic struct {
	noStorage
	api *API
}

// Begin tells nothing: the first is the next block.
func (t *headTopic) Begin(WatchedSnapshot) ([]watch.Message, error) { return nil, nil }

func (t *headTopic) Step(s *step) ([]watch.Message, error) {
	return watch.Shared(s, sharedHeads{}, func() (messages []watch.Message, err error) {
		for _, ref := range s.Added {
			b, err := t.api.blockIn(s, s.New, ref)
			if err != nil {
				return nil, err
			}
			// go-ethereum's own rendering of a header is what its newHeads tells.
			text, err := appendJSON(nil, b.header)
			if err != nil {
				return nil, err
			}
			messages = append(messages, watch.Message{Text: text})
		}
		return messages, nil
	})
}

// blockIn returns a block of a snapshot of s, the same for all who ask.
func (a *API) blockIn(s *step, of WatchedSnapshot, ref chain.Ref) (*block, error) {
	return watch.Shared(s, ref, func() (*block, error) {
		return (&session{Snapshot: of, api: a}).sealed(ref.Number)
	})
}

// A logTopic tells logs as eth_getLogs has them: first those that a reorg took
// away, newest first and marked as removed, then those that are new.
type logTopic struct {
	noStorage
	api    *API
	filter filter
}

// liveFilter takes a filter for blocks to come. Of a range its numbers count; what
// is before the subscription is for eth_getLogs.
func (a *arguments) liveFilter() filter {
	f := a.filter()
	if f.hash != nil && a.err == nil {
		a.refuse("filter", "blockHash is for eth_getLogs: a subscription is about blocks to come")
	}
	return f
}

// covers reports whether a block is in the range of the filter.
func (f *filter) covers(n chain.Number) bool {
	from, bounded := f.from.Number()
	if bounded && n < from {
		return false
	}
	to, bounded := f.to.Number()
	return !bounded || n <= to
}

// Begin tells nothing: the first logs are those of the next block.
func (t *logTopic) Begin(WatchedSnapshot) ([]watch.Message, error) { return nil, nil }

func (t *logTopic) Step(s *step) ([]watch.Message, error) {
	found := logCollector{filter: &t.filter}
	collect := func(of WatchedSnapshot, refs []chain.Ref, after func([]*types.Log)) error {
		for _, ref := range refs {
			if !t.filter.covers(ref.Number) {
				continue
			}
			b, err := t.api.blockIn(s, of, ref)
			if err != nil {
				return err
			}
			before := len(found.logs)
			if err := found.add(b); err != nil {
				return tooMuch(err)
			}
			after(found.logs[before:])
		}
		return nil
	}
	if err := collect(s.Old, s.Removed, slices.Reverse[[]*types.Log]); err != nil {
		return nil, err
	}
	removed := len(found.logs)
	if err := collect(s.New, s.Added, func([]*types.Log) {}); err != nil {
		return nil, err
	}
	messages := make([]watch.Message, len(found.logs))
	for i, log := range found.logs {
		text, err := renderLog(s, log, i < removed)
		if err != nil {
			return nil, err
		}
		messages[i] = watch.Message{Text: text}
	}
	return messages, nil
}

// tooMuch says in the words of a subscription that a limit of eth_getLogs was
// reached.
func tooMuch(err error) error {
	if limit := new(jsonrpc.Error); errors.As(err, &limit) {
		return watch.ErrTooMuch
	}
	return err
}

// renderLog renders a log once for all who are told it. A log belongs to one
// block, which is removed or added, so it needs no key for that.
func renderLog(s *step, log *types.Log, removed bool) ([]byte, error) {
	return watch.Shared(s, log, func() ([]byte, error) {
		told := *log
		told.Removed = removed
		return appendJSON(nil, &told)
	})
}
