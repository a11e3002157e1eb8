// SPDX-License-Identifier: Apache-2.0

package feed_test

import (
	"context"
	"fmt"
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

// What a message is shows in its content, whatever its frame says.
func TestFramesOfAllKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := accepting(func(ctx context.Context, conn *websocket.Conn) {
			for i, kind := range []websocket.MessageType{websocket.MessageText, websocket.MessageBinary, websocket.MessageBinary} {
				data := encode(t, of(7, uint64(i+1)))
				if i == 2 {
					var err error
					if data, err = flashblock.Compress(data); err != nil {
						t.Error(err)
					}
				}
				if err := conn.Write(ctx, kind, data); err != nil {
					t.Error(err)
				}
			}
			<-ctx.Done()
		})
		c, a := follow(t, newNetwork(t, map[string]http.Handler{"a": server}), feed.ClientOptions{}, "a")
		for i := range uint64(3) {
			expect(t, c, 7, i+1)
		}
		if s := c.Stats(); s.Connected != 1 || s.Messages != 3 || !s.LastMessage.Equal(time.Now()) || s.Reconnects != 0 {
			t.Errorf("Stats = %+v", s)
		}
		if got := a.all(); len(got) != 1 || got[0].What != feed.Connected || got[0].Feed != "a" {
			t.Errorf("events are %+v", got)
		}
	})
}

// Over real sockets, with TLS and without.
func TestClientOfAPublisher(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprint("secure ", secure), func(t *testing.T) {
			p := start(t, feed.Options{Brotli: secure})
			var asked []string
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.URL.Path+"?"+r.URL.RawQuery+" "+r.Header.Get("Authorization"))
				r.URL.Path = feed.Path
				p.ServeHTTP(w, r)
			}))
			scheme := "ws"
			if secure {
				server.StartTLS()
				scheme = "wss"
			} else {
				server.Start()
			}
			t.Cleanup(server.Close)
			connected := make(chan struct{}, 1) // one event is waited for
			o := feed.ClientOptions{OnEvent: func(feed.Event) { connected <- struct{}{} }}
			o.Feeds = []feed.Endpoint{{
				URL:    scheme + "://" + server.Listener.Addr().String() + "/ws/key/filter?match=all",
				Header: http.Header{"Authorization": {"Bearer secret"}},
			}}
			if secure {
				o.HTTPClient = server.Client()
			}
			c := run(t, o)
			<-connected
			for i := range uint64(20) {
				if err := p.Publish(t.Context(), of(7, i+1)); err != nil {
					t.Fatal(err)
				}
			}
			for i := range uint64(20) {
				expect(t, c, 7, i+1)
			}
			if len(asked) != 1 || asked[0] != "/ws/key/filter?match=all Bearer secret" {
				t.Errorf("the feed was asked for %q", asked)
			}
		})
	}
}

func TestSilentFeedIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		visits := 0
		server := accepting(func(ctx context.Context, conn *websocket.Conn) {
			visits++
			send(ctx, t, conn, encode(t, of(7, uint64(visits))))
			<-ctx.Done() // it answers pings, and says no more
		})
		begin := time.Now()
		c, a := follow(t, newNetwork(t, map[string]http.Handler{"a": server}), feed.ClientOptions{}, "a")
		expect(t, c, 7, 1)
		expect(t, c, 7, 2)
		gone := a.of(feed.Disconnected)
		if len(gone) != 1 || gone[0].Err.Error() != "no message for too long" {
			t.Fatalf("disconnected: %+v", gone)
		}
		if after := time.Since(begin); after != 30*time.Second+gone[0].Retry {
			t.Errorf("connected again after %v and a wait of %v", after, gone[0].Retry)
		}
		if s := c.Stats(); s.Reconnects != 1 || s.Connected != 1 {
			t.Errorf("Stats = %+v", s)
		}
	})
}

