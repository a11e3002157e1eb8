// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"errors"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/jsonrpc"
)

// What one eth_getLogs may look through and answer with.
const (
	maxLogBlocks = 10_000
	maxLogs      = 10_000
	maxLogBytes  = 8 << 20 // of data, which takes twice as much as text
)

func getLogs(s *session, dst []byte, args *arguments) ([]byte, error) {
	f := args.filter()
	if err := args.done(); err != nil {
		return nil, err
	}
	first, last, err := s.logRange(&f)
	if err != nil {
		return nil, err
	}
	ctx, done, err := s.costly()
	if err != nil {
		return nil, err
	}
	defer done()
	found := logCollector{filter: &f, logs: []*types.Log{}}
	for n := first; n <= last.number; n++ {
		b := last
		if n < last.number {
			if b, err = s.sealed(n); err != nil {
				return nil, err
			}
		}
		if err := found.add(b); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return appendJSON(dst, found.logs)
}

// logRange returns the first block to look at and the last one.
func (s *session) logRange(f *filter) (first chain.Number, last *block, err error) {
	if f.hash != nil {
		last, err = s.blockOf(chain.ByHash(*f.hash))
		if err != nil {
			return 0, nil, err
		}
		return last.number, last, nil
	}
	if last, err = s.blockOf(f.to); err != nil {
		return 0, nil, beyondHead(err)
	}
	from, err := s.blockOf(f.from)
	if err != nil {
		return 0, nil, beyondHead(err)
	}
	switch {
	case from.number > last.number:
		return 0, nil, jsonrpc.InvalidParams("invalid block range params")
	case last.number-from.number >= maxLogBlocks:
		return 0, nil, jsonrpc.InvalidParams("block range of %d blocks, want at most %d", last.number-from.number+1, maxLogBlocks)
	}
	return from.number, last, nil
}

// beyondHead is what the specification has for a range whose end does not exist
// yet: an answer would be out of date once it does.
func beyondHead(err error) error {
	if miss := new(chain.Miss); errors.As(err, &miss) && miss.Reason == chain.Future {
		return jsonrpc.InvalidParams("block range extends beyond current head block")
	}
	return err
}

// A logCollector gathers what matches, up to the limits.
type logCollector struct {
	filter *filter
	logs   []*types.Log
	bytes  int
}

func (c *logCollector) add(b *block) error {
	if !c.filter.maybe(b.header.Bloom) {
		return nil
	}
	receipts, err := b.receipts()
	if err != nil {
		return err
	}
	for _, r := range receipts {
		for _, log := range r.Logs {
			if !c.filter.matches(log) {
				continue
			}
			c.logs = append(c.logs, log)
			c.bytes += len(log.Data)
			if len(c.logs) > maxLogs || c.bytes > maxLogBytes {
				return jsonrpc.InvalidParams("more than %d logs or %d bytes of data, up to block %d: ask for fewer blocks",
					maxLogs, maxLogBytes, b.number)
			}
		}
	}
	return nil
}
