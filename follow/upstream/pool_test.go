// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"glimpse/chain"
	"glimpse/follow/upstream"
	"glimpse/internal/chaingen"
)

// pair opens a pool of two nodes of the same world.
func pair(t *testing.T, w *world, o upstream.Options) (*upstream.Pool, *fakeNode, *fakeNode) {
	t.Helper()
	a, b := newNode(w), newNode(w)
	o.URLs, o.RoundTripper = []string{"http://a", "http://b"}, hosts{"a": a, "b": b}
	return openAll(t, o), a, b
}

func status(code int) func(http.ResponseWriter, []byte) bool {
	return func(w http.ResponseWriter, _ []byte) bool { w.WriteHeader(code); return true }
}

func TestFailover(t *testing.T) {
	tests := []struct {
		name  string
		harm  func(*fakeNode)
		asked bool // whether the second upstream is asked
		rests bool // whether the first is avoided afterwards
	}{
		{"a status of 500", func(n *fakeNode) { n.intercept = status(500) }, true, true},
		{"a status of 429", func(n *fakeNode) { n.intercept = status(429) }, true, true},
		{"a status of 401", func(n *fakeNode) { n.intercept = status(401) }, true, true},
		{"no answer", func(n *fakeNode) { n.intercept = func(w http.ResponseWriter, _ []byte) bool { return true } }, true, true},
		{"an internal error", fails(-32603), true, false},
		{"a limit", fails(-32005), true, true},
		{"missing state", fails(-32000), true, false},
		{"null", func(n *fakeNode) { n.set("test_it", func([]json.RawMessage) (any, error) { return nil, nil }) }, true, false},
		{"parameters that are refused", fails(-32602), false, false},
		{"a reverted call", fails(3), false, false},
		{"a method that is not known", func(n *fakeNode) { n.set("test_it", nil) }, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, a, b := pair(t, small(t), upstream.Options{})
				for _, n := range []*fakeNode{a, b} {
					n.set("test_it", func([]json.RawMessage) (any, error) { return "0x1", nil })
				}
				tt.harm(a)
				_, err := p.Call(t.Context(), "test_it")
				if (err == nil) != tt.asked || (b.called("test_it") == 1) != tt.asked {
					t.Errorf("error %v, the second upstream was asked %d times", err, b.called("test_it"))
				}
				if healthy := p.Status()[0].Healthy; healthy == tt.rests {
					t.Errorf("the first upstream is healthy: %v", healthy)
				}
				if p.Status()[1].Leads != tt.rests {
					t.Errorf("the second upstream leads: %v, want %v", p.Status()[1].Leads, tt.rests)
				}
			})
		})
	}
}

func fails(code int) func(*fakeNode) {
	return func(n *fakeNode) {
		n.set("test_it", func([]json.RawMessage) (any, error) { return nil, &upstream.RPCError{Code: code, Message: "no"} })
	}
}

// That one upstream does not know a block is no answer while another one cannot
// be asked.
func TestNotFoundNeedsAllUpstreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, a, b := pair(t, small(t), upstream.Options{})
		if _, err := p.BlockByHash(t.Context(), chain.Hash{1}); !errors.Is(err, upstream.ErrNotFound) {
			t.Errorf("neither knows it: got %v, want ErrNotFound", err)
		}
		b.intercept = status(500)
		if _, err := p.BlockByHash(t.Context(), chain.Hash{1}); err == nil || errors.Is(err, upstream.ErrNotFound) {
			t.Errorf("one is down: got %v, want that it is not known", err)
		}
		a.setHead(3)
		b.intercept = nil
		if _, err := p.BlockByHash(t.Context(), a.world.blocks[7].Hash()); err != nil {
			t.Errorf("one is behind, the other knows it: got %v", err)
		}
	})
}

// A block that one upstream lies about is had from the other one.
func TestLieIsAskedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, a, _ := pair(t, small(t), upstream.Options{})
		lie := objectOf(a.world.blocks[7])
		lie["stateRoot"] = chain.Hash{1}
		a.set("eth_getBlockByHash", func([]json.RawMessage) (any, error) { return lie, nil })
		b, err := p.BlockByHash(t.Context(), a.world.blocks[7].Hash())
		if err != nil || b.Upstream != "http://b" {
			t.Errorf("got %+v, %v, want the block of the honest one", b, err)
		}
		if s := p.Status()[0]; s.Lies != 1 || s.Healthy {
			t.Errorf("got status %+v, want one lie and no health", s)
		}
	})
}