func TestFeedThatAnswersNoPingIsLeft(t *testing.T) {
	deaf := &websocket.AcceptOptions{OnPingReceived: func(context.Context, []byte) bool { return false }}
	t.Run("when it sends nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			server := acceptingWith(deaf, func(ctx context.Context, _ *websocket.Conn) { <-ctx.Done() })
			begin := time.Now()
			_, a := follow(t, newNetwork(t, map[string]http.Handler{"a": server}), feed.ClientOptions{}, "a")
			until(t, 6*time.Second)
			synctest.Wait()
			gone := a.of(feed.Disconnected)
			if len(gone) != 1 || gone[0].Err.Error() != "no answer to a ping" {
				t.Errorf("%v after the begin: disconnected %+v", time.Since(begin), gone)
			}
		})
	})
	t.Run("but not when a long message is on its way", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			long := of(7, 1)
			long.Delta.Transactions = [][]byte{make([]byte, 200<<10)} // more than is buffered on the way
			text := encode(t, long)
			server := acceptingWith(deaf, func(ctx context.Context, conn *websocket.Conn) {
				w, err := conn.Writer(ctx, websocket.MessageText)
				for i := 0; err == nil && i < 20; i++ { // 20 s for one message
					until(t, time.Second)
					_, err = w.Write(text[i*len(text)/20 : (i+1)*len(text)/20])
				}
				if err != nil || w.Close() != nil {
					t.Errorf("a message that took long was not taken: %v", err)
				}
			})
			c, _ := follow(t, newNetwork(t, map[string]http.Handler{"a": server}), feed.ClientOptions{}, "a")
			expect(t, c, 7, 1)
		})
	})
}

// A consumer of events that takes its time holds up the reader, as the decoding of
// a huge message does; that no answers of the feed are seen is not its fault.
func TestBusyReaderIsNotADeadFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Pipes hold nothing, so answers that nobody reads could not be sent.
		deaf := &websocket.AcceptOptions{OnPingReceived: func(context.Context, []byte) bool { return false }}
		server := acceptingWith(deaf, func(ctx context.Context, conn *websocket.Conn) {
			send(ctx, t, conn, []byte("garbage"))
			until(t, 23*time.Second)
			send(ctx, t, conn, encode(t, of(7, 1)))
			<-ctx.Done()
		})
		o := feed.ClientOptions{
			HTTPClient: newNetwork(t, map[string]http.Handler{"a": server}).client(),
			Feeds:      []feed.Endpoint{{URL: "ws://a/ws"}},
			OnEvent: func(e feed.Event) {
				if e.What == feed.Refused {
					until(t, 20*time.Second)
				}
			},
		}
		c := run(t, o)
		expect(t, c, 7, 1)
		if s := c.Stats(); s.Reconnects != 0 {
			t.Errorf("Stats = %+v, want one connection", s)
		}
	})
}

// until lets virtual time pass.
func until(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	<-timer.C
}

func TestBackoff(t *testing.T) {
	t.Run("grows while nobody answers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, a := follow(t, newNetwork(t, nil), feed.ClientOptions{}, "nobody")
			until(t, 3*time.Minute)
			checkGrows(t, a.of(feed.Disconnected), 8)
		})
	})
	t.Run("grows while it is only let in", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			visits := uint64(0)
			server := accepting(func(ctx context.Context, conn *websocket.Conn) {
				visits++
				send(ctx, t, conn, encode(t, of(7, visits)))
			})
			_, a := follow(t, newNetwork(t, map[string]http.Handler{"a": server}), feed.ClientOptions{}, "a")
			until(t, 3*time.Minute)
			checkGrows(t, a.of(feed.Disconnected), 8)
			if got := len(a.of(feed.Connected)); uint64(got) != visits {
				t.Errorf("connected %d times, %d visits", got, visits)
			}
		})
	})
	t.Run("is short after a healthy spell", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			visits, sent := 0, uint64(0)
			server := accepting(func(ctx context.Context, conn *websocket.Conn) {
				visits++
				for begin := time.Now(); visits == 8 && time.Since(begin) <= 31*time.Second; until(t, 200*time.Millisecond) {
					sent++
					send(ctx, t, conn, encode(t, of(7, sent)))
				}
			})
			_, a := follow(t, newNetwork(t, map[string]http.Handler{"a": server}), feed.ClientOptions{}, "a")
			until(t, 3*time.Minute)
			gone := a.of(feed.Disconnected)
			checkGrows(t, gone[:7], 7)
			checkGrows(t, gone[7:], 4)
		})
	})
}

