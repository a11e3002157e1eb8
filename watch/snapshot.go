// SPDX-License-Identifier: Apache-2.0

package watch

import "glimpse/chain"

// A Snapshot is the node at one moment. It is used by the goroutine of
// Watcher.Run alone, and released there.
type Snapshot interface {
	Latest() chain.Ref

	// Stamp names the snapshot. The slice is good until Release.
	Stamp() []byte

	// Superseded is closed when something newer was published.
	Superseded() <-chan struct{}

	// Hash returns the hash of the sealed block of height n, Diff what it
	// changed: a *chain.Miss where that is pruned.
	Hash(n chain.Number) (chain.Hash, error)
	Diff(n chain.Number) (*chain.Diff, error)

	View(chain.Selector) (chain.View, error)

	// Slots returns up to limit non-zero slots of an account in order, beginning
	// after the slot after, or at the first where that is nil; more says that
	// there are others.
	Slots(sel chain.Selector, a chain.Address, after *chain.Slot, limit int) (slots []chain.SlotDiff, more bool, err error)

	// Pending returns the newest pre-confirmed block; false where pending means
	// latest. PendingChanges returns what is pre-confirmed about the storage of
	// an address: where wiped, every slot that is not listed is zero.
	Pending() (*chain.Preconfirmed, bool)
	PendingChanges(a chain.Address) (slots []chain.SlotDiff, wiped bool)

	Release()
}

// An Error is why a Subscription ended or could not begin, in words for the
// subscriber. They fit into the close frame of a WebSocket.
type Error string

func (e Error) Error() string { return string(e) }

// The reasons that are nobody's failure.
const (
	// ErrSlow ends a Subscription whose queue is full.
	ErrSlow Error = "slow consumer: notifications came faster than they were read"

	// ErrTooMuch ends a Subscription that one step alone is too much for.
	ErrTooMuch Error = "more values changed in one step than a subscription may hold"

	// ErrGap ends all Subscriptions where too many blocks lie between two
	// snapshots to tell one by one, or the changes of one are pruned.
	ErrGap Error = "too far behind: the blocks in between cannot be told any more, subscribe again"

	// ErrBusy refuses a Subscription where there are too many.
	ErrBusy Error = "too many subscriptions"

	// ErrStopped ends all Subscriptions when Run returns.
	ErrStopped Error = "the node is stopping"

	// ErrClosed is what Next returns after Close.
	ErrClosed Error = "the subscription is closed"
)