func TestAnotherChainIsNotAsked(t *testing.T) {
	w := small(t)
	other := newWorld(t, 5, 3, chaingen.Options{Forks: chaingen.Newest})
	a, b := newNode(w), newNode(other)
	nodes := hosts{"a": a, "b": b}
	p := openAll(t, upstream.Options{URLs: []string{"http://a", "http://b"}, RoundTripper: nodes, Rounds: 1})
	if s := p.Status()[1]; s.Healthy || s.Can != nil || !errors.Is(s.Error, upstream.ErrWrongChain) {
		t.Errorf("another genesis: got status %+v, want ErrWrongChain", s)
	}
	before := b.called("eth_chainId")
	a.intercept = status(500)
	if _, err := p.Call(t.Context(), "eth_chainId"); err == nil || b.called("eth_chainId") != before {
		t.Errorf("got %v, and %d calls to the other chain", err, b.called("eth_chainId")-before)
	}
	a.intercept = nil
	for name, o := range map[string]upstream.Options{"chain id": {ChainID: 5}, "genesis": {Genesis: chain.Hash{1}}} {
		o.URLs, o.RoundTripper = []string{"http://a"}, nodes
		if _, err := upstream.Open(t.Context(), o); !errors.Is(err, upstream.ErrWrongChain) {
			t.Errorf("another %s than wanted: got %v, want ErrWrongChain", name, err)
		}
	}
}

// An upstream that accepts and drops must not be asked in a tight loop, and one
// that came back must be asked again.
func TestBackoffGrowsAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(small(t))
		p := openAll(t, upstream.Options{URLs: []string{"http://node"}, RoundTripper: hosts{"node": n},
			PollEvery: time.Second, MinBackoff: time.Second, MaxBackoff: 8 * time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		synctest.Wait()
		var at []time.Duration
		start := time.Now()
		n.mu.Lock()
		n.intercept = func(w http.ResponseWriter, _ []byte) bool {
			at = append(at, time.Since(start))
			w.WriteHeader(503)
			return true
		}
		n.mu.Unlock()
		<-time.After(60 * time.Second)
		synctest.Wait()
		n.mu.Lock()
		n.intercept = nil
		n.mu.Unlock()
		for i := 1; i < len(at); i++ {
			least, most := min(time.Second<<(i-1), 8*time.Second)/2, min(time.Second<<(i-1), 8*time.Second)
			if wait := at[i] - at[i-1]; wait < least || wait > most {
				t.Errorf("waited %v before attempt %d, want %v to %v", wait, i+1, least, most)
			}
		}
		if len(at) < 7 {
			t.Errorf("%d attempts in a minute", len(at))
		}
		<-time.After(20 * time.Second)
		synctest.Wait()
		if s := p.Status()[0]; !s.Healthy || s.Error == nil {
			t.Errorf("got status %+v, want a healthy one that remembers its failure", s)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v, want that it was cancelled", err)
		}
	})
}

// Heads are coalesced: whoever is slow sees the newest.
func TestHeadsByPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(small(t))
		n.setHead(2)
		p := openAll(t, upstream.Options{URLs: []string{"http://node"}, RoundTripper: hosts{"node": n}, PollEvery: time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go p.Run(ctx) //nolint:errcheck // it ends with ctx
		synctest.Wait()
		if head := <-p.Heads(); head.Latest != n.world.ref(2) || head.Parent != n.world.blocks[1].Hash() || head.Upstream != "http://node" {
			t.Errorf("first head = %+v, want block 2", head)
		}
		for _, at := range []int{5, 7, 9} {
			n.setHead(at)
			<-time.After(2 * time.Second)
		}
		synctest.Wait()
		head := <-p.Heads()
		if head.Latest != n.world.ref(9) || head.Safe != n.world.ref(5) || head.Finalized != n.world.ref(5) || p.Head() != head {
			t.Errorf("head = %+v, want block 9 with safe and finalized", head)
		}
		select {
		case head := <-p.Heads():
			t.Errorf("a backlog: %+v", head)
		default:
		}
		n.setHead(4)
		if head := <-p.Heads(); head.Latest != n.world.ref(4) {
			t.Errorf("after a reorganisation head = %+v, want block 4", head)
		}
	})
}

// A node that knows of no safe block says so in one of several ways.
func TestHeadWithoutSafeAndFinalized(t *testing.T) {
	for name, answer := range map[string]func([]json.RawMessage) (any, error){
		"null": func([]json.RawMessage) (any, error) { return nil, nil },
		"error": func([]json.RawMessage) (any, error) {
			return nil, &upstream.RPCError{Code: -32000, Message: "safe block not found"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(small(t))
				honest := n.methods["eth_getBlockByNumber"]
				n.methods["eth_getBlockByNumber"] = func(p []json.RawMessage) (any, error) {
					if s := string(p[0]); s == `"safe"` || s == `"finalized"` {
						return answer(p)
					}
					return honest(p)
				}
				p := openAll(t, upstream.Options{URLs: []string{"http://node"}, RoundTripper: hosts{"node": n}})
				if can := p.Can(); can.Safe || can.Finalized {
					t.Errorf("the tags are found to work: %+v", can)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go p.Run(ctx) //nolint:errcheck // it ends with ctx
				synctest.Wait()
				if head := <-p.Heads(); head.Latest.Number != 12 || head.Safe != (chain.Ref{}) || head.Finalized != (chain.Ref{}) {
					t.Errorf("head = %+v, want no safe and finalized block", head)
				}
			})
		})
	}
}