// checkGrows checks the waits between attempts.
func checkGrows(t *testing.T, gone []feed.Event, atLeast int) {
	t.Helper()
	if len(gone) < atLeast {
		t.Fatalf("%d attempts, want at least %d", len(gone), atLeast)
	}
	due := 500 * time.Millisecond
	for i, e := range gone {
		if e.Retry < due/2 || e.Retry > due || e.Err == nil {
			t.Errorf("wait %d is %v after %v, want %v to %v", i, e.Retry, e.Err, due/2, due)
		}
		due = min(2*due, 20*time.Second)
	}
}

func TestEachFlashblockOnceFromSeveralFeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := start(t, feed.Options{}), start(t, feed.Options{Brotli: true})
		n := newNetwork(t, map[string]http.Handler{"a": a, "b": b})
		c, events := follow(t, n, feed.ClientOptions{}, "a", "b", "a")
		synctest.Wait()
		for i := range uint64(10) {
			first, second := a, b
			if i%2 == 1 {
				first, second = b, a
			}
			publishTo(t, first, of(7, i+1))
			expect(t, c, 7, i+1)
			publishTo(t, second, of(7, i+1))
			synctest.Wait()
		}
		other := of(7, 10)
		other.Delta.GasUsed++
		publishTo(t, b, other)
		otherBlock := of(8, 10)
		otherBlock.Payload = of(7, 10).Payload
		publishTo(t, b, otherBlock)
		synctest.Wait()
		publishTo(t, a, of(7, 11))
		expect(t, c, 7, 11) // and nothing between
		synctest.Wait()
		s := c.Stats()
		if s.Connected != 3 || s.Messages != 10*3+2+2 || s.Duplicates != 21 || s.Disagreements != 2 || s.Feeds[1].Disagreements != 2 {
			t.Errorf("Stats = %+v", s)
		}
		told := events.of(feed.Disagreed)
		if len(told) != 1 || told[0].Feed != "b" || told[0].Position != other.Position() {
			t.Errorf("disagreements told: %+v", told)
		}
		if s.Feeds[2].Name != "a #2" {
			t.Errorf("the second feed of host a is %q", s.Feeds[2].Name)
		}
	})
}

func publishTo(t *testing.T, p *feed.Publisher, m *flashblock.Message) {
	t.Helper()
	if err := p.Publish(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

// The feeds of one client do not wait for each other.
func TestTroubleInOneFeedDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := start(t, feed.Options{})
		flood := accepting(func(ctx context.Context, conn *websocket.Conn) {
			for i := uint64(1); ctx.Err() == nil && i < 5000; i++ {
				if conn.Write(ctx, websocket.MessageText, encode(t, of(1000+i/10, i))) != nil {
					return
				}
			}
			<-ctx.Done()
		})
		hangs := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		n := newNetwork(t, map[string]http.Handler{"good": good, "flood": flood, "hangs": hangs})
		c, a := follow(t, n, feed.ClientOptions{}, "flood", "hangs", "nobody", "good")
		until(t, time.Second)
		for i := range uint64(10) { // nobody takes them yet
			publishTo(t, good, of(7, i+1))
		}
		synctest.Wait()
		var got []uint64
		for taken := 0; taken < 25; taken++ {
			m, err := c.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if m.Number == 7 {
				got = append(got, m.Index)
			}
		}
		if fmt.Sprint(got) != "[1 2 3 4 5 6 7 8 9 10]" {
			t.Errorf("among the first 25 messages are %v of the good feed", got)
		}
		if s := c.Stats(); s.Feeds[0].Dropped != 4999-256 || s.Feeds[3].Dropped != 0 {
			t.Errorf("Stats = %+v", s)
		}
		if told := a.of(feed.Dropped); len(told) != 1 || told[0].Feed != "flood" {
			t.Errorf("drops told: %+v", told)
		}
		until(t, 10*time.Second)
		for _, e := range a.of(feed.Disconnected) {
			if e.Feed == "hangs" && e.Err.Error() == "connect: context deadline exceeded" {
				return
			}
		}
		t.Errorf("the feed that hangs was not given up: %+v", a.all())
	})
}

