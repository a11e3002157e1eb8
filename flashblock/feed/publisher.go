// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"glimpse/flashblock"
)

// Options shape a Publisher. The zero value sends text and has the bounds of
// public feeds.
type Options struct {
	// Brotli sends compressed binary frames in place of text.
	Brotli bool

	// MaxClients is how many WebSocket clients are served at once; 0 means 100.
	MaxClients int

	// Buffer is how many messages a subscriber may be behind; 0 means 64.
	Buffer int

	// PingEvery is how often a client must show that it lives; 0 means 15 s. It
	// has as long again to answer.
	PingEvery time.Duration

	// WriteTimeout bounds the sending of one message; 0 means 10 s.
	WriteTimeout time.Duration
}

func (o Options) withDefaults() Options {
	if o.MaxClients == 0 {
		o.MaxClients = 100
	}
	if o.Buffer == 0 {
		o.Buffer = 64
	}
	if o.PingEvery == 0 {
		o.PingEvery = 15 * time.Second
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = 10 * time.Second
	}
	return o
}

var (
	// ErrLagging ends a subscription that did not keep up.
	ErrLagging = errors.New("lagging behind the feed")

	// ErrClosed ends a subscription when the Publisher does.
	ErrClosed = errors.New("feed closed")
)

// A Publisher sends flashblocks to all who follow. Its methods may be called from
// any goroutine while Run runs, and return ErrClosed afterwards.
type Publisher struct {
	options Options
	inbox   chan func(*sending) // unbuffered: whoever calls waits until Run takes it, which is never long
	life    context.Context     // ends when Run does
	end     context.CancelFunc
	clients sync.WaitGroup
	slots   chan struct{} // one for each WebSocket client; a client that finds it full is turned away
}

// NewPublisher returns a Publisher, which does nothing before Run.
func NewPublisher(o Options) *Publisher {
	o = o.withDefaults()
	life, end := context.WithCancel(context.Background())
	return &Publisher{
		options: o,
		inbox:   make(chan func(*sending)),
		life:    life,
		end:     end,
		slots:   make(chan struct{}, o.MaxClients),
	}
}

// sending is what Run owns.
type sending struct {
	schedule    Schedule
	subscribers []*Subscription
	delayed     []delayed // by time
}

type delayed struct {
	at   time.Time
	data []byte
}

// Run sends until ctx ends, then disconnects all and waits until they are gone.
// It returns ctx's error. It must be called once.
func (p *Publisher) Run(ctx context.Context) error {
	var s sending
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case do := <-p.inbox:
			do(&s)
		case <-timer.C:
		}
		s.flush(timer)
	}
	p.end()
	for _, sub := range s.subscribers {
		sub.end(ErrClosed)
	}
	p.clients.Wait()
	return ctx.Err()
}

