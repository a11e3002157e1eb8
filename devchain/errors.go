// SPDX-License-Identifier: Apache-2.0

package devchain

import "errors"

// Errors of the methods that are answered by the goroutine of Run.
var (
	// ErrStopped says that Run has returned.
	ErrStopped = errors.New("the chain has stopped")

	// ErrUnknownTransaction says that a transaction neither waits nor is
	// pre-confirmed.
	ErrUnknownTransaction = errors.New("transaction not found")

	// ErrDropped is wrapped, together with the reason, by the error of waiting
	// for a transaction that left the pool without being executed.
	ErrDropped = errors.New("transaction dropped")

	// ErrBusy says that too many callers wait for a transaction already.
	ErrBusy = errors.New("too many waiting for transactions")

	// ErrDepth says that a reorg of this many blocks cannot be made.
	ErrDepth = errors.New("cannot reorganise this many blocks")
)

// ErrPoolFull is the cause of a Refusal while the pool holds as much as it may.
// The text is go-ethereum's.
var ErrPoolFull = errors.New("txpool is full")

// errReplaced is why a transaction is dropped when another takes its place.
var errReplaced = errors.New("replaced by one that pays more")

// A Refusal is the error for a transaction that the pool does not take. Its text
// is what go-ethereum says in the same case, for callers to read; Cause is or
// wraps go-ethereum's error, from its packages core and core/txpool, or one of
// this package.
type Refusal struct{ Cause error }

func (r *Refusal) Error() string { return r.Cause.Error() }

func (r *Refusal) Unwrap() error { return r.Cause }

// refuse wraps a cause in a Refusal; nil stays nil.
func refuse(cause error) error {
	if cause == nil {
		return nil
	}
	return &Refusal{cause}
}