// An upstream that falls behind does not lead; its successor's heads do not go
// backwards, and it leads no more when it is back.
func TestLagMovesTheLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := small(t)
		a, b := newNode(w), newNode(w)
		a.setHead(5)
		b.setHead(4)
		p := openAll(t, upstream.Options{URLs: []string{"http://a", "http://b"}, RoundTripper: hosts{"a": a, "b": b},
			PollEvery: time.Second, SilentAfter: time.Minute, MaxLag: 2})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go p.Run(ctx) //nolint:errcheck // it ends with ctx
		<-time.After(10 * time.Second)
		synctest.Wait()
		if head := <-p.Heads(); head.Latest != a.world.ref(5) {
			t.Fatalf("head = %+v, want block 5 of the first", head)
		}
		b.setHead(8)
		if head := <-p.Heads(); head.Latest != a.world.ref(8) || head.Upstream != "http://b" {
			t.Errorf("head = %+v, want block 8 of the second", head)
		}
		if s := p.Status(); s[0].Healthy || s[0].Lag != 3 || s[0].Leads || !s[1].Leads {
			t.Errorf("got status %+v, want the second to lead", s)
		}
		a.setHead(9)
		<-time.After(10 * time.Second)
		synctest.Wait()
		if s := p.Status(); !s[0].Healthy || s[0].Leads {
			t.Errorf("got status %+v, want a healthy first that does not lead", s)
		}
		a.setHead(7)
		<-time.After(10 * time.Second)
		b.mu.Lock()
		b.intercept = status(500)
		b.mu.Unlock()
		<-time.After(10 * time.Second)
		synctest.Wait()
		select {
		case head := <-p.Heads():
			t.Errorf("head went back to %+v when the lead changed", head)
		default:
		}
		a.setHead(10)
		if head := <-p.Heads(); head.Latest != a.world.ref(10) {
			t.Errorf("head = %+v, want block 10", head)
		}
		// Where it stays there, the chain is shorter indeed.
		a.mu.Lock()
		a.intercept = status(500)
		a.mu.Unlock()
		b.mu.Lock()
		b.intercept, b.head = nil, 6
		b.mu.Unlock()
		start := time.Now()
		if head := <-p.Heads(); head.Latest != a.world.ref(6) || time.Since(start) < 30*time.Second {
			t.Errorf("after %v head = %+v, want block 6 after a minute", time.Since(start), head)
		}
	})
}

func TestCapabilities(t *testing.T) {
	w := small(t)
	bare := *open(t, newNode(w)).Can()
	if bare.RawBlocks || bare.Proofs || bare.Receipts || bare.Traces() || bare.Config != nil || bare.RawTransactions || bare.Subscriptions || bare.AccessLists {
		t.Errorf("a node without more is found to have more: %+v", bare)
	}
	if bare.State != upstream.StateAll || !bare.RequireCanonical || !bare.Safe || !bare.Finalized || bare.ChainID != 7771 || bare.Genesis != w.blocks[0].Hash() {
		t.Errorf("what the node has is not found: %+v", bare)
	}
	n := newNode(w).withRaw()
	full := func(result string) func([]json.RawMessage) (any, error) {
		return func([]json.RawMessage) (any, error) { return json.RawMessage(result), nil }
	}
	n.methods["web3_clientVersion"] = full(`"Fake/1"`)
	n.methods["eth_config"] = full(`{"current":{}}`)
	n.methods["eth_getProof"] = full(`{}`)
	n.methods["eth_getBlockReceipts"] = full(`[]`)
	n.methods["debug_traceBlockByNumber"] = full(`[{"result":{"pre":{},"post":{}}}]`)
	n.methods["debug_traceBlockByHash"] = full(`[{"result":{"from":"0x"}}]`) // not in diff mode
	honest := n.methods["eth_getStorageAt"]
	n.methods["eth_getStorageAt"] = func(p []json.RawMessage) (any, error) {
		if string(p[2]) == `"0x0"` {
			return nil, &upstream.RPCError{Code: -32000, Message: "missing trie node"}
		}
		return honest(p)
	}
	can := *open(t, n).Can()
	if !can.RawBlocks || !can.Proofs || !can.Receipts || !can.TraceByNumber || can.TraceByHash || string(can.Config) != `{"current":{}}` || can.Client != "Fake/1" {
		t.Errorf("what the node has is not found: %+v", can)
	}
	if can.State != 0 { // the chain is shorter than 128 blocks, so that all depths are block 0
		t.Errorf("state is found %d blocks back, want 0", can.State)
	}
}
