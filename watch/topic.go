// SPDX-License-Identifier: Apache-2.0

package watch

import "glimpse/chain"

// A Message is one notification: Text and then Tail. Text may be shared by many
// Subscriptions and must not be modified.
type Message struct {
	Text []byte
	Tail string
}

// messageOverhead is what a waiting Message takes beside its bytes.
const messageOverhead = 48

func (m Message) size() int { return len(m.Text) + len(m.Tail) + messageOverhead }

// A Topic is what a Subscription is about. Its methods are called by the
// goroutine of Run, and should take no longer than they must: all others wait.
// What they return is told as a whole or, where it does not fit, not at all.
type Topic[S Snapshot] interface {
	// Storage returns the address whose changes Step will ask for; ok is false
	// where it will not.
	Storage() (a chain.Address, ok bool)

	// Begin returns what is told first. Steps follow from exactly this snapshot.
	Begin(S) ([]Message, error)

	// Step returns what is told about a Step. An error ends the Subscription.
	Step(*Step[S]) ([]Message, error)
}

// Options bound a Watcher. The zero value has sensible bounds.
type Options struct {
	// MaxMessages and MaxBytes are how much may wait in one Subscription; 0
	// means 10,000 and 8 MiB.
	MaxMessages int
	MaxBytes    int

	// MaxTotalBytes is how much may wait in all of them; 0 means 256 MiB. Above
	// it the one with the most ends.
	MaxTotalBytes int

	// MaxSubscriptions is how many there may be; 0 means 10,000.
	MaxSubscriptions int
}

func (o Options) withDefaults() Options {
	if o.MaxMessages == 0 {
		o.MaxMessages = 10_000
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 8 << 20
	}
	if o.MaxTotalBytes == 0 {
		o.MaxTotalBytes = 256 << 20
	}
	if o.MaxSubscriptions == 0 {
		o.MaxSubscriptions = 10_000
	}
	return o
}
