// SPDX-License-Identifier: Apache-2.0

package ethapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/chain"
	"glimpse/ethapi"
	"glimpse/jsonrpc"
	"glimpse/watch"
)

// branched is a fake whose blocks from 3 on are those of one branch.
type branched struct {
	*fake
	branch     string
	superseded chan struct{} // made when it is shown
}

func onBranch(name string, height chain.Number, pending *chain.Preconfirmed) *branched {
	return &branched{fake: &fake{height: height, pending: pending}, branch: name}
}

func (b *branched) header(n chain.Number) *types.Header {
	h := fakeHeader(n)
	if n >= 3 {
		h.Extra = []byte(b.branch)
	}
	return h
}

func (b *branched) Header(n chain.Number) ([]byte, error) {
	if err := b.fail("Header"); err != nil {
		return nil, err
	}
	return rlp.EncodeToBytes(b.header(n))
}

func (b *branched) Hash(n chain.Number) (chain.Hash, error) { return b.header(n).Hash(), nil }
func (b *branched) Latest() chain.Ref {
	return chain.Ref{Number: b.top(), Hash: b.header(b.top()).Hash()}
}
func (b *branched) Superseded() <-chan struct{} { return b.superseded }
func (b *branched) PendingChanges(chain.Address) ([]chain.SlotDiff, bool) {
	return nil, false
}

// A stage shows one snapshot after the other to a Notifier.
type stage struct {
	mu      sync.Mutex
	current *branched
	*ethapi.Notifier
}

// newStage must be called in a synctest bubble.
func newStage(t *testing.T, first *branched, o watch.Options) *stage {
	t.Helper()
	s := &stage{current: first}
	first.superseded = make(chan struct{})
	w := watch.New(func() ethapi.WatchedSnapshot { return s.snapshot() }, o)
	s.Notifier = newAPI(first.fake, func(c *ethapi.Config) {
		c.Acquire = func() ethapi.Snapshot { return s.snapshot() }
	}).Notifying(w)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = w.Run(ctx) }() // returns only ctx's error
	t.Cleanup(func() { cancel(); <-ended })
	return s
}

func (s *stage) snapshot() *branched {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

func (s *stage) show(next *branched) {
	s.mu.Lock()
	old := s.current
	s.current, next.superseded = next, make(chan struct{})
	s.mu.Unlock()
	close(old.superseded)
	synctest.Wait()
}

// ask makes one call in the snapshot that is shown.
func (s *stage) ask(t *testing.T, method, params string) string {
	t.Helper()
	values, _ := jsonrpc.Value(params).Elements()
	session := s.Begin(t.Context(), nil)
	defer session.End()
	out, err := session.Call(t.Context(), nil, []byte(method), values)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func object(t *testing.T, text string) (m map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

func TestNewHeadsAreTheBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, onBranch("old", 4, nil), watch.Options{})
		heads := subscribe(t, s.Notifier, `["newHeads"]`)
		s.show(onBranch("new", 5, nil))
		told := drain(t, heads)
		if len(told) != 3 {
			t.Fatalf("got %d headers, want those of blocks 3, 4 and 5 of the new branch", len(told))
		}
		for i, text := range told {
			got := object(t, text)
			want := object(t, s.ask(t, "eth_getBlockByNumber", fmt.Sprintf(`["0x%x",false]`, i+3)))
			for name, value := range want {
				if slices.Contains([]string{"transactions", "uncles", "size", "withdrawals"}, name) {
					continue
				}
				if !reflect.DeepEqual(got[name], value) {
					t.Errorf("block %d: %s is %v, want %v", i+3, name, got[name], value)
				}
			}
			if got["extraData"] != "0x6e6577" {
				t.Errorf("block %d is not of the new branch: %s", i+3, text)
			}
		}
	})
}

