// SPDX-License-Identifier: Apache-2.0

package feed_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/coder/websocket"

	"glimpse/flashblock"
	"glimpse/flashblock/feed"
)

// Each fault is what a feed does on the first visit. On the next it is well, and
// what it sends then must arrive.
func TestFaultyFeeds(t *testing.T) {
	piece := func(t *testing.T, index uint64) []byte { return encode(t, of(7, index)) }
	tests := []struct {
		name  string
		fault func(ctx context.Context, t *testing.T, conn *websocket.Conn)
		err   string // why the client left
		want  []uint64
		stats feed.Counts
	}{
		{"it hangs up", func(ctx context.Context, t *testing.T, conn *websocket.Conn) {
			send(ctx, t, conn, piece(t, 1))
		}, "EOF", []uint64{1}, feed.Counts{Messages: 2}},
		{"it says goodbye", func(ctx context.Context, t *testing.T, conn *websocket.Conn) {
			_ = conn.Close(websocket.StatusTryAgainLater, "lagging") // whether it is heard is seen below
		}, "lagging", nil, feed.Counts{Messages: 1}},
		{"it sends nothing but garbage", func(ctx context.Context, t *testing.T, conn *websocket.Conn) {
			for i := 0; ctx.Err() == nil; i++ {
				_ = conn.Write(ctx, websocket.MessageBinary, fmt.Appendf(nil, "garbage %d", i)) // until the client leaves
			}
		}, "no flashblock in many messages", nil, feed.Counts{Messages: 1, Bad: 16}},
		{"it sends some garbage", func(ctx context.Context, t *testing.T, conn *websocket.Conn) {
			for i := range uint64(20) {
				send(ctx, t, conn, []byte(`{"jsonrpc":"2.0","result":true}`))
				send(ctx, t, conn, []byte{})
				send(ctx, t, conn, piece(t, 1+i))
			}
		}, "EOF", []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, feed.Counts{Messages: 21, Bad: 40}},
		{"it tells the ends of builds", func(ctx context.Context, t *testing.T, conn *websocket.Conn) {
			for i := range uint64(20) {
				send(ctx, t, conn, bytes.Replace(piece(t, 1+i), []byte(`{`), []byte(`{"target_index":9,`), 1))
				send(ctx, t, conn, []byte(`{"payload_id":"0x0307000000000000"}`))
			}
		}, "EOF", []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, feed.Counts{Messages: 21, Ends: 20}},
		{"it repeats, reorders and loses", func(ctx context.Context, t *testing.T, conn *websocket.Conn) {
			for _, i := range []uint64{1, 1, 2, 5, 4, 4, 7, 1} {
				send(ctx, t, conn, piece(t, i))
			}
		}, "EOF", []uint64{1, 2, 5, 4, 7}, feed.Counts{Messages: 9, Duplicates: 3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				visits := 0
				server := accepting(func(ctx context.Context, conn *websocket.Conn) {
					if visits++; visits == 1 {
						tt.fault(ctx, t, conn)
						return
					}
					send(ctx, t, conn, piece(t, 99))
					<-ctx.Done()
				})
				c, a := follow(t, newNetwork(t, map[string]http.Handler{"a": server}), feed.ClientOptions{}, "a")
				for _, index := range append(tt.want, 99) {
					expect(t, c, 7, index)
				}
				gone := a.of(feed.Disconnected)
				if len(gone) != 1 || !strings.Contains(gone[0].Err.Error(), tt.err) {
					t.Errorf("disconnected: %+v, want one about %q", gone, tt.err)
				}
				tt.stats.Reconnects = 1
				if s := c.Stats(); s.Counts != tt.stats {
					t.Errorf("counted %+v, want %+v", s.Counts, tt.stats)
				}
				if told := a.of(feed.Refused); len(told) > 1 || (len(told) == 1) != (tt.stats.Bad > 0) {
					t.Errorf("%d events about bad messages: %+v", len(told), told)
				}
			})
		})
	}
}

// raw serves WebSocket clients by hand on the first visit, to say what no library
// would, and with one flashblock on the others.
func raw(t *testing.T, first func(w http.ResponseWriter, r *http.Request)) http.Handler {
	visits := 0
	well := accepting(func(ctx context.Context, conn *websocket.Conn) {
		send(ctx, t, conn, encode(t, of(7, 99)))
		<-ctx.Done()
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if visits++; visits == 1 {
			first(w, r)
			return
		}
		well.ServeHTTP(w, r)
	})
}

// frame sends the header of a frame of binary data and then some of it, up to n
// bytes in all or until the client has hung up.
func frame(t *testing.T, w http.ResponseWriter, r *http.Request, says uint64, n int) {
	t.Helper()
	// The handshake is the library's, what follows is not.
	hijacked := &hijacking{ResponseWriter: w}
	if _, err := websocket.Accept(hijacked, r, nil); err != nil {
		t.Errorf("accept: %v", err)
		return
	}
	defer hijacked.conn.Close()
	header := binary.BigEndian.AppendUint64([]byte{0x82, 127}, says)
	if _, err := hijacked.conn.Write(header); err != nil {
		t.Errorf("write the header: %v", err)
	}
	chunk := bytes.Repeat([]byte{' '}, 1<<20)
	for n > 0 {
		k, err := hijacked.conn.Write(chunk[:min(n, len(chunk))])
		if err != nil {
			return
		}
		n -= k
	}
}

func TestConnectionCutInAFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := raw(t, func(w http.ResponseWriter, r *http.Request) { frame(t, w, r, 1000, 10) })
		c, a := follow(t, newNetwork(t, map[string]http.Handler{"a": server}), feed.ClientOptions{}, "a")
		expect(t, c, 7, 99)
		if gone := a.of(feed.Disconnected); len(gone) != 1 || !strings.Contains(gone[0].Err.Error(), "EOF") {
			t.Errorf("disconnected: %+v", gone)
		}
	})
}

// allocated returns how many bytes a function allocates, all together, which is
// more than it has at any one time. Nothing else must run meanwhile.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestHugeFrameCostsBoundedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := raw(t, func(w http.ResponseWriter, r *http.Request) { frame(t, w, r, 100<<20, 100<<20) })
		var stats feed.Stats
		used := allocated(func() {
			c, a := follow(t, newNetwork(t, map[string]http.Handler{"a": server}), feed.ClientOptions{}, "a")
			expect(t, c, 7, 99)
			stats = c.Stats()
			gone := a.of(feed.Disconnected)
			if len(gone) != 1 || !strings.HasPrefix(gone[0].Err.Error(), "message longer than") || len(a.of(feed.Refused)) != 1 {
				t.Errorf("events are %+v", a.all())
			}
		})
		if stats.Bad != 1 || stats.Messages != 1 {
			t.Errorf("Stats = %+v", stats)
		}
		// A buffer that doubles until it has the largest message.
		t.Logf("a frame of 100 MiB: %d MiB allocated in all", used>>20)
		if used > 4*flashblock.MaxSize {
			t.Errorf("a frame of 100 MiB made the client allocate %d MiB", used>>20)
		}
	})
}

func TestBrotliBombCostsBoundedMemory(t *testing.T) {
	var bomb bytes.Buffer
	w := brotli.NewWriterLevel(&bomb, 1)
	spaces := bytes.Repeat([]byte{' '}, 1<<20)
	for range 40 {
		if _, err := w.Write(spaces); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		server := accepting(func(ctx context.Context, conn *websocket.Conn) {
			if err := conn.Write(ctx, websocket.MessageBinary, bomb.Bytes()); err != nil {
				t.Error(err)
			}
			send(ctx, t, conn, encode(t, of(7, 99)))
			<-ctx.Done()
		})
		used := allocated(func() {
			c, _ := follow(t, newNetwork(t, map[string]http.Handler{"a": server}), feed.ClientOptions{}, "a")
			expect(t, c, 7, 99) // on the same connection
			if s := c.Stats(); s.Bad != 1 || s.Reconnects != 0 {
				t.Errorf("Stats = %+v", s)
			}
		})
		t.Logf("a bomb of 40 MiB in %d bytes: %d MiB allocated in all", bomb.Len(), used>>20)
		if used > 3*flashblock.MaxSize {
			t.Errorf("%d bytes made the client allocate %d MiB", bomb.Len(), used>>20)
		}
	})
}

// What remains of a huge message once it was handled is not kept.
func TestBufferOfAHugeMessageIsReleased(t *testing.T) {
	live := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	p := start(t, feed.Options{})
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	connected := make(chan struct{}, 1) // one event is waited for
	c := run(t, feed.ClientOptions{
		Feeds:   []feed.Endpoint{{URL: "ws" + strings.TrimPrefix(server.URL, "http") + feed.Path}},
		OnEvent: func(feed.Event) { connected <- struct{}{} },
	})
	<-connected
	before := live()
	big := of(7, 1)
	big.Delta.Transactions = [][]byte{make([]byte, 4<<20)}
	publishTo(t, p, big)
	expect(t, c, 7, 1)
	big = nil
	publishTo(t, p, of(7, 2))
	expect(t, c, 7, 2)
	if after := live(); after > before+4<<20 {
		t.Errorf("%d MiB are still held after a message of 8 MiB", (after-before)>>20)
	}
}

// Whatever the messages are, each is counted once for what became of it, and what
// waits is bounded.
func FuzzMessages(f *testing.F) {
	for i := range uint64(3) {
		f.Add(encode(f, of(7, i+1)))
	}
	f.Add(bytes.Join([][]byte{encode(f, of(7, 1)), encode(f, of(7, 1)), encode(f, of(8, 1)), []byte(`{"payload_id":"0x0307000000000000"}`), []byte("x")}, []byte{'\n'}))
	f.Fuzz(func(t *testing.T, data []byte) {
		messages := bytes.Split(data, []byte{'\n'})
		if len(messages) > 100 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			at := 0
			server := accepting(func(ctx context.Context, conn *websocket.Conn) {
				for ; at < len(messages) && ctx.Err() == nil; at++ {
					if conn.Write(ctx, websocket.MessageBinary, messages[at]) != nil {
						return
					}
				}
				<-ctx.Done()
			})
			c, _ := follow(t, newNetwork(t, map[string]http.Handler{"a": server}), feed.ClientOptions{MaxQueued: 4, IdleTimeout: time.Minute}, "a")
			synctest.Wait()
			s := c.Stats()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			taken := uint64(0)
			for ; ; taken++ {
				if _, err := c.Next(ctx); err != nil {
					break
				}
			}
			if total := s.Messages + s.Bad + s.Ends; s.Reconnects == 0 && total != uint64(len(messages)) {
				t.Errorf("%d messages, counted %+v", len(messages), s)
			}
			if s.Reconnects == 0 && (taken > 4 || s.Messages != taken+s.Duplicates+s.Disagreements+s.Dropped) {
				t.Errorf("%d were taken, counted %+v", taken, s)
			}
		})
	})
}
