// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"glimpse/chain"
	"glimpse/replica"
)

// SnapshotNeeded ends a Tail whose replica the stream does not reach: it begins
// after the replica's head, or the head is on a branch that the stream has left
// before it begins.
type SnapshotNeeded struct {
	Have    chain.Ref     // the replica's head
	Missing replica.Range // blocks that the stream does not have, where they are known
}

func (e *SnapshotNeeded) Error() string {
	if e.Missing == (replica.Range{}) {
		return fmt.Sprintf("the stream does not lead on from block %s: a snapshot is needed", e.Have)
	}
	return fmt.Sprintf("the stream does not have blocks %d to %d, which follow block %s: a snapshot is needed", e.Missing.From, e.Missing.To, e.Have)
}

// A Tail reads a stream and hands its events to an Applier, in order.
type Tail struct {
	settings Settings
	nc       *nats.Conn
	chain    replica.Identity
	applier  *replica.Applier

	// What Run owns.
	js        jetstream.JetStream
	dropped   func() uint64 // messages of pre-confirmed state that found the buffer full
	blocks    replica.Assembler
	pendings  replica.Assembler
	created   time.Time // of the stream that is read; one that was made anew has another
	sequence  uint64    // of the last message that was read; the next one is to be read
	unread    bool      // nothing was read in this session yet
	fromFirst bool      // it is read from its first message on
	missing   replica.Range

	// wholeWanted makes the next session read the stream from its first message
	// on: the place that was found did not lead on.
	wholeWanted bool

	mu    sync.Mutex
	stats TailStats // guarded by mu
}

// TailStats are the numbers of a Tail.
type TailStats struct {
	Connected bool      // the stream is being read
	Live      bool      // readers see all that was read, and there was no more
	Place     chain.Ref // the block that the events lead to; the store's head while that is not known
	Writer    chain.Ref // the writer's newest block, as far as was heard
	Heard     time.Time // when the writer last said where it is; zero before. The stream may be behind it, so what is in that does not count
	HeardHere bool      // that was since the stream was last lost, and found
	Answered  time.Time // when a server last said something about the stream; zero before

	// Blocks is how many blocks Place is behind Writer, and Behind for how long it
	// has been behind; both are zero while it is not. Delay is how long after the
	// server took the last message it was applied: where clocks differ, it shows
	// here.
	Blocks uint64
	Behind time.Duration
	Delay  time.Duration

	Sequence        uint64                     // of the last message that was read
	Outcomes        map[replica.Outcome]uint64 // of durable events
	PendingOutcomes map[replica.Outcome]uint64
	PendingLost     uint64 // messages that this replica did not take in time
	Malformed       uint64
	Restarts        uint64 // how often the stream was read again from an earlier place

	LastWithdrawn replica.Reason // why the writer withdrew pre-confirmed state last
	LastError     error          // why it is not connected, or what went wrong last; nil while all is well

	since time.Time // when the writer was last heard of and it was not behind that
}

// NewTail returns a Tail, which does nothing before Run. The connection has
// ConnectOptions and stays the caller's. The Applier belongs to Run while it
// runs.
func NewTail(nc *nats.Conn, s Settings, id replica.Identity, applier *replica.Applier) (*Tail, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	s = s.withDefaults()
	t := &Tail{settings: s, nc: nc, chain: id, applier: applier}
	t.blocks.Most, t.pendings.Most = s.MaxEvent, s.MaxEvent
	t.stats.Outcomes = make(map[replica.Outcome]uint64)
	t.stats.PendingOutcomes = make(map[replica.Outcome]uint64)
	t.stats.since = time.Now()
	return t, nil
}

// pendingBuffer is how many messages of pre-confirmed state wait while a block is
// applied. When it is full they are dropped, which the Applier sees.
const pendingBuffer = 256

