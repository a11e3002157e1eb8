// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"glimpse/chain"
	"glimpse/replica"
)

// writing is one Publisher's charge of the stream, from the first event of its
// epoch on. It belongs to one goroutine.
type writing struct {
	*Publisher
	js      jetstream.JetStream
	stream  jetstream.Stream
	created time.Time // of the stream; one that was made anew has another

	epoch    uint64
	order    uint64
	sequence uint64 // of the last message in the stream

	cursor  chain.Ref   // the block that the stream's chain is at
	history []chain.Ref // blocks that were published in this epoch, oldest first
	goal    *chain.Ref  // the block that replicas wait for before they show anything new; nil for none
	marks   replica.Marks
}

// open takes charge: it makes sure that there is a stream and no other writer,
// finds the block that the stream's chain is at, and publishes the first event of
// a new epoch.
func (p *Publisher) open(ctx context.Context) (*writing, error) {
	if err := connected(p.nc); err != nil {
		return nil, err
	}
	js, err := jetstream.New(p.nc, jetstream.WithDefaultTimeout(p.settings.Timeout),
		jetstream.WithPublishAsyncTimeout(p.settings.Timeout), jetstream.WithPublishAsyncMaxPending(4*batchMessages))
	if err != nil {
		return nil, fmt.Errorf("use JetStream: %w", err)
	}
	w := &writing{Publisher: p, js: js}
	if err := w.openStream(ctx); err != nil {
		w.close()
		return nil, err
	}
	if err := w.begin(ctx); err != nil {
		w.close()
		return nil, fmt.Errorf("take charge of stream %s: %w", p.settings.Name, err)
	}
	return w, nil
}

// close ends what waits for acknowledgements.
func (w *writing) close() { w.js.CleanupPublisher() }

func (w *writing) openStream(ctx context.Context) (err error) {
	config := w.settings.config(w.chain)
	w.stream, err = w.js.Stream(ctx, w.settings.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		w.stream, err = w.js.CreateStream(ctx, config)
	}
	if err != nil {
		return fmt.Errorf("open stream %s: %w", w.settings.Name, err)
	}
	info := w.stream.CachedInfo()
	have := info.Config
	if err := checkIdentity(&have, w.chain); err != nil {
		return err
	}
	if have.MaxAge != config.MaxAge || have.MaxBytes != config.MaxBytes || have.Replicas != config.Replicas || have.Duplicates != config.Duplicates {
		have.MaxAge, have.MaxBytes, have.Replicas, have.Duplicates = config.MaxAge, config.MaxBytes, config.Replicas, config.Duplicates
		if w.stream, err = w.js.UpdateStream(ctx, have); err != nil {
			return fmt.Errorf("change stream %s: %w", w.settings.Name, err)
		}
		info = w.stream.CachedInfo()
	}
	w.created, w.sequence = info.Created, info.State.LastSeq
	return nil
}

// begin finds where to go on and publishes that as the first event of the epoch.
func (w *writing) begin(ctx context.Context) error {
	if err := w.nobodyElse(ctx); err != nil {
		return err
	}
	c, err := w.journal.Open()
	if err != nil {
		return err
	}
	defer c.Release()
	last, at, err := w.ending(ctx)
	if err != nil {
		return err
	}
	w.epoch = max(last+1, uint64(time.Now().UnixMilli()))
	to, goal := at, at
	if on, err := onChain(c, at); err != nil {
		return err
	} else if last == 0 || !on || at.Number < c.Oldest() {
		if to, err = w.ancestor(ctx, c); err != nil {
			return err
		}
		goal = c.Head()
	}
	return w.turn(ctx, c, to, goal)
}

// nobodyElse asks whether a writer is there. One that is cut off does not answer;
// it finds the stream changed when it comes back.
func (w *writing) nobodyElse(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, min(time.Second, w.settings.Timeout))
	defer cancel()
	answer, err := w.nc.RequestWithContext(ctx, w.settings.writer(), nil)
	switch {
	case err == nil:
		return fmt.Errorf("%w (%s)", ErrOtherWriter, answer.Data)
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, context.DeadlineExceeded):
		return nil
	default:
		return fmt.Errorf("ask for another writer: %w", err)
	}
}