func TestLogsThroughAReorg(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, onBranch("old", 4, nil), watch.Options{})
		logsOf := func(filter string) (logs []*types.Log) {
			t.Helper()
			if err := json.Unmarshal([]byte(s.ask(t, "eth_getLogs", `[{`+filter+`}]`)), &logs); err != nil {
				t.Fatal(err)
			}
			return logs
		}
		topics := `"topics":["` + emitted.Hex() + `"]`
		all := subscribe(t, s.Notifier, `["logs",{}]`)
		some := subscribe(t, s.Notifier, `["logs",{`+topics+`}]`)
		late := subscribe(t, s.Notifier, `["logs",{"fromBlock":"0x5"}]`)
		early := subscribe(t, s.Notifier, `["logs",{"toBlock":"0x3"}]`)
		removed := [][]*types.Log{logsOf(`"fromBlock":"0x3"`), logsOf(`"fromBlock":"0x3",` + topics)}
		s.show(onBranch("new", 5, nil))
		added := [][]*types.Log{logsOf(`"fromBlock":"0x3"`), logsOf(`"fromBlock":"0x3",` + topics)}
		for i, subscription := range []jsonrpc.Subscription{all, some} {
			var want []string
			for _, log := range slices.Backward(removed[i]) {
				log.Removed = true
				want = append(want, text(t, log))
			}
			for _, log := range added[i] {
				want = append(want, text(t, log))
			}
			if got := drain(t, subscription); !slices.Equal(got, want) || len(got) < 4 {
				t.Errorf("subscription %d\n got %s\nwant %s", i, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
			}
		}
		if got := drain(t, late); len(got) != 0 {
			t.Errorf("from block 5: got %v, want nothing: it has no logs", got)
		}
		if got := drain(t, early); len(got) != 0 {
			t.Errorf("up to block 3: got %v, want nothing: it has no logs", got)
		}
	})
}

func text(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// promisedBlock is block 5 with its first transactions, up to a flashblock.
func promisedBlock(index uint64, transactions int) *chain.Preconfirmed {
	return withTransactions(index, fakeTransactions(5)[:transactions])
}

func TestNewFlashblocks(t *testing.T) {
	const revoked = `{"revoked":true,"number":"0x5","parentHash":"0x0000000000000000000000000000000000000000000000000000000000000105","index":"0x1"}`
	moved := onBranch("a", 5, nil)
	moved.broken = "place" // block 5 has the transactions in another order
	anew := onBranch("a", 4, withTransactions(0, fakeTransactions(4)))
	anew.broken = "place past the end" // what was promised is not in its place any more
	tests := []struct {
		name string
		next *branched
		want []string // "pending" is the block that eth_getBlockByNumber answers, with its index
	}{
		{"grows", onBranch("a", 4, promisedBlock(2, 2)), []string{"pending"}},
		{"grows without a transaction", onBranch("a", 4, promisedBlock(2, 1)), []string{"pending"}},
		{"sealed as promised", onBranch("a", 5, nil), nil},
		{"withdrawn", onBranch("a", 4, nil), []string{revoked}},
		{"sealed otherwise", moved, []string{revoked}},
		{"begun anew", anew, []string{revoked, "pending"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, onBranch("a", 4, promisedBlock(1, 1)), watch.Options{})
				flashblocks := subscribe(t, s.Notifier, `["newFlashblocks"]`)
				s.checkFlashblocks(t, drain(t, flashblocks), []string{"pending"})
				s.show(tt.next)
				s.checkFlashblocks(t, drain(t, flashblocks), tt.want)
			})
		})
	}
}

func (s *stage) checkFlashblocks(t *testing.T, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d messages, want %d: %v", len(got), len(want), got)
	}
	for i := range want {
		if want[i] != "pending" {
			if got[i] != want[i] {
				t.Errorf("got %s\nwant %s", got[i], want[i])
			}
			continue
		}
		block := object(t, s.ask(t, "eth_getBlockByNumber", `["pending",false]`))
		block["index"] = fmt.Sprintf("0x%x", s.snapshot().pending.Index)
		if told := object(t, got[i]); !reflect.DeepEqual(told, block) {
			t.Errorf("got %v\nwant %v", told, block)
		}
	}
}

