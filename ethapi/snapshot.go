// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"context"
	"errors"
	"strconv"
	"time"

	"glimpse/chain"
	"glimpse/jsonrpc"
)

// The header fields about snapshots. A response says which one it was answered
// from (P7); a request may say which one it must not be older than, and how many
// milliseconds it has for that.
const (
	snapshotField = "Glimpse-Snapshot"
	atLeastField  = "Glimpse-At-Least"
	waitField     = "Glimpse-Wait"
)

// Headers returns the header fields that an API reads of a request.
func Headers() []string { return []string{atLeastField, waitField} }

// Stamp implements jsonrpc.Stamped.
func (s *session) Stamp() (name string, value []byte) {
	if s.Snapshot == nil {
		return "", nil
	}
	return snapshotField, s.Snapshot.Stamp()
}

// AppendStamp appends the name of the current snapshot to dst, for a response
// that needs no session, and returns the header field that it belongs in.
func (a *API) AppendStamp(dst []byte) (name string, value []byte) {
	s := a.config.Acquire()
	defer s.Release()
	return snapshotField, append(dst, s.Stamp()...)
}

// acquire returns the snapshot that a request is answered from. With an error it
// returns the current one, which is what the response is stamped with, or nil
// where there is none any more.
func (a *API) acquire(ctx context.Context, header jsonrpc.Header) (Snapshot, error) {
	if header == nil {
		return a.config.Acquire(), nil
	}
	atLeast, wait := header.Peek(atLeastField), header.Peek(waitField)
	if atLeast == nil && wait == nil {
		return a.config.Acquire(), nil
	}
	progress, most, err := a.parseWish(atLeast, wait)
	if err != nil {
		return a.config.Acquire(), err
	}
	return a.acquireAtLeast(ctx, progress, most)
}

// parseWish reads the header fields of a request; nil is one that is absent. It
// is an error of every call where one cannot be read: a caller who asked for
// something must not believe to have it.
func (a *API) parseWish(atLeast, wait []byte) (progress chain.Progress, most time.Duration, err error) {
	if atLeast != nil {
		if progress, err = chain.ParseProgress(atLeast); err != nil {
			return progress, 0, jsonrpc.InvalidParams("invalid header %s: %v", atLeastField, err)
		}
	}
	if wait != nil {
		ms, err := strconv.ParseUint(string(wait), 10, 64)
		if err != nil || wait[0] == '0' && len(wait) > 1 {
			return progress, 0, jsonrpc.InvalidParams("invalid header %s: want milliseconds, decimal, without leading zeros", waitField)
		}
		if longest := max(a.config.MaxWait, 0); ms > uint64(longest.Milliseconds()) {
			most = longest
		} else {
			most = time.Duration(ms) * time.Millisecond
		}
	}
	return progress, most, nil
}

// acquireAtLeast waits up to most for a snapshot.
func (a *API) acquireAtLeast(ctx context.Context, progress chain.Progress, most time.Duration) (Snapshot, error) {
	current, err := a.current(progress)
	if err == nil || most <= 0 || a.config.AcquireAtLeast == nil {
		return current, err
	}
	defer a.waiting.Add(-1)
	if a.waiting.Add(1) > int64(a.config.MaxWaiting) {
		return current, err
	}
	current.Release() // a request that waits must not pin what it will not read
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	reached, err := a.config.AcquireAtLeast(ctx, progress)
	if miss := new(chain.Miss); errors.As(err, &miss) {
		return a.current(progress)
	}
	return reached, err
}

// current returns the current snapshot, with a *chain.Miss where that has not
// reached progress.
func (a *API) current(progress chain.Progress) (Snapshot, error) {
	s := a.config.Acquire()
	pending, _ := s.Pending()
	if latest := s.Latest().Number; !progress.ReachedBy(latest, pending) {
		return s, &chain.Miss{Reason: chain.NotYet, Oldest: s.Oldest(), Latest: latest}
	}
	return s, nil
}
