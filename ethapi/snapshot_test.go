// SPDX-License-Identifier: Apache-2.0

package ethapi_test

import (
	"context"
	"errors"
	"math/big"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/ethapi"
	"glimpse/jsonrpc"
)

// header is a jsonrpc.Header.
type header map[string]string

func (h header) Peek(name string) []byte {
	if v, ok := h[name]; ok {
		return []byte(v)
	}
	return nil
}

// A later is a node on block 5, and on flashblock 6.4 and block 6 after a second
// each.
type later struct {
	start time.Time
	err   error // of AcquireAtLeast, where not nil

	mu   sync.Mutex
	all  []*fake // guarded by mu, as is what follows
	now  int     // requests that are waiting
	most int     // requests that were waiting at once
}

func (l *later) acquire() ethapi.Snapshot {
	f := new(fake)
	switch seconds := time.Since(l.start) / time.Second; {
	case seconds >= 2:
		f.height = 6
	case seconds == 1:
		f.pending = &chain.Preconfirmed{Header: &types.Header{Number: big.NewInt(6)}, Index: 4}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, f)
	return f
}

func (l *later) acquireAtLeast(ctx context.Context, p chain.Progress) (ethapi.Snapshot, error) {
	l.waiting(1)
	defer l.waiting(-1)
	for {
		s := l.acquire()
		pending, _ := s.Pending()
		if l.err == nil && p.ReachedBy(s.Latest().Number, pending) {
			return s, nil
		}
		s.Release()
		if l.err != nil {
			return nil, l.err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, &chain.Miss{Reason: chain.NotYet}
		}
	}
}

func (l *later) waiting(more int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now += more
	l.most = max(l.most, l.now)
}

func (l *later) configure(c *ethapi.Config) {
	l.start = time.Now()
	c.Acquire, c.AcquireAtLeast = l.acquire, l.acquireAtLeast
}

// released reports whether every snapshot was given back once.
func (l *later) released() bool {
	for _, f := range l.all {
		if f.released != 1 {
			return false
		}
	}
	return true
}

func TestHeaders(t *testing.T) {
	const notYet = `{"reason":"not-yet","oldest":"0x2","latest":"0x5"}`
	tests := []struct {
		name   string
		header header
		took   time.Duration
		stamp  string // how it begins
		code   int
		text   string // of the error
		data   string
	}{
		{"none", header{}, 0, "5:", 0, "", ""},
		{"others", header{"Glimpse-Snapshot": "9:0x00", "glimpse": "x"}, 0, "5:", 0, "", ""},
		{"reached", header{"Glimpse-At-Least": "5"}, 0, "5:", 0, "", ""},
		{"reached, with a wait", header{"Glimpse-At-Least": "4.2", "Glimpse-Wait": "1000"}, 0, "5:", 0, "", ""},
		{"a wait for nothing", header{"Glimpse-Wait": "1000"}, 0, "5:", 0, "", ""},
		{"not reached, without a wait", header{"Glimpse-At-Least": "6"}, 0, "5:", -32000, "not reached yet", notYet},
		{"not reached, with a wait of 0", header{"Glimpse-At-Least": "6", "Glimpse-Wait": "0"}, 0, "5:", -32000, "not reached yet", notYet},
		{"a flashblock, reached in time", header{"Glimpse-At-Least": "6.4", "Glimpse-Wait": "1500"}, time.Second, "5:stamp;pending=6.4", 0, "", ""},
		{"a block, reached in time", header{"Glimpse-At-Least": "6", "Glimpse-Wait": "3000"}, 2 * time.Second, "6:", 0, "", ""},
		{"a flashblock of a block that was sealed meanwhile", header{"Glimpse-At-Least": "6.5", "Glimpse-Wait": "3000"}, 2 * time.Second, "6:", 0, "", ""},
		{"not reached in time", header{"Glimpse-At-Least": "6", "Glimpse-Wait": "1500"}, 1500 * time.Millisecond, "5:stamp;pending=6.4", -32000, "not reached yet", notYet},
		{"never, up to the node's patience", header{"Glimpse-At-Least": "7", "Glimpse-Wait": "18446744073709551615"}, 5 * time.Second, "6:", -32000, "not reached yet",
			`{"reason":"not-yet","oldest":"0x2","latest":"0x6"}`},

		{"an empty block", header{"Glimpse-At-Least": ""}, 0, "5:", -32602, "invalid header Glimpse-At-Least: want <number> or <number>.<index>", ""},
		{"a hex block", header{"Glimpse-At-Least": "0x5"}, 0, "5:", -32602, "invalid header Glimpse-At-Least", ""},
		{"a tag", header{"Glimpse-At-Least": "latest"}, 0, "5:", -32602, "invalid header Glimpse-At-Least", ""},
		{"a whole stamp", header{"Glimpse-At-Least": "5:0x00;pending=6.1"}, 0, "5:", -32602, "invalid header Glimpse-At-Least", ""},
		{"a bad block and a wait", header{"Glimpse-At-Least": "-1", "Glimpse-Wait": "1000"}, 0, "5:", -32602, "invalid header Glimpse-At-Least", ""},
		{"an empty wait", header{"Glimpse-At-Least": "5", "Glimpse-Wait": ""}, 0, "5:", -32602, "invalid header Glimpse-Wait: want milliseconds", ""},
		{"a wait with a unit", header{"Glimpse-At-Least": "5", "Glimpse-Wait": "1s"}, 0, "5:", -32602, "invalid header Glimpse-Wait", ""},
		{"a negative wait", header{"Glimpse-Wait": "-1"}, 0, "5:", -32602, "invalid header Glimpse-Wait", ""},
		{"a wait with a leading zero", header{"Glimpse-Wait": "010"}, 0, "5:", -32602, "invalid header Glimpse-Wait", ""},
		{"a wait beyond all numbers", header{"Glimpse-Wait": "18446744073709551616"}, 0, "5:", -32602, "invalid header Glimpse-Wait", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := new(later)
				api := newAPI(new(fake), node.configure)
				s := api.Begin(t.Context(), tt.header)
				if took := time.Since(node.start); took != tt.took {
					t.Errorf("it took %v, want %v", took, tt.took)
				}
				name, stamp := s.(jsonrpc.Stamped).Stamp()
				if name != "Glimpse-Snapshot" || !strings.HasPrefix(string(stamp), tt.stamp) {
					t.Errorf("stamped %s: %s, want %s", name, stamp, tt.stamp)
				}
				// Also methods that need no state.
				for _, method := range []string{"eth_blockNumber", "eth_chainId", "web3_clientVersion"} {
					_, err := s.Call(t.Context(), nil, []byte(method), jsonrpc.Values{})
					switch {
					case tt.code == 0 && err != nil:
						t.Errorf("%s gives %v", method, err)
					case tt.code == 0:
					case err == nil || err.Code != tt.code || !strings.Contains(err.Message, tt.text) || string(err.Data) != tt.data:
						t.Errorf("%s gives %+v, want %d %q %s", method, err, tt.code, tt.text, tt.data)
					}
				}
				if _, err := s.Call(t.Context(), nil, []byte("eth_nothing"), jsonrpc.Values{}); err == nil || err.Code != jsonrpc.CodeMethodNotFound {
					t.Errorf("a method that does not exist gives %v", err)
				}
				s.End()
				if !node.released() {
					t.Error("a snapshot was not released once")
				}
			})
		})
	}
}

