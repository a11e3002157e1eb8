// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"context"
	"fmt"
	"time"

	"glimpse/chain"
)

// ErrFetch is wrapped by every error of a read that went upstream. Another
// attempt may succeed.
var ErrFetch = fmt.Errorf("reading from the upstream failed: %w", chain.ErrUnavailable)

// A Key is a slot of an account.
type Key struct {
	Address chain.Address
	Slot    chain.Slot
}

// A CodeKey is the code of an account and the hash that it must have.
type CodeKey struct {
	Address chain.Address
	Hash    chain.Hash
}

// An Account is an account and, where it came along, its code.
type Account struct {
	chain.Account
	Code []byte // nil where there is none, or where Codes has to be asked for it
}

// A Source is an upstream node. Each method returns as many values as it was
// asked for, in that order, all of them as of the end of exactly the block with
// this hash, or an error: an answer that is missing or null is an error and never
// zero. Where the upstream has the block but not its state, the error should be a
// *chain.Miss with the reason chain.Pruned, so that the caller is told that.
//
// A Source that checks proofs does so before it returns. It is used by several
// goroutines at once. What it returns is the caller's.
type Source interface {
	Slots(ctx context.Context, block chain.Ref, keys []Key) ([]chain.Value, error)

	// Accounts returns the zero Account for one that does not exist.
	Accounts(ctx context.Context, block chain.Ref, addresses []chain.Address) ([]Account, error)

	// Codes returns bytecode, which the caller compares with its hash.
	Codes(ctx context.Context, block chain.Ref, keys []CodeKey) ([][]byte, error)
}

// Options bound what an Origin or a Past asks of its Source. Zero means the
// default.
type Options struct {
	// Timeout is how long one read waits, and how long one upstream call may
	// take: 5 s.
	Timeout time.Duration

	// Linger is how long a read waits for others to travel with: 1 ms.
	Linger time.Duration

	// BatchSize is how many values one upstream call asks for: 100.
	BatchSize int

	// MaxCalls is how many upstream calls of one kind, slots or accounts, are
	// made at once: 4.
	MaxCalls int

	// MaxWaiting is how many values of one kind may be waited for at once:
	// 10000. More are refused, so that an upstream that hangs does not fill the
	// memory.
	MaxWaiting int

	// CacheBytes bounds what a Past keeps: 32 MiB. An Origin has no cache.
	CacheBytes int
}

func (o Options) filled() Options {
	fill(&o.Timeout, 5*time.Second)
	fill(&o.Linger, time.Millisecond)
	fill(&o.BatchSize, 100)
	fill(&o.MaxCalls, 4)
	fill(&o.MaxWaiting, 10_000)
	fill(&o.CacheBytes, 32<<20)
	return o
}

func fill[T time.Duration | int](v *T, value T) {
	if *v <= 0 {
		*v = value
	}
}