func TestWhatCannotBeSubscribedTo(t *testing.T) {
	address := `"address":"` + contract + `"`
	tests := []struct{ name, params, want string }{
		{"nothing", `[]`, "missing value for required argument 0"},
		{"an unknown kind", `["newPendingTransactions"]`, "want one of logs, newFlashblocks, newHeads, storage"},
		{"a kind that is no text", `[5]`, "want one of logs, newFlashblocks, newHeads, storage"},
		{"heads with a parameter", `["newHeads",{}]`, "too many arguments"},
		{"flashblocks with a parameter", `["newFlashblocks",true]`, "too many arguments"},
		{"logs without a filter", `["logs"]`, "missing value for required argument 1"},
		{"logs of one block", `["logs",{"blockHash":"` + emitted.Hex() + `"}]`, "a subscription is about blocks to come"},
		{"logs of a bad address", `["logs",{"address":"0x1"}]`, `invalid member "address"`},
		{"storage of nothing", `["storage"]`, "missing value for required argument 1"},
		{"storage of a text", `["storage","` + contract + `"]`, "want an object"},
		{"storage without an address", `["storage",{"slots":["0x0"]}]`, "want an address"},
		{"storage of a short address", `["storage",{"address":"0x1"}]`, `invalid member "address"`},
		{"storage with a member that is not known", `["storage",{` + address + `,"slot":"0x0"}]`, `unknown member "slot"`},
		{"storage of no slots", `["storage",{` + address + `,"slots":[]}]`, "leave it out to watch all"},
		{"storage of a slot that is a number", `["storage",{` + address + `,"slots":[1]}]`, "element 0: want a string"},
		{"storage of too many slots", `["storage",{` + address + `,"slots":["0x1"` + strings.Repeat(`,"0x1"`, 1000) + `]}]`, "want at most 1000"},
		{"storage with a third parameter", `["storage",{` + address + `},1]`, "too many arguments"},
	}
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, onBranch("a", 4, nil), watch.Options{})
		for _, tt := range tests {
			_, err := trySubscribe(t, s.Notifier, tt.params)
			if err == nil || err.Code != -32602 || !strings.Contains(err.Message, tt.want) {
				t.Errorf("%s: got %v, want -32602 %q", tt.name, err, tt.want)
			}
		}
	})
}

func TestWhySubscriptionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, onBranch("a", 3, nil), watch.Options{MaxMessages: 2, MaxSubscriptions: 2})
		slow, closed := subscribe(t, s.Notifier, `["newHeads"]`), subscribe(t, s.Notifier, `["newHeads"]`)
		if _, err := trySubscribe(t, s.Notifier, `["newHeads"]`); err == nil || err.Code != -32000 || err.Message != watch.ErrBusy.Error() {
			t.Errorf("a third of two: got %v, want -32000 %v", err, watch.ErrBusy)
		}
		closed.Close()
		s.show(onBranch("a", 5, nil))
		s.show(onBranch("a", 6, nil))
		if _, err := slow.Next(t.Context(), nil); !errors.Is(err, jsonrpc.ErrSlow) {
			t.Errorf("slow: got %v, want %v", err, jsonrpc.ErrSlow)
		}
		if _, err := closed.Next(t.Context(), nil); err != watch.ErrClosed {
			t.Errorf("closed: got %v, want %v", err, watch.ErrClosed)
		}
		failing := subscribe(t, s.Notifier, `["newHeads"]`)
		broken := onBranch("a", 7, nil)
		broken.broken = "Header"
		s.show(broken)
		out, err := failing.Next(t.Context(), []byte("kept"))
		if err == nil || err.Error() != "internal error" || !bytes.Equal(out, []byte("kept")) {
			t.Errorf("a read that failed: got %s, %v, want no more than that it failed", out, err)
		}
	})
}

var _ jsonrpc.Subscriber = (*ethapi.Notifier)(nil)

// withTransactions returns block 5 with transactions.
func withTransactions(index uint64, txs []*types.Transaction) *chain.Preconfirmed {
	p := &chain.Preconfirmed{Header: fakeHeader(5), Index: index, Transactions: txs}
	for _, tx := range txs {
		p.Hashes = append(p.Hashes, tx.Hash())
	}
	return p
}
