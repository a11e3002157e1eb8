// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"fmt"

	"glimpse/chain"
	"glimpse/watch"
)

// sharedFlashblocks is the key of what all subscribers to newFlashblocks are told.
type sharedFlashblocks struct{}

// A flashblockTopic tells the pending block each time that it grew or another one
// took its place, and when what was told of it does not hold any more.
type flashblockTopic struct {
	noStorage
	api *API
}

// Begin tells the pending block, if there is one.
func (t *flashblockTopic) Begin(s WatchedSnapshot) ([]watch.Message, error) {
	p, ok := s.Pending()
	if !ok {
		return nil, nil
	}
	m, err := t.api.renderFlashblock(s, p)
	return []watch.Message{m}, err
}

func (t *flashblockTopic) Step(s *step) ([]watch.Message, error) {
	return watch.Shared(s, sharedFlashblocks{}, func() (messages []watch.Message, err error) {
		before, was := s.Old.Pending()
		now, is := s.New.Pending()
		if was && is && before == now {
			return nil, nil
		}
		if was {
			kept, err := promiseKept(s.New, before)
			if err != nil {
				return nil, err
			}
			if !kept {
				messages = append(messages, renderRevoked(before))
			}
		}
		if is {
			m, err := t.api.renderFlashblock(s.New, now)
			if err != nil {
				return nil, err
			}
			messages = append(messages, m)
		}
		return messages, nil
	})
}

// promiseKept reports whether everything that was pre-confirmed in p is sealed, or
// still pre-confirmed, in the same block.
func promiseKept(s Snapshot, p *chain.Preconfirmed) (bool, error) {
	number := chain.Number(p.Header.Number.Uint64())
	reached := s.Latest().Number
	if now, ok := s.Pending(); ok {
		reached = chain.Number(now.Header.Number.Uint64())
	}
	if reached < number {
		return false, nil
	}
	for i, hash := range p.Hashes {
		if b, index, ok := s.PendingTransaction(hash); ok {
			if index != i || b.Header.Number.Cmp(p.Header.Number) != 0 {
				return false, nil
			}
			continue
		}
		n, index, ok, err := s.Transaction(hash)
		if err != nil {
			return false, fmt.Errorf("transaction %s: %w", hash, err)
		}
		if !ok || n != number || index != i {
			return false, nil
		}
	}
	return true, nil
}

// renderFlashblock renders the pending block as eth_getBlockByNumber does, with
// the index of its last flashblock.
func (a *API) renderFlashblock(s Snapshot, p *chain.Preconfirmed) (watch.Message, error) {
	out, err := newBlockJSON((&session{Snapshot: s, api: a}).preconfirmed(p), false)
	if err != nil {
		return watch.Message{}, fmt.Errorf("render pending block: %w", err)
	}
	text, err := appendJSON(nil, out)
	if err != nil {
		return watch.Message{}, err
	}
	text = append(text[:len(text)-1], `,"index":`...)
	return watch.Message{Text: append(appendQuantity(text, p.Index), '}')}, nil
}

// renderRevoked says that p, or a part of it, is neither sealed nor promised any
// more.
func renderRevoked(p *chain.Preconfirmed) watch.Message {
	text := appendQuantity([]byte(`{"revoked":true,"number":`), p.Header.Number.Uint64())
	text = appendData(append(text, `,"parentHash":`...), p.Header.ParentHash[:])
	text = appendQuantity(append(text, `,"index":`...), p.Index)
	return watch.Message{Text: append(text, '}')}
}