func TestWhatIsDroppedIsTheLeastUseful(t *testing.T) {
	tests := []struct {
		name string
		sent []*flashblock.Message
		want string
	}{
		{"the oldest block goes first", []*flashblock.Message{of(7, 1), of(7, 2), of(8, 1), of(8, 2), of(8, 3), of(9, 1)}, "8.1 8.2 8.3 9.1"},
		{"of a block that does not fit its beginning stays", []*flashblock.Message{of(7, 1), of(7, 2), of(7, 3), of(7, 4), of(7, 5), of(7, 6)}, "7.1 7.2 7.3 7.4"},
		{"late pieces of an old block do not displace", []*flashblock.Message{of(8, 1), of(8, 2), of(8, 3), of(9, 1), of(7, 5)}, "8.1 8.2 8.3 9.1"},
		{"of two builds the first goes", []*flashblock.Message{of(7, 1), of(7, 2), rebuilt(7, 1), rebuilt(7, 2), rebuilt(7, 3)}, "7.1 7.1 7.2 7.3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := start(t, feed.Options{})
				c, a := follow(t, newNetwork(t, map[string]http.Handler{"a": p}), feed.ClientOptions{MaxQueued: 4}, "a")
				synctest.Wait()
				for _, m := range tt.sent {
					publishTo(t, p, m)
				}
				synctest.Wait()
				var got []string
				for range 4 {
					m, err := c.Next(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, fmt.Sprintf("%d.%d", m.Number, m.Index))
				}
				if got := strings.Join(got, " "); got != tt.want {
					t.Errorf("kept %s, want %s", got, tt.want)
				}
				if s := c.Stats(); s.Dropped != uint64(len(tt.sent)-4) || len(a.of(feed.Dropped)) != 1 {
					t.Errorf("Stats = %+v, events %+v", s, a.all())
				}
			})
		})
	}
}

func rebuilt(number, index uint64) *flashblock.Message {
	m := of(number, index)
	m.Payload[7]++
	return m
}

// What was dropped is not known, so another feed may still bring it.
func TestDroppedFlashblockMayComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := start(t, feed.Options{}), start(t, feed.Options{})
		c, _ := follow(t, newNetwork(t, map[string]http.Handler{"a": a, "b": b}), feed.ClientOptions{MaxQueued: 1}, "a", "b")
		synctest.Wait()
		publishTo(t, a, of(7, 1))
		publishTo(t, a, of(8, 1)) // displaces it
		synctest.Wait()
		publishTo(t, b, of(7, 1))
		publishTo(t, b, of(8, 1))
		synctest.Wait()
		expect(t, c, 8, 1)
		expect(t, c, 7, 1)
		if s := c.Stats(); s.Dropped != 1 || s.Duplicates != 1 {
			t.Errorf("Stats = %+v", s)
		}
	})
}

func TestQueueIsBoundedInBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, feed.Options{})
		c, _ := follow(t, newNetwork(t, map[string]http.Handler{"a": p}), feed.ClientOptions{MaxQueuedBytes: 100 << 10}, "a")
		synctest.Wait()
		for i := range uint64(20) {
			m := of(7+i, 1)
			m.Delta.Transactions = [][]byte{make([]byte, 10<<10)} // twice that in hex
			publishTo(t, p, m)
		}
		synctest.Wait()
		if s := c.Stats(); s.Dropped != 16 {
			t.Errorf("Stats = %+v, want 4 messages of 21 KiB kept", s)
		}
		expect(t, c, 23, 1)
	})
}