// Run reads until ctx ends, and then returns nil. That NATS is away, or the stream
// not there, is a state and not a failure. It fails with *SnapshotNeeded and with
// replica.ErrMismatch where the store has to be built anew, and with
// replica.ErrForeign where the stream is another chain's.
func (t *Tail) Run(ctx context.Context) error {
	js, err := jetstream.New(t.nc, jetstream.WithDefaultTimeout(t.settings.Timeout))
	if err != nil {
		return fmt.Errorf("use JetStream: %w", err)
	}
	t.js = js
	pending := make(chan *nats.Msg, pendingBuffer)
	sub, err := t.nc.ChanSubscribe(t.settings.pending(), pending)
	if err != nil {
		return fmt.Errorf("subscribe to pre-confirmed state: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // a connection that is closed has no subscriptions
	t.dropped = func() uint64 {
		n, _ := sub.Dropped() // zero of a subscription that ended
		return uint64(max(n, 0))
	}
	session := func(ctx context.Context) error {
		for {
			err := t.session(ctx, pending)
			if !errors.Is(err, errAgain) {
				return err
			}
		}
	}
	var needed *SnapshotNeeded
	fatal := errors.New("the store has to be built anew")
	err = retry(ctx, func(ctx context.Context) error {
		err := session(ctx)
		if errors.As(err, &needed) {
			return fmt.Errorf("%w: %w", fatal, err)
		}
		return err
	}, func(err error) {
		t.count(func(s *TailStats) { s.Connected, s.LastError = false, err })
	}, fatal, replica.ErrMismatch, replica.ErrForeign)
	if needed != nil && errors.Is(err, fatal) {
		return needed
	}
	return err
}

// errAgain ends a session that is to begin anew at once, at another place.
var errAgain = errors.New("read the stream again from an earlier place")

// How the consumer asks for messages: a server that is gone is noticed after two
// heartbeats, and what waits here is bounded.
const (
	pullMessages  = 64
	pullExpiry    = 5 * time.Second
	pullHeartbeat = time.Second
	pollEvery     = time.Second
	forgetAfter   = 30 * time.Second // when a server forgets a consumer that is gone
)

// session reads from where the replica is until something fails.
func (t *Tail) session(ctx context.Context, pending <-chan *nats.Msg) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := t.open(ctx)
	t.drain(pending)
	if err != nil {
		return err
	}
	messages, failed, stop, err := t.consume(ctx, stream)
	if err != nil {
		return fmt.Errorf("read stream %s: %w", t.settings.Name, err)
	}
	defer stop()
	t.unread = true
	t.count(func(s *TailStats) { s.Connected, s.LastError, s.Answered, s.HeardHere = true, nil, time.Now(), false })
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case m := <-messages:
			err = t.message(m)
		case m := <-pending:
			err = t.pending(m)
		case <-poll.C:
			err = t.stillThere(ctx, stream)
		case err = <-failed:
			err = fmt.Errorf("read stream %s: %w", t.settings.Name, err)
		}
		if err != nil {
			return err
		}
	}
}

// consume has the messages after the last one sent here until stop is called. A
// consumer of our own in place of an ordered one of the library, whose Stop waits
// for an answer of a server while it makes itself anew: what was lost is seen by the
// sequence, and the next session goes on from there.
func (t *Tail) consume(ctx context.Context, stream jetstream.Stream) (messages <-chan jetstream.Msg, failed <-chan error, stop func(), err error) {
	consumer, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: t.sequence + 1,
		AckPolicy: jetstream.AckNonePolicy, InactiveThreshold: forgetAfter, MemoryStorage: true, Replicas: 1,
	})
	if err != nil {
		return nil, nil, nil, err
	}
	received := make(chan jetstream.Msg) // the consumer's own buffer is bounded; when it is full the server waits
	failures := make(chan error, 1)      // the first ends the session, so there is room for no more
	reading, err := consumer.Consume(func(m jetstream.Msg) {
		select {
		case received <- m:
		case <-ctx.Done():
		}
	}, jetstream.PullMaxMessages(pullMessages), jetstream.PullExpiry(pullExpiry), jetstream.PullHeartbeat(pullHeartbeat),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			select {
			case failures <- err:
			default:
			}
		}))
	if err != nil {
		return nil, nil, nil, err
	}
	return received, failures, reading.Stop, nil
}

// drain forgets what came while the stream was not read, which is out of date.
func (t *Tail) drain(pending <-chan *nats.Msg) {
	for {
		select {
		case <-pending:
		default:
			return
		}
	}
}