// ending returns the epoch of the last message and the block that the chain is at
// after the last complete event; zero where the stream is empty.
func (w *writing) ending(ctx context.Context) (epoch uint64, at chain.Ref, err error) {
	m, err := w.stream.GetLastMsgForSubject(ctx, w.settings.blocks())
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, chain.Ref{}, nil
	}
	if err != nil {
		return 0, chain.Ref{}, fmt.Errorf("read the last message: %w", err)
	}
	f, err := replica.DecodeFrame(m.Data)
	if err != nil {
		return 0, chain.Ref{}, fmt.Errorf("last message: %w", err)
	}
	w.sequence = m.Sequence
	epoch = f.Epoch
	for steps := 0; !f.Last() && m.Sequence > f.Index+1; steps++ {
		// Its writer died in the middle of it: consumers pass over it.
		if m, f, err = w.message(ctx, m.Sequence-f.Index-1); err != nil || steps == maxWalk {
			return epoch, chain.Ref{}, ignoreMissing(err)
		}
	}
	return epoch, f.At, nil
}

// maxWalk is how many events are looked at to find a block that writer and stream
// have in common. Reorganisations are not that deep.
const maxWalk = 4096

func ignoreMissing(err error) error {
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	return err
}

func (w *writing) message(ctx context.Context, sequence uint64) (*jetstream.RawStreamMsg, *replica.Frame, error) {
	m, err := w.stream.GetMsg(ctx, sequence)
	if err != nil {
		return nil, nil, fmt.Errorf("read message %d: %w", sequence, err)
	}
	f, err := replica.DecodeFrame(m.Data)
	if err != nil {
		return nil, nil, fmt.Errorf("message %d: %w", sequence, err)
	}
	return m, f, nil
}

// ancestor returns the newest block that is both on the writer's chain and in the
// stream: consumers that follow have it. Where there is none the stream starts
// over some blocks below the head.
func (w *writing) ancestor(ctx context.Context, c Chain) (chain.Ref, error) {
	for i := len(w.history) - 1; i >= 0; i-- {
		if on, err := onChain(c, w.history[i]); on || err != nil {
			return w.history[i], err
		}
	}
	if ref, found, err := w.walk(ctx, c); found || err != nil {
		return ref, err
	}
	return w.startOver(c)
}

// walk looks for the ancestor in the stream, from its end. Events that were not
// completed do not count: consumers do not have their blocks.
func (w *writing) walk(ctx context.Context, c Chain) (ref chain.Ref, found bool, err error) {
	sequence := w.sequence
	for range maxWalk {
		if sequence == 0 {
			break
		}
		_, f, err := w.message(ctx, sequence)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			break // the stream keeps no more
		}
		if err != nil {
			return chain.Ref{}, false, err
		}
		on, err := onChain(c, f.At)
		if err != nil || on && f.Last() && f.At.Number >= c.Oldest() {
			return f.At, err == nil, err
		}
		sequence -= min(sequence, f.Index+1)
	}
	return chain.Ref{}, false, nil
}

func (w *writing) startOver(c Chain) (chain.Ref, error) {
	n := c.Head().Number
	n -= min(n, w.settings.Backlog)
	n = max(n, c.Oldest())
	hash, err := c.Hash(n)
	return chain.Ref{Number: n, Hash: hash}, err
}

func onChain(c Chain, ref chain.Ref) (bool, error) {
	if ref.Number > c.Head().Number {
		return false, nil
	}
	hash, err := c.Hash(ref.Number)
	var miss *chain.Miss
	if errors.As(err, &miss) {
		return false, nil
	}
	return hash == ref.Hash, err
}

// errStreamLost ends a session whose stream is not the one that it wrote to.
var errStreamLost = errors.New("the stream was deleted, or has lost messages")

// stillThere fails where the stream is not what was written.
func (w *writing) stillThere(ctx context.Context) error {
	info, err := w.stream.Info(ctx)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return errStreamLost
	case err != nil:
		return fmt.Errorf("look for stream %s: %w", w.settings.Name, err)
	case !info.Created.Equal(w.created) || info.State.LastSeq < w.sequence:
		return errStreamLost
	case info.State.LastSeq > w.sequence:
		_, err := w.placed(ctx, nil)
		return err
	}
	return nil
}