func TestEndpointsAreChecked(t *testing.T) {
	for _, text := range []string{"", "http://secret.example/", "ws:///secret", "ws://a b/secret", "secret", "wss://%zz/secret"} {
		_, err := feed.NewClient(feed.ClientOptions{Feeds: []feed.Endpoint{{URL: "ws://a/ws"}, {URL: text}}})
		if err == nil || !strings.HasPrefix(err.Error(), "feed 2: ") || strings.Contains(err.Error(), "/secret") {
			t.Errorf("NewClient(%q) = %v, want an error about the second feed that does not tell the path", text, err)
		}
	}
	if _, err := feed.NewClient(feed.ClientOptions{}); err == nil {
		t.Error("a client of no feed was made")
	}
}

// Keys stand in paths, queries and headers, and events end up in logs.
func TestKeysAreNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuses := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) })
		n := newNetwork(t, map[string]http.Handler{"a": refuses})
		a := new(audience)
		c := run(t, feed.ClientOptions{HTTPClient: n.client(), OnEvent: a.tell, Feeds: []feed.Endpoint{
			{URL: "ws://user:hidden@a/ws/hidden?key=hidden", Header: http.Header{"X-Key": {"hidden"}}},
			{URL: "ws://user:hidden@nobody/ws/hidden?key=hidden"},
		}})
		until(t, time.Second)
		told := a.of(feed.Disconnected)
		if len(told) < 2 {
			t.Fatalf("events are %+v", told)
		}
		all := fmt.Sprintf("%+v %+v", told, c.Stats())
		if strings.Contains(all, "hidden") {
			t.Errorf("a key was told: %s", all)
		}
		if !strings.Contains(all, "401") || !strings.Contains(all, "connection refused") {
			t.Errorf("what is wrong was not told: %s", all)
		}
	})
}

// What is known again is bounded, and a feed forgets only what it brought itself.
func TestMemoryOfFlashblocksIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := start(t, feed.Options{}), start(t, feed.Options{})
		c, _ := follow(t, newNetwork(t, map[string]http.Handler{"a": a, "b": b}), feed.ClientOptions{}, "a", "b")
		synctest.Wait()
		publishTo(t, b, of(9, 1))
		expect(t, c, 9, 1)
		for i := range uint64(1025) { // one more than is remembered
			publishTo(t, a, of(7, i+1))
			expect(t, c, 7, i+1)
		}
		publishTo(t, a, of(9, 1))
		publishTo(t, a, of(7, 2))
		publishTo(t, a, of(7, 1))
		expect(t, c, 7, 1)
		if s := c.Stats(); s.Duplicates != 2 {
			t.Errorf("Stats = %+v, want two duplicates", s)
		}
	})
}

func TestFeedDoesNotForgetForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := start(t, feed.Options{}), start(t, feed.Options{})
		c, _ := follow(t, newNetwork(t, map[string]http.Handler{"a": a, "b": b}), feed.ClientOptions{MaxQueued: 1}, "a", "b")
		synctest.Wait()
		publishTo(t, a, of(7, 1))
		publishTo(t, a, of(8, 1)) // displaces it
		synctest.Wait()
		expect(t, c, 8, 1)
		publishTo(t, b, of(7, 1))
		expect(t, c, 7, 1)
		for i := range uint64(1024) { // all that the first feed remembers
			publishTo(t, a, of(9, i+1))
			expect(t, c, 9, i+1)
		}
		publishTo(t, a, of(7, 1))
		publishTo(t, a, of(9, 2000))
		expect(t, c, 9, 2000) // and not what the second feed has brought
	})
}
