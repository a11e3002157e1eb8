// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"glimpse/chain"
	"glimpse/replica"
)

// Stats returns the numbers as they are now.
func (t *Tail) Stats() TailStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.stats
	s.Outcomes, s.PendingOutcomes = maps.Clone(s.Outcomes), maps.Clone(s.PendingOutcomes)
	s.Connected = s.Connected && t.nc.IsConnected()
	if s.Writer.Number > s.Place.Number {
		s.Blocks = uint64(s.Writer.Number - s.Place.Number)
	}
	if !s.Live || s.Blocks > 0 {
		s.Behind = time.Since(s.since)
	}
	return s
}

// open opens the stream and decides from where on it is read. Where it is the
// stream that was read before, and has all that follows, that is where it was;
// otherwise it is where the stream has the replica's head.
func (t *Tail) open(ctx context.Context) (jetstream.Stream, error) {
	if err := connected(t.nc); err != nil {
		return nil, err
	}
	stream, err := t.js.Stream(ctx, t.settings.Name)
	if err != nil {
		return nil, fmt.Errorf("open stream %s: %w", t.settings.Name, noStream(err))
	}
	info := stream.CachedInfo()
	if err := checkIdentity(&info.Config, t.chain); err != nil {
		return nil, err
	}
	_, found := t.applier.Place()
	state := info.State
	if found && t.created.Equal(info.Created) && state.FirstSeq <= t.sequence+1 && state.LastSeq >= t.sequence {
		if state.LastSeq == t.sequence {
			err = t.caughtUp()
		}
		return stream, err
	}
	return stream, t.reposition(ctx, stream, info)
}

// reposition makes the Applier search, and finds a place to read from.
func (t *Tail) reposition(ctx context.Context, stream jetstream.Stream, info *jetstream.StreamInfo) error {
	head, err := t.applier.Head()
	if err != nil {
		return err
	}
	// A place that led nowhere is not tried again.
	first := max(info.State.FirstSeq, 1)
	start := first
	if !t.wholeWanted {
		if start, err = locate(ctx, stream, first, info.State.LastSeq, head); err != nil {
			return err
		}
	}
	t.applier.Restart()
	t.blocks.Reset()
	t.created, t.sequence, t.fromFirst, t.wholeWanted, t.missing = info.Created, start-1, start == first, false, replica.Range{}
	t.count(func(s *TailStats) { s.Restarts++ })
	t.note()
	return nil
}

// nearby is how many messages around the height of the replica's head are looked
// at. Elsewhere the block can only be in a stream full of reorganisations, which
// is read from its first message then.
const nearby = 128

// locate returns the message that begins the event of a block, or first. Heights
// ascend but for reorganisations, so it is found by halving.
func locate(ctx context.Context, stream jetstream.Stream, first, last uint64, head chain.Ref) (uint64, error) {
	low, high := first, last+1
	for low < high {
		middle := low + (high-low)/2
		f, ok, err := frameAt(ctx, stream, middle)
		if err != nil {
			return 0, err
		}
		if !ok || f.At.Number < head.Number {
			low = middle + 1
		} else {
			high = middle
		}
	}
	for sequence := low; sequence <= last && sequence < low+nearby; sequence++ {
		f, ok, err := frameAt(ctx, stream, sequence)
		if err != nil {
			return 0, err
		}
		if ok && f.At == head && sequence >= first+f.Index {
			return sequence - f.Index, nil
		}
	}
	return first, nil
}

// frameAt returns the head of one message; ok is false where the stream has it no
// more or it is none of ours.
func frameAt(ctx context.Context, stream jetstream.Stream, sequence uint64) (f *replica.Frame, ok bool, err error) {
	m, err := stream.GetMsg(ctx, sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read message %d: %w", sequence, err)
	}
	f, malformed := replica.DecodeFrame(m.Data)
	return f, malformed == nil, nil
}

// stillThere ends the session where the stream is not the one that is read, or
// does not have what follows any more.
func (t *Tail) stillThere(ctx context.Context, stream jetstream.Stream) error {
	t.count(func(s *TailStats) { s.PendingLost = t.dropped() })
	info, err := stream.Info(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("look for stream %s: %w", t.settings.Name, noStream(err))
	case !info.Created.Equal(t.created) || info.State.LastSeq < t.sequence || info.State.FirstSeq > t.sequence+1:
		return fmt.Errorf("stream %s was deleted, or has lost messages", t.settings.Name)
	}
	t.count(func(s *TailStats) { s.Answered = time.Now() })
	return nil
}
