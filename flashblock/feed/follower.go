// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"glimpse/flashblock"
)

// Why a Client ends a connection itself.
var (
	errSilent  = errors.New("no message for too long")
	errNoPong  = errors.New("no answer to a ping")
	errGarbage = errors.New("no flashblock in many messages")
	errTooLong = fmt.Errorf("message longer than %d bytes", flashblock.MaxSize)
)

// maxBadRun is how many messages in a row may be no flashblock. One is a curiosity; a feed
// that sends nothing else costs time to decode and is better left alone.
const maxBadRun = 16

// keptBuffer is the largest buffer that is kept for the next message. A feed that
// sends one huge message should not hold that much memory for ever.
const keptBuffer = 1 << 20

// leastBuffer is where a buffer begins; most messages are shorter.
const leastBuffer = 64 << 10

// A follower keeps one feed connected. All of it but what is in the inbox belongs
// to its goroutine.
type follower struct {
	feed     int
	name     string
	endpoint Endpoint
	options  *ClientOptions
	inbox    *inbox
	backoff  backoff

	buffer []byte
	badRun int

	refused, disagreed, dropped throttle
}

// A liveness is what the reader of a connection tells the one who pings.
type liveness struct {
	progress atomic.Uint64 // grows with all that comes
	decoding atomic.Bool   // the reader does not read
}

// run returns when ctx ends.
func (f *follower) run(ctx context.Context) {
	for {
		err := f.follow(ctx)
		if ctx.Err() != nil {
			f.inbox.update(f.feed, func(s *FeedStats) { s.Connected = false })
			return
		}
		f.inbox.update(f.feed, func(s *FeedStats) { s.Connected = false; s.Reconnects++ })
		wait := f.backoff.next()
		f.options.OnEvent(Event{What: Disconnected, Feed: f.name, Err: err, Retry: wait})
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// follow connects and reads until something ends it, and leaves no goroutine
// behind.
func (f *follower) follow(ctx context.Context) error {
	conn, err := f.dial(ctx)
	if err != nil {
		return err
	}
	// The limit is kept by readOne: that of the library waits for the feed to
	// take in why it is left.
	conn.SetReadLimit(-1)
	f.badRun = 0
	f.inbox.update(f.feed, func(s *FeedStats) { s.Connected = true })
	f.options.OnEvent(Event{What: Connected, Feed: f.name})

	ctx, cancel := context.WithCancelCause(ctx)
	var seen liveness
	pinged := make(chan struct{})
	go func() {
		defer close(pinged)
		if err := f.ping(ctx, conn, &seen); err != nil {
			cancel(err)
		}
	}()
	err = f.read(ctx, conn, &seen)
	cancel(nil)
	_ = conn.CloseNow() // it is over either way
	<-pinged
	return err
}

func (f *follower) dial(ctx context.Context) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, f.options.HandshakeTimeout)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, f.endpoint.URL, &websocket.DialOptions{
		HTTPClient: f.options.HTTPClient,
		HTTPHeader: f.endpoint.Header,
	})
	if err != nil {
		// The error of a request repeats its URL, where there may be a key.
		if request := new(url.Error); errors.As(err, &request) {
			err = request.Err
		}
		return nil, fmt.Errorf("connect: %w", err)
	}
	return conn, nil
}

// ping returns nil when ctx ends, or the error that the feed does not answer.
func (f *follower) ping(ctx context.Context, conn *websocket.Conn, seen *liveness) error {
	ticker := time.NewTicker(f.options.PingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		before := seen.progress.Load()
		answer, cancel := context.WithTimeout(ctx, f.options.PongTimeout)
		err := conn.Ping(answer)
		cancel()
		// An answer waits behind a long message, which is a sign of life too,
		// and while one is decoded nobody looks for it.
		if err != nil && !seen.decoding.Load() && seen.progress.Load() == before {
			if ctx.Err() != nil {
				return nil
			}
			return errNoPong
		}
	}
}

// read takes in messages until there is an error, which it returns.
func (f *follower) read(ctx context.Context, conn *websocket.Conn, seen *liveness) error {
	begin := time.Now()
	for {
		data, err := f.readOne(ctx, conn, seen)
		switch {
		case errors.Is(err, errTooLong):
			f.bad(err)
			return err
		case err != nil:
			return err
		}
		seen.decoding.Store(true)
		good := f.take(data)
		seen.progress.Add(1) // before decoding ends: a ping that sees the one or the other waits
		seen.decoding.Store(false)
		if good && time.Since(begin) >= f.options.HealthyAfter {
			f.backoff.healthy()
		}
		if f.badRun >= maxBadRun {
			return errGarbage
		}
	}
}

// readOne returns the next message as it came, which is good until the next call.
// Whether it came as text or as binary says nothing about what it is.
func (f *follower) readOne(ctx context.Context, conn *websocket.Conn, seen *liveness) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, f.options.IdleTimeout, errSilent)
	defer cancel()
	if cap(f.buffer) > keptBuffer {
		f.buffer = nil
	}
	_, r, err := conn.Reader(ctx)
	if err == nil {
		f.buffer, err = readAll(f.buffer[:0], counting{r, seen}, flashblock.MaxSize+1)
	}
	switch cause := context.Cause(ctx); {
	case err != nil && cause != nil:
		return nil, cause // which has ended the reading
	case err != nil:
		return nil, err
	case len(f.buffer) > flashblock.MaxSize:
		return nil, errTooLong
	}
	return f.buffer, nil
}

// readAll appends what r has to buf, up to a length. What it allocates is in
// proportion to what came, not to what a frame says of itself.
func readAll(buf []byte, r io.Reader, most int) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			if len(buf) >= most {
				return buf, nil
			}
			buf = append(make([]byte, 0, min(max(2*len(buf), leastBuffer), most)), buf...)
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return buf, err
		}
	}
}

// counting counts the bytes that are read.
type counting struct {
	io.Reader
	seen *liveness
}

func (c counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.seen.progress.Add(uint64(n))
	return n, err
}

// take decodes a message and puts it where the consumer finds it. It reports
// whether it was a flashblock.
func (f *follower) take(data []byte) bool {
	decode := flashblock.DecodeState
	if f.options.KeepText {
		decode = flashblock.DecodeWithText
	}
	m, err := decode(data)
	switch {
	case errors.Is(err, flashblock.ErrEnd):
		f.badRun++ // many of them, and nothing else, are of no use either
		f.inbox.update(f.feed, func(s *FeedStats) { s.Ends++ })
		return false
	case err != nil:
		f.bad(err)
		return false
	}
	f.badRun = 0
	now := time.Now()
	a := f.inbox.put(f.feed, m, now)
	if a.disagreed {
		f.tell(&f.disagreed, now, Event{What: Disagreed, Position: m.Position()})
	}
	for _, position := range a.dropped {
		f.tell(&f.dropped, now, Event{What: Dropped, Position: position})
	}
	return true
}

func (f *follower) bad(err error) {
	f.badRun++
	f.inbox.update(f.feed, func(s *FeedStats) { s.Bad++ })
	f.tell(&f.refused, time.Now(), Event{What: Refused, Err: err})
}

func (f *follower) tell(t *throttle, now time.Time, e Event) {
	n, ok := t.ready(now)
	if !ok {
		return
	}
	e.Feed, e.Count = f.name, n
	f.options.OnEvent(e)
}
