// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"glimpse/chain"
	"glimpse/replica"
)

// What is sent before its acknowledgements are waited for. One at a time would
// cost the round trip and the server's sync for each block when catching up.
const (
	batchMessages = 64
	batchBytes    = 8 << 20
)

// keepHistory is how many published blocks are remembered, to find the ancestor
// of a reorganisation without reading the stream.
const keepHistory = 1024

// catchUp publishes all that the writer's store has more than the stream.
func (w *writing) catchUp(ctx context.Context) error {
	for {
		c, err := w.journal.Open()
		if err != nil {
			return fmt.Errorf("open the writer's store: %w", err)
		}
		// Facts that a block relies on were told before it was committed, so all
		// that the blocks of c need are in the queue by now.
		done, err := w.step(ctx, c)
		c.Release()
		if err != nil || done {
			return err
		}
	}
}

// step publishes the next few events; done says that there are no more.
func (w *writing) step(ctx context.Context, c Chain) (done bool, err error) {
	if err := w.sendFacts(ctx); err != nil {
		return false, err
	}
	on, err := onChain(c, w.cursor)
	if err != nil {
		return false, err
	}
	if !on || w.cursor.Number < c.Oldest() {
		to, err := w.ancestor(ctx, c)
		if err != nil {
			return false, err
		}
		return false, w.turn(ctx, c, to, c.Head())
	}
	if w.goal != nil {
		on, err := onChain(c, *w.goal)
		if err != nil {
			return false, err
		}
		if !on { // replicas would wait for it for ever
			return false, w.turn(ctx, c, w.cursor, c.Head())
		}
	}
	if w.cursor == c.Head() {
		return true, w.sendTags(ctx, c.Marks())
	}
	return false, w.sendBlocks(ctx, c)
}

// turn publishes that the chain goes on from a block, and that what follows is not
// to be shown before the goal is there.
func (w *writing) turn(ctx context.Context, c Chain, to, goal chain.Ref) error {
	if err := w.send(ctx, &replica.Unwound{To: to, Goal: goal}); err != nil {
		return err
	}
	w.goal = &goal
	w.marks = replica.Marks{Safe: upTo(w.marks.Safe, to), Finalized: upTo(w.marks.Finalized, to)}
	for len(w.history) > 0 && w.history[len(w.history)-1].Number >= to.Number {
		w.history = w.history[:len(w.history)-1]
	}
	w.arrive(to)
	w.count(func(s *PublisherStats) { s.Unwinds++ })
	return nil
}

func upTo(mark *chain.Ref, limit chain.Ref) *chain.Ref {
	if mark == nil || mark.Number > limit.Number {
		return nil
	}
	return mark
}

func (w *writing) arrive(ref chain.Ref) {
	if len(w.history) >= keepHistory {
		w.history = slices.Delete(w.history, 0, keepHistory/2)
	}
	w.cursor = ref
	if w.goal != nil && *w.goal == ref {
		w.goal = nil
	}
	w.history = append(w.history, ref)
	w.count(func(s *PublisherStats) { s.Published, s.Sequence = ref, w.sequence })
}

// sendBlocks publishes as many blocks above the cursor as are sent at once.
func (w *writing) sendBlocks(ctx context.Context, c Chain) error {
	var bodies []replica.Body
	marks := w.marks
	size := 0
	for n := w.cursor.Number + 1; n <= c.Head().Number && len(bodies) < batchMessages && size < batchBytes; n++ {
		s, err := c.Sealed(n)
		if err != nil {
			return fmt.Errorf("read block %d of the writer's store: %w", n, err)
		}
		// What is safe now may be above a block of the past; a replica that is
		// at that block cannot have it yet.
		now := c.Marks()
		marks.Safe, marks.Finalized = newer(marks.Safe, now.Safe, n), newer(marks.Finalized, now.Finalized, n)
		s.Marks = marks
		bodies = append(bodies, s)
		size += len(s.Header) + len(s.Body) + len(s.Receipts)
	}
	if err := w.send(ctx, bodies...); err != nil {
		return err
	}
	w.marks = marks
	for _, b := range bodies {
		w.arrive(b.(*replica.Sealed).Ref)
	}
	return nil
}

// newer returns the mark now, or the one before where now is above block n.
func newer(before, now *chain.Ref, n chain.Number) *chain.Ref {
	if now != nil && now.Number > n {
		return before
	}
	return now
}

func (w *writing) sendTags(ctx context.Context, now replica.Marks) error {
	same := func(a, b *chain.Ref) bool { return a == b || a != nil && b != nil && *a == *b }
	if same(now.Safe, w.marks.Safe) && same(now.Finalized, w.marks.Finalized) {
		return nil
	}
	if err := w.send(ctx, &replica.Tags{Head: w.cursor, Marks: now}); err != nil {
		return err
	}
	w.marks = now
	return nil
}

func (w *writing) sendFacts(ctx context.Context) error {
	for {
		f, ok := w.facts.peek()
		if !ok {
			return nil
		}
		err := w.send(ctx, &replica.Facts{Head: w.cursor, Facts: f})
		if err != nil && !errors.Is(err, errUnsendable) {
			return err
		}
		w.facts.drop()
	}
}

// errUnsendable is of an event that no retry sends.
var errUnsendable = errors.New("cannot be encoded")

