// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"glimpse/chain"
	"glimpse/jsonrpc"
)

// A version is one entry of a history: what was from this block on.
type version struct {
	block chain.Number
	value chain.Hash
}

// A span is the blocks that a history is asked of: sealed ones from first to last,
// and what is pre-confirmed on the latest.
type span struct {
	first, last chain.Number
	sealed      bool                // first to last are part of it
	pending     *chain.Preconfirmed // nil where that is not
}

// takeSpan takes the parameters fromBlock and toBlock, whose blocks resolve finds
// once all parameters have been read.
func (a *arguments) takeSpan() (resolve func(*session) (span, error)) {
	from, to := a.height(), a.height()
	return func(s *session) (span, error) { return s.span(from, to) }
}

func (s *session) span(from, to chain.Selector) (sp span, err error) {
	pending, preconfirmed := s.Pending()
	if sp.last, err = s.Locate(to); err != nil {
		return sp, err
	}
	if sp.first, err = s.Locate(from); err != nil {
		return sp, err
	}
	if preconfirmed && to.IsPending() {
		sp.pending = pending
	}
	sp.sealed = !preconfirmed || !from.IsPending()
	if sp.first > sp.last || !sp.sealed && sp.pending == nil {
		return sp, jsonrpc.InvalidParams("the range of blocks ends before it begins")
	}
	return sp, nil
}

// parseBlockToken reads the token of a history: the block of the last entry.
func parseBlockToken(v jsonrpc.Value) (n chain.Number, why string) {
	large, why := parseUint64(v)
	return chain.Number(large), why
}

// A timeline is where a history comes from.
type timeline struct {
	// sealed returns versions from one sealed block to another, as
	// Snapshot.SlotHistory does.
	sealed func(from, to chain.Number, limit int) (versions []version, more bool, err error)

	// preconfirmed returns the value that is pre-confirmed.
	preconfirmed func() (chain.Hash, error)

	// appendValue appends a value as the members of a JSON object.
	appendValue func(dst []byte, value chain.Hash) []byte
}

// appendHistory appends one page of a history. Every entry has another value
// than the one before it, but for the first, which is what was there at the
// beginning.
func appendHistory(dst []byte, sp span, p page[chain.Number], t timeline) ([]byte, error) {
	if p.after != nil && (!sp.sealed || *p.after < sp.first || *p.after > sp.last) {
		return nil, jsonrpc.InvalidParams(`member "after" of the page is not in the range of blocks`)
	}
	versions, more, err := sealedPage(sp, p, t)
	if err != nil {
		return nil, err
	}
	var promised *version
	if sp.pending != nil && !more {
		value, err := t.preconfirmed()
		if err != nil {
			return nil, err
		}
		if len(versions) == 0 || versions[len(versions)-1].value != value {
			promised = &version{chain.Number(sp.pending.Header.Number.Uint64()), value}
		}
	}
	if p.after != nil {
		versions = versions[1:] // the page before had it
	}
	dst = append(dst, `{"changes":[`...)
	for i, v := range versions {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendVersion(dst, v, nil, t)
	}
	if promised != nil && len(versions) < p.limit {
		if len(versions) > 0 {
			dst = append(dst, ',')
		}
		dst, promised = appendVersion(dst, *promised, sp.pending, t), nil
	}
	dst = append(dst, `],"next":`...)
	if more || promised != nil {
		dst = appendQuantity(dst, uint64(versions[len(versions)-1].block))
	} else {
		dst = appendNull(dst)
	}
	return append(dst, '}'), nil
}

// sealedPage returns the sealed versions of a page. Where it is not the first
// page, they begin with what was in force at its end.
func sealedPage(sp span, p page[chain.Number], t timeline) (versions []version, more bool, err error) {
	switch {
	case !sp.sealed:
		return nil, false, nil
	case p.after != nil:
		return t.sealed(*p.after, sp.last, p.limit+1)
	}
	return t.sealed(sp.first, sp.last, p.limit)
}

// appendVersion appends an entry, pre-confirmed where pending is not nil.
func appendVersion(dst []byte, v version, pending *chain.Preconfirmed, t timeline) []byte {
	dst = append(dst, `{"block":`...)
	dst = appendQuantity(dst, uint64(v.block))
	dst = appendLevel(dst, pending)
	dst = t.appendValue(dst, v.value)
	return append(dst, '}')
}

// appendLevel appends the members that tell sealed from pre-confirmed state.
func appendLevel(dst []byte, pending *chain.Preconfirmed) []byte {
	if pending == nil {
		return append(dst, `,"level":"sealed"`...)
	}
	dst = append(dst, `,"index":`...)
	dst = appendQuantity(dst, pending.Index)
	return append(dst, `,"level":"preconfirmed"`...)
}

func getStorageHistory(s *session, dst []byte, args *arguments) ([]byte, error) {
	addr, slot, resolve, p := args.address(), args.position(), args.takeSpan(), takePage(args, parseBlockToken)
	if err := args.done(); err != nil {
		return nil, err
	}
	sp, err := resolve(s)
	if err != nil {
		return nil, err
	}
	return appendHistory(dst, sp, p, timeline{
		sealed: func(from, to chain.Number, limit int) ([]version, bool, error) {
			slots, more, err := s.SlotHistory(addr, slot, from, to, limit)
			versions := make([]version, len(slots))
			for i, v := range slots {
				versions[i] = version{v.Block, v.Value}
			}
			return versions, more, err
		},
		preconfirmed: func() (chain.Hash, error) {
			view, err := s.View(chain.Pending)
			if err != nil {
				return chain.Hash{}, err
			}
			return view.Slot(addr, slot)
		},
		appendValue: func(dst []byte, value chain.Hash) []byte {
			return appendData(append(dst, `,"value":`...), value[:])
		},
	})
}

func getCodeHistory(s *session, dst []byte, args *arguments) ([]byte, error) {
	addr, resolve, p := args.address(), args.takeSpan(), takePage(args, parseBlockToken)
	if err := args.done(); err != nil {
		return nil, err
	}
	sp, err := resolve(s)
	if err != nil {
		return nil, err
	}
	return appendHistory(dst, sp, p, timeline{
		sealed: func(from, to chain.Number, limit int) ([]version, bool, error) {
			codes, more, err := s.CodeHistory(addr, from, to, limit)
			versions := make([]version, len(codes))
			for i, v := range codes {
				versions[i] = version{v.Block, v.Hash}
			}
			return versions, more, err
		},
		preconfirmed: func() (chain.Hash, error) {
			view, err := s.View(chain.Pending)
			if err != nil {
				return chain.Hash{}, err
			}
			account, err := view.Account(addr)
			return account.CodeHash, err
		},
		appendValue: appendCodeHash,
	})
}

// appendCodeHash appends the hash of a code, null where there is no code.
func appendCodeHash(dst []byte, hash chain.Hash) []byte {
	dst = append(dst, `,"codeHash":`...)
	if hash == (chain.Hash{}) {
		return appendNull(dst)
	}
	return appendData(dst, hash[:])
}
