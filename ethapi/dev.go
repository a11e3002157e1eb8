// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"context"
	"strconv"
	"time"

	"glimpse/chain"
	"glimpse/jsonrpc"
)

// Dev lets people make the embedded chain misbehave, to test their own software
// against pre-confirmations. It is safe for concurrent use. What cannot be done
// gives a *Refusal.
type Dev interface {
	Mine(context.Context) error   // seals now
	Pause(context.Context) error  // of sealing
	Resume(context.Context) error // of sealing
	Reorg(ctx context.Context, blocks int) error
	Revoke(context.Context, chain.Hash) error
}

// A Feed carries flashblocks and can be told to carry the next ones badly.
type Feed interface {
	Drop(ctx context.Context, next int) error
	Delay(ctx context.Context, next int, by time.Duration) error
	Duplicate(ctx context.Context, next int) error
	Reorder(ctx context.Context, next int) error
	Stall(context.Context) error
	Resume(context.Context) error
}

// misbehaving are the methods that only an embedded chain has.
var misbehaving = map[string]method{
	"evm_mine":                 command(func(s *session) error { return s.api.config.Dev.Mine(s.ctx) }),
	"dev_pauseSealing":         command(func(s *session) error { return s.api.config.Dev.Pause(s.ctx) }),
	"dev_resumeSealing":        command(func(s *session) error { return s.api.config.Dev.Resume(s.ctx) }),
	"dev_stallFeed":            command(func(s *session) error { return s.api.config.Feed.Stall(s.ctx) }),
	"dev_resumeFeed":           command(func(s *session) error { return s.api.config.Feed.Resume(s.ctx) }),
	"dev_dropFlashblocks":      nextFlashblocks(Feed.Drop),
	"dev_duplicateFlashblocks": nextFlashblocks(Feed.Duplicate),
	"dev_reorderFlashblocks":   nextFlashblocks(Feed.Reorder),
	"dev_delayFlashblocks":     delayFlashblocks,
	"dev_revoke":               revoke,
	"dev_reorg":                reorg,
}

// command is a method without parameters that answers true.
func command(run func(*session) error) method {
	return func(s *session, dst []byte, args *arguments) ([]byte, error) {
		if err := args.done(); err != nil {
			return nil, err
		}
		return append(dst, "true"...), run(s)
	}
}

// nextFlashblocks is a method about that many of the next flashblocks, one
// where it is not said.
func nextFlashblocks(run func(Feed, context.Context, int) error) method {
	return func(s *session, dst []byte, args *arguments) ([]byte, error) {
		n := args.count("number of flashblocks", 1)
		if err := args.done(); err != nil {
			return nil, err
		}
		return append(dst, "true"...), run(s.api.config.Feed, s.ctx, n)
	}
}

func delayFlashblocks(s *session, dst []byte, args *arguments) ([]byte, error) {
	n, ms := args.count("number of flashblocks", 1), args.count("milliseconds", 1000)
	if err := args.done(); err != nil {
		return nil, err
	}
	return append(dst, "true"...), s.api.config.Feed.Delay(s.ctx, n, time.Duration(ms)*time.Millisecond)
}

func revoke(s *session, dst []byte, args *arguments) ([]byte, error) {
	hash := args.hash("transaction hash")
	if err := args.done(); err != nil {
		return nil, err
	}
	return append(dst, "true"...), s.api.config.Dev.Revoke(s.ctx, hash)
}

func reorg(s *session, dst []byte, args *arguments) ([]byte, error) {
	n := args.count("number of blocks", 1)
	if err := args.done(); err != nil {
		return nil, err
	}
	return append(dst, "true"...), s.api.config.Dev.Reorg(s.ctx, n)
}

// maxCount bounds what one call can ask for.
const maxCount = 1_000_000

// count takes an optional number.
func (a *arguments) count(what string, otherwise int) int {
	v, given := a.next()
	if !given {
		return otherwise
	}
	n, why := parseCount(v)
	if why != "" {
		a.refuse(what, why)
	}
	return n
}

// parseCount reads a small number, as a QUANTITY or as a person writes it.
func parseCount(v jsonrpc.Value) (n int, why string) {
	var large uint64
	if _, quoted := v.Text(); quoted {
		large, why = parseUint64(v)
	} else if parsed, err := strconv.ParseUint(string(v), 10, 64); err == nil {
		large = parsed
	} else {
		why = "want a number"
	}
	if why == "" && large > maxCount {
		return 0, "want at most " + strconv.Itoa(maxCount)
	}
	return int(large), why
}
