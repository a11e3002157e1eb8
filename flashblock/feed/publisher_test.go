// SPDX-License-Identifier: Apache-2.0

package feed_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"glimpse/flashblock"
	"glimpse/flashblock/feed"
)

// start runs a Publisher until the test ends, and checks that it ends.
func start(t *testing.T, o feed.Options) *feed.Publisher {
	t.Helper()
	p := feed.NewPublisher(o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
		if err := p.Publish(context.Background(), piece(0)); !errors.Is(err, feed.ErrClosed) {
			t.Errorf("Publish after the end = %v, want ErrClosed", err)
		}
	})
	return p
}

func piece(index uint64) *flashblock.Message {
	return &flashblock.Message{Number: 7, Index: index + 1, Payload: flashblock.PayloadID{3}, Delta: flashblock.Delta{Transactions: [][]byte{{1, 2, 3}}}}
}

func publish(t *testing.T, p *feed.Publisher, from, to uint64) {
	t.Helper()
	for i := from; i < to; i++ {
		if err := p.Publish(t.Context(), piece(i)); err != nil {
			t.Fatal(err)
		}
	}
}

func subscribe(t *testing.T, p *feed.Publisher) *feed.Subscription {
	t.Helper()
	sub, err := p.Subscribe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

func next(t *testing.T, sub *feed.Subscription) uint64 {
	t.Helper()
	m, err := sub.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m.Index - 1
}

func TestSubscribersGetWhatIsPublished(t *testing.T) {
	for _, brotli := range []bool{false, true} {
		p := start(t, feed.Options{Brotli: brotli})
		publish(t, p, 0, 1) // before anyone listens
		a, b := subscribe(t, p), subscribe(t, p)
		publish(t, p, 1, 3)
		for _, sub := range []*feed.Subscription{a, b} {
			for want := uint64(1); want < 3; want++ {
				if got := next(t, sub); got != want {
					t.Errorf("message %d, want %d", got, want)
				}
			}
			sub.Close()
		}
	}
}

func TestLaggingSubscriberIsLeftBehind(t *testing.T) {
	p := start(t, feed.Options{Buffer: 4})
	slow, good := subscribe(t, p), subscribe(t, p)
	for i := range uint64(6) {
		publish(t, p, i, i+1)
		if got := next(t, good); got != i {
			t.Errorf("message %d, want %d", got, i)
		}
	}
	for want := range uint64(4) {
		if got := next(t, slow); got != want {
			t.Errorf("message %d, want %d", got, want)
		}
	}
	if _, err := slow.Next(t.Context()); !errors.Is(err, feed.ErrLagging) {
		t.Errorf("Next = %v, want ErrLagging", err)
	}
	slow.Close()
	good.Close()
}

// Orders act on time as well as on messages, and time is virtual here.
func TestMisbehaviourOnRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, feed.Options{})
		sub := subscribe(t, p)
		begin := time.Now()
		order := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		expect := func(index uint64, after time.Duration) {
			t.Helper()
			if got := next(t, sub); got != index || time.Since(begin) != after {
				t.Errorf("message %d after %v, want %d after %v", got, time.Since(begin), index, after)
			}
		}
		order(p.Drop(t.Context(), 1))
		publish(t, p, 0, 2)
		expect(1, 0)
		order(p.Duplicate(t.Context(), 1))
		publish(t, p, 2, 3)
		expect(2, 0)
		expect(2, 0)
		order(p.Reorder(t.Context(), 2))
		publish(t, p, 3, 5)
		expect(4, 0)
		expect(3, 0)
		order(p.Delay(t.Context(), 2, time.Second))
		publish(t, p, 5, 8)
		expect(7, 0) // overtakes
		expect(5, time.Second)
		expect(6, time.Second)
		order(p.Stall(t.Context()))
		publish(t, p, 8, 10)
		synctest.Wait()
		quiet, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if m, err := sub.Next(quiet); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a stalled feed sent %v, %v", m, err)
		}
		order(p.Resume(t.Context()))
		expect(8, time.Minute+time.Second)
		expect(9, time.Minute+time.Second)
		sub.Close()
	})
}

// serve returns the address of a feed.
func serve(t *testing.T, p *feed.Publisher) string {
	t.Helper()
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return "ws" + strings.TrimPrefix(server.URL, "http") + feed.Path
}

func dial(t *testing.T, url string) *websocket.Conn {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() }) // it may be closed already
	return conn
}

func TestWebSocketClientsGetTheWireFormat(t *testing.T) {
	for _, brotli := range []bool{false, true} {
		p := start(t, feed.Options{Brotli: brotli})
		url := serve(t, p)
		a, b := dial(t, url), dial(t, url)
		publish(t, p, 0, 20)
		for _, conn := range []*websocket.Conn{a, b} {
			for want := range uint64(20) {
				kind, data, err := conn.Read(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				m, err := flashblock.Decode(data)
				if err != nil || m.Index-1 != want || (kind == websocket.MessageBinary) != brotli || (data[0] == '{') == brotli {
					t.Errorf("message %v %.20q, %v, want number %d", kind, data, err, want)
				}
			}
		}
	}
}

func TestWebSocketClientIsToldTheEnd(t *testing.T) {
	p := feed.NewPublisher(feed.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.Run(ctx) }()
	conn := dial(t, serve(t, p))
	cancel()
	if _, _, err := conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("client sees %v, want going away", err)
	}
	<-done
}

func TestLaggingWebSocketClientIsToldWhy(t *testing.T) {
	p := start(t, feed.Options{Buffer: 2, WriteTimeout: time.Minute})
	conn := dial(t, serve(t, p))
	// More than the sockets between take.
	big := piece(0)
	big.Delta.Transactions = [][]byte{make([]byte, 4<<20)}
	for range 8 {
		if err := p.Publish(t.Context(), big); err != nil {
			t.Fatal(err)
		}
	}
	conn.SetReadLimit(-1)
	for {
		_, _, err := conn.Read(t.Context())
		if err == nil {
			continue
		}
		if websocket.CloseStatus(err) != websocket.StatusTryAgainLater || !strings.Contains(err.Error(), "lagging") {
			t.Errorf("client sees %v, want that it lags", err)
		}
		return
	}
}

func TestSilentClientIsDisconnected(t *testing.T) {
	p := start(t, feed.Options{MaxClients: 1, PingEvery: 10 * time.Millisecond})
	url := serve(t, p)
	dial(t, url) // never reads, so it never answers a ping
	for {
		conn, response, err := websocket.Dial(t.Context(), url, nil)
		if err == nil {
			_ = conn.CloseNow() // its place was free again
			return
		}
		if response == nil || response.StatusCode != http.StatusTooManyRequests {
			t.Fatalf("Dial = %v, %v", response, err)
		}
	}
}

func TestClientTooManyIsTurnedAway(t *testing.T) {
	p := start(t, feed.Options{MaxClients: 2})
	url := serve(t, p)
	dial(t, url)
	dial(t, url)
	_, response, err := websocket.Dial(t.Context(), url, nil)
	if err == nil || response == nil || response.StatusCode != http.StatusTooManyRequests {
		t.Errorf("the third client of two: %v, %v", response, err)
	}
}

func TestOtherPathsAreNotFound(t *testing.T) {
	p := start(t, feed.Options{})
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("status %d, want 404", w.Code)
	}
}