// message takes in one message of the stream.
func (t *Tail) message(m jetstream.Msg) error {
	meta, err := m.Metadata()
	if err != nil {
		return fmt.Errorf("message without its place: %w", err)
	}
	switch at := meta.Sequence.Stream; {
	case at <= t.sequence:
		return nil
	case at > t.sequence+1:
		// One was lost on the way, and is asked for again. Where a consumer begins
		// with another than it was made for, the stream does not have that any
		// more; what is left may still have the place.
		if t.unread {
			t.created = time.Time{}
		}
		t.count(func(s *TailStats) {
			s.LastError = fmt.Errorf("got message %d of the stream, want %d", at, t.sequence+1)
		})
		return errAgain
	}
	t.sequence++
	t.unread = false
	f, err := replica.DecodeFrame(m.Data())
	var e *replica.Event
	if err == nil {
		e, err = t.blocks.Add(f)
	}
	switch {
	case errors.Is(err, replica.ErrIncomplete):
		return nil
	case err != nil:
		t.count(func(s *TailStats) { s.Malformed, s.LastError = s.Malformed+1, err })
	default:
		if err := t.apply(e, meta); err != nil {
			return err
		}
	}
	if meta.NumPending == 0 {
		return t.caughtUp()
	}
	return nil
}

func (t *Tail) apply(e *replica.Event, meta *jetstream.MsgMetadata) error {
	d := t.applier.Apply(e)
	t.count(func(s *TailStats) {
		s.Outcomes[d.Outcome]++
		s.Sequence = t.sequence
		s.Delay = time.Since(meta.Timestamp)
		s.Answered = time.Now()
		if at := e.At(); at.Number > s.Writer.Number {
			s.Writer = at
		}
	})
	t.noteMissing(d)
	t.note()
	if d.Outcome == replica.Gap {
		return t.again(d.Err)
	}
	return failure(d)
}

// noteMissing keeps the least that is known to be missing, for who is told that a
// snapshot is needed.
func (t *Tail) noteMissing(d replica.Decision) {
	if d.Missing != (replica.Range{}) && (t.missing == (replica.Range{}) || d.Missing.To < t.missing.To) {
		t.missing = d.Missing
	}
}

// failure is the error of a Decision that ends a session.
func failure(d replica.Decision) error {
	switch d.Outcome {
	case replica.Mismatch, replica.Foreign, replica.Failed:
		return d.Err
	}
	return nil
}

// caughtUp is called when all there is was read.
func (t *Tail) caughtUp() error {
	if _, found := t.applier.Place(); !found {
		if t.fromFirst {
			head, err := t.applier.Head()
			if err != nil {
				return err
			}
			return &SnapshotNeeded{Have: head, Missing: t.missing}
		}
		return t.again(errors.New("the replica's head is not where it was looked for"))
	}
	d := t.applier.CaughtUp()
	t.fromFirst = false // what is missing from now on may be in what was read
	t.note()
	return failure(d)
}

// again ends the session, and makes the next one read the whole stream. Where
// this one did, what is missing is not there, and it goes on: later events may
// still lead on, and caughtUp decides when there are none.
func (t *Tail) again(why error) error {
	t.count(func(s *TailStats) { s.LastError = why })
	if t.fromFirst {
		return nil
	}
	t.wholeWanted, t.created = true, time.Time{}
	return errAgain
}

// pending takes in one message of pre-confirmed state.
func (t *Tail) pending(m *nats.Msg) error {
	f, err := replica.DecodeFrame(m.Data)
	var e *replica.Event
	if err == nil {
		e, err = t.pendings.Add(f)
	}
	if errors.Is(err, replica.ErrIncomplete) {
		return nil
	}
	if err != nil {
		t.count(func(s *TailStats) { s.Malformed++ })
		return nil
	}
	p, ok := e.Body.(*replica.Pending)
	if !ok {
		t.count(func(s *TailStats) { s.Malformed++ })
		return nil
	}
	d := t.applier.Apply(e)
	t.count(func(s *TailStats) {
		s.PendingOutcomes[d.Outcome]++
		if d.Outcome == replica.Outdated || d.Outcome == replica.Foreign {
			return
		}
		s.Heard, s.HeardHere, s.Writer = time.Now(), true, p.Parent
		if p.Why != replica.NotWithdrawn {
			s.LastWithdrawn = p.Why
		}
	})
	t.note()
	return failure(d)
}

// note keeps what the Applier is at.
func (t *Tail) note() {
	place, found := t.applier.Place()
	if !found {
		// A store that cannot say where it is, is told of by whoever writes to it.
		if head, err := t.applier.Head(); err == nil {
			place = head
		}
	}
	live := t.applier.Live()
	t.count(func(s *TailStats) {
		s.Place, s.Live = place, live
		if live && s.HeardHere && place.Number >= s.Writer.Number {
			s.since = s.Heard
		}
	})
}

func (t *Tail) count(f func(*TailStats)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.stats)
}