// An outgoing message and its id.
type outgoing struct {
	id   string
	data []byte
}

// send publishes events and returns when they are in the stream, each once and in
// this order. Where that cannot be known it fails, and the session with it: the
// next one looks at what is there.
func (w *writing) send(ctx context.Context, bodies ...replica.Body) error {
	var messages []outgoing
	for i, b := range bodies {
		e := &replica.Event{Chain: w.chain, Epoch: w.epoch, Order: w.order + 1 + uint64(i), Body: b}
		pieces, err := replica.Cut(e, w.settings.Piece, w.settings.MaxEvent)
		if err != nil {
			return fmt.Errorf("%w: %w", errUnsendable, err)
		}
		for k, data := range pieces {
			// The block's hash is for people; what makes an id one of a kind is
			// the rest, because a block may leave the chain and come back.
			messages = append(messages, outgoing{fmt.Sprintf("%s:%T:%d.%d.%d:%s", e.At().Hash, b, e.Epoch, e.Order, k, w.nonce), data})
		}
	}
	for left := messages; len(left) > 0; {
		n := min(len(left), batchMessages)
		if err := w.append(ctx, left[:n]); err != nil {
			return err
		}
		left = left[n:]
	}
	w.order += uint64(len(bodies))
	w.count(func(s *PublisherStats) { s.Events += uint64(len(bodies)) })
	return nil
}

// append puts messages at the end of the stream.
func (w *writing) append(ctx context.Context, messages []outgoing) error {
	for tries := 0; len(messages) > 0; tries++ {
		left := len(messages)
		placed, failure := w.attempt(ctx, messages)
		messages = messages[placed:]
		if failure == nil {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// Some may be in the stream although nobody said so.
		placed, err := w.placed(ctx, messages)
		messages = messages[placed:]
		if len(messages) < left {
			tries = 0 // the way is slow, and not gone
		}
		switch {
		case err != nil:
			return errors.Join(err, failure)
		case tries >= 3:
			return fmt.Errorf("publish: %w", failure)
		}
		w.count(func(s *PublisherStats) { s.Retries += uint64(len(messages)) })
	}
	return nil
}

// attempt sends messages and returns how many were acknowledged, from the first
// on. Each is taken only where the one before it is the last of the stream; so
// what follows one that failed fails too.
func (w *writing) attempt(ctx context.Context, messages []outgoing) (placed int, err error) {
	futures := make([]jetstream.PubAckFuture, 0, len(messages))
	for i, m := range messages {
		f, err := w.js.PublishMsgAsync(&nats.Msg{Subject: w.settings.blocks(), Data: m.data, Header: nats.Header{}},
			jetstream.WithMsgID(m.id), jetstream.WithExpectStream(w.settings.Name),
			jetstream.WithExpectLastSequence(w.sequence+uint64(i)))
		if err != nil {
			break // what was not sent is not acknowledged
		}
		futures = append(futures, f)
	}
	for i, f := range futures {
		select {
		case ack := <-f.Ok():
			if ack.Sequence != w.sequence+1 {
				return i, fmt.Errorf("message is at %d, want %d", ack.Sequence, w.sequence+1)
			}
			w.advance(len(messages[i].data))
		case err := <-f.Err():
			return i, err
		case <-ctx.Done():
			return i, ctx.Err()
		}
	}
	if len(futures) < len(messages) {
		return len(futures), nats.ErrConnectionClosed
	}
	return len(messages), nil
}

func (w *writing) advance(bytes int) {
	w.sequence++
	w.count(func(s *PublisherStats) {
		s.Messages++
		s.Bytes += uint64(bytes)
		s.Sequence = w.sequence
	})
}

// placed returns how many messages are where they belong, from the first on. The
// error is ErrReplaced where there is something else, and errStreamLost where the
// stream is not the one that was written to.
func (w *writing) placed(ctx context.Context, messages []outgoing) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.settings.Timeout+time.Second)
	defer cancel()
	info, err := w.stream.Info(ctx)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return 0, errStreamLost
	case err != nil:
		return 0, fmt.Errorf("look at the end of stream %s: %w", w.settings.Name, err)
	case !info.Created.Equal(w.created) || info.State.LastSeq < w.sequence:
		return 0, errStreamLost
	}
	for last := info.State.LastSeq; n < len(messages) && w.sequence < last; n++ {
		m, err := w.stream.GetMsg(ctx, w.sequence+1)
		if err != nil {
			return n, fmt.Errorf("read message %d: %w", w.sequence+1, err)
		}
		if id := m.Header.Get(jetstream.MsgIDHeader); id != messages[n].id {
			return n, w.conflict(id)
		}
		w.advance(len(m.Data))
	}
	if w.sequence < info.State.LastSeq {
		m, err := w.stream.GetMsg(ctx, w.sequence+1)
		if err != nil {
			return n, fmt.Errorf("read message %d: %w", w.sequence+1, err)
		}
		return n, w.conflict(m.Header.Get(jetstream.MsgIDHeader))
	}
	return n, nil
}

// conflict says what a message is that was not expected: one that this Publisher
// sent before it lost a connection and that arrived late, or another writer's.
func (w *writing) conflict(id string) error {
	if strings.HasSuffix(id, w.nonce) {
		return errors.New("a message of before arrived late")
	}
	return ErrReplaced
}