// do lets Run call a function.
func (p *Publisher) do(ctx context.Context, f func(*sending)) error {
	finished := make(chan struct{})
	select {
	case p.inbox <- func(s *sending) { f(s); close(finished) }:
		<-finished
		return nil
	case <-p.life.Done():
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Publish sends m, as the Schedule decides. It waits for no subscriber.
func (p *Publisher) Publish(ctx context.Context, m *flashblock.Message) error {
	text, err := flashblock.Encode(m)
	if err != nil {
		return err
	}
	return p.PublishText(ctx, text)
}

// PublishText is Publish for a message that is text already, which must be valid
// JSON and must not be modified afterwards. It is sent with all its members.
func (p *Publisher) PublishText(ctx context.Context, text []byte) error {
	data := text
	if p.options.Brotli {
		var err error
		if data, err = flashblock.Compress(text); err != nil {
			return err
		}
	}
	return p.do(ctx, func(s *sending) { s.send(s.schedule.Next(data)) })
}

// Drop, Duplicate, Delay, Reorder and Stall give the Schedule the order of
// that name; Resume ends a Stall and sends what was held back.
func (p *Publisher) Drop(ctx context.Context, n int) error {
	return p.do(ctx, func(s *sending) { s.schedule.Drop(n) })
}

func (p *Publisher) Duplicate(ctx context.Context, n int) error {
	return p.do(ctx, func(s *sending) { s.schedule.Duplicate(n) })
}

func (p *Publisher) Delay(ctx context.Context, n int, d time.Duration) error {
	return p.do(ctx, func(s *sending) { s.schedule.Delay(n, d) })
}

func (p *Publisher) Reorder(ctx context.Context, n int) error {
	return p.do(ctx, func(s *sending) { s.schedule.Reorder(n) })
}

func (p *Publisher) Stall(ctx context.Context) error {
	return p.do(ctx, func(s *sending) { s.schedule.Stall() })
}

func (p *Publisher) Resume(ctx context.Context) error {
	return p.do(ctx, func(s *sending) { s.send(s.schedule.Resume()) })
}

// Subscribe returns a subscription to all that is sent from now on. Whoever
// subscribes must Close it.
func (p *Publisher) Subscribe(ctx context.Context) (*Subscription, error) {
	return p.subscribe(ctx, func() {})
}

// subscribe lets Run also call a function when it has subscribed.
func (p *Publisher) subscribe(ctx context.Context, then func()) (*Subscription, error) {
	sub := &Subscription{
		publisher: p,
		messages:  make(chan []byte, p.options.Buffer),
		ended:     make(chan struct{}),
	}
	err := p.do(ctx, func(s *sending) {
		s.subscribers = append(s.subscribers, sub)
		then()
	})
	if err != nil {
		return nil, err
	}
	return sub, nil
}

func (s *sending) send(out []Outgoing) {
	for _, o := range out {
		if o.After <= 0 {
			s.deliver(o.Data)
			continue
		}
		d := delayed{at: time.Now().Add(o.After), data: o.Data}
		at, _ := slices.BinarySearchFunc(s.delayed, d, func(a, b delayed) int {
			if a.at.After(b.at) {
				return 1
			}
			return -1 // equal ones stay in the order in which they came
		})
		s.delayed = slices.Insert(s.delayed, at, d)
		if len(s.delayed) > maxHeld {
			s.delayed = slices.Delete(s.delayed, 0, 1) // the oldest is lost
		}
	}
}

// deliver hands data to all, and leaves behind those who have no room.
func (s *sending) deliver(data []byte) {
	s.subscribers = slices.DeleteFunc(s.subscribers, func(sub *Subscription) bool {
		select {
		case sub.messages <- data:
			return false
		default:
			sub.end(ErrLagging)
			return true
		}
	})
}

// flush delivers what was delayed long enough, and sets the timer for the next.
func (s *sending) flush(timer *time.Timer) {
	now := time.Now()
	for len(s.delayed) > 0 && !s.delayed[0].at.After(now) {
		s.deliver(s.delayed[0].data)
		s.delayed = slices.Delete(s.delayed, 0, 1)
	}
	timer.Stop()
	if len(s.delayed) > 0 {
		timer.Reset(s.delayed[0].at.Sub(now))
	}
}

// A Subscription receives what a Publisher sends. It belongs to one goroutine.
type Subscription struct {
	publisher *Publisher
	messages  chan []byte   // when it is full the subscription ends
	ended     chan struct{} // closed by Run, after err is set
	err       error
}

// end is called by Run, at most once.
func (s *Subscription) end(why error) {
	s.err = why
	close(s.ended)
}

// next returns the next message as it was sent. What was sent before the end
// comes before the reason of the end.
func (s *Subscription) next(ctx context.Context) ([]byte, error) {
	select {
	case data := <-s.messages:
		return data, nil
	default:
	}
	select {
	case data := <-s.messages:
		return data, nil
	case <-s.ended:
		select {
		case data := <-s.messages:
			return data, nil
		default:
			return nil, s.err
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Next waits for a message and decodes it, as a remote follower would. ErrLagging
// and ErrClosed are the end; after ErrLagging one may subscribe again. An error
// that wraps flashblock.ErrMessage is about one message only.
func (s *Subscription) Next(ctx context.Context) (*flashblock.Message, error) {
	data, err := s.next(ctx)
	if err != nil {
		return nil, err
	}
	m, err := flashblock.DecodeState(data)
	if err != nil {
		return nil, fmt.Errorf("feed: %w", err)
	}
	return m, nil
}

// Close ends the subscription.
func (s *Subscription) Close() {
	// It fails only where the Publisher has ended, and the subscription with it.
	_ = s.publisher.do(context.Background(), func(all *sending) {
		all.subscribers = slices.DeleteFunc(all.subscribers, func(x *Subscription) bool { return x == s })
	})
}