func TestStampWithoutSession(t *testing.T) {
	f := new(fake)
	name, value := newAPI(f, nil).AppendStamp([]byte("before "))
	if name != "Glimpse-Snapshot" || string(value) != "before 5:stamp;pending=latest" || f.released != 1 {
		t.Errorf("got %s: %s with %d released", name, value, f.released)
	}
}

func TestNodeThatDoesNotWait(t *testing.T) {
	tests := []struct {
		name   string
		change func(*ethapi.Config)
	}{
		{"it cannot", func(c *ethapi.Config) { c.AcquireAtLeast = nil }},
		{"it is told not to", func(c *ethapi.Config) { c.MaxWait = -1 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := new(later)
				api := newAPI(new(fake), func(c *ethapi.Config) { node.configure(c); tt.change(c) })
				s := api.Begin(t.Context(), header{"Glimpse-At-Least": "6", "Glimpse-Wait": "3000"})
				_, err := s.Call(t.Context(), nil, []byte("eth_chainId"), jsonrpc.Values{})
				if err == nil || err.Code != -32000 || time.Since(node.start) != 0 {
					t.Errorf("after %v: %v, want not-yet at once", time.Since(node.start), err)
				}
				s.End()
			})
		})
	}
}

// Of many that would wait only so many do; the others are told at once, and may
// wait again when there is room.
func TestWaitingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const room, requests = 3, 10
		node := new(later)
		api := newAPI(new(fake), func(c *ethapi.Config) { node.configure(c); c.MaxWaiting = room })
		ask := func() (code int, took time.Duration) {
			start := time.Now()
			s := api.Begin(t.Context(), header{"Glimpse-At-Least": "6", "Glimpse-Wait": "3000"})
			defer s.End()
			if _, err := s.Call(t.Context(), nil, []byte("eth_chainId"), jsonrpc.Values{}); err != nil {
				code = err.Code
			}
			return code, time.Since(start)
		}
		outcomes := make(chan int, requests)
		for range requests {
			go func() {
				code, took := ask()
				if code != 0 && took != 0 {
					t.Errorf("refused after %v, want at once", took)
				}
				outcomes <- code
			}()
		}
		served := 0
		for range requests {
			if <-outcomes == 0 {
				served++
			}
		}
		if served != room || node.most != room {
			t.Errorf("%d were served, %d waited at once, want %d", served, node.most, room)
		}
		if code, _ := ask(); code != 0 {
			t.Errorf("afterwards the answer is %d", code)
		}
	})
}

// A node that ends while a request waits has no snapshot to name.
func TestWaitingOnANodeThatEnds(t *testing.T) {
	node := &later{err: errors.New("closed")}
	api := newAPI(new(fake), node.configure)
	s := api.Begin(t.Context(), header{"Glimpse-At-Least": "6", "Glimpse-Wait": "3000"})
	if name, value := s.(jsonrpc.Stamped).Stamp(); name != "" || value != nil {
		t.Errorf("stamped %s: %s, want no stamp", name, value)
	}
	if _, err := s.Call(t.Context(), nil, []byte("eth_chainId"), jsonrpc.Values{}); err == nil || err.Code != jsonrpc.CodeInternal {
		t.Errorf("got %v, want an internal error", err)
	}
	s.End()
	if !node.released() {
		t.Error("a snapshot was not released once")
	}
}
