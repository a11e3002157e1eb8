// SPDX-License-Identifier: Apache-2.0

package ethapi_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum"

	"glimpse/chain"
	"glimpse/ethapi"
	"glimpse/jsonrpc"
)

// A notebook is an Observer that writes down what it is told.
type notebook struct {
	calls    []string
	failures int
}

func (n *notebook) Method(name string) ethapi.CallObserver { return &page{n, name} }
func (n *notebook) ReadFailed(error)                       { n.failures++ }

type page struct {
	*notebook
	method string
}

func (p *page) Observe(block *chain.Selector, code int, took time.Duration) {
	which := "none"
	if block != nil {
		which = block.String()
	}
	p.calls = append(p.calls, fmt.Sprintf("%s %s %d %v", p.method, which, code, took))
}

// slowEVM takes a second for a call, and notes how many run at once.
type slowEVM struct {
	ethapi.EVM
	running, most int
}

func (e *slowEVM) Call(ctx context.Context, _ ethapi.Scene, _ ethereum.CallMsg) ([]byte, error) {
	e.running++
	e.most = max(e.most, e.running)
	defer func() { e.running-- }()
	select {
	case <-time.After(time.Second):
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func values(params string) jsonrpc.Values {
	elements, _ := jsonrpc.Value(params).Elements()
	return elements
}

const anyAddress = `"0x0000000000000000000000000000000000000001"`

func TestEveryCallIsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, log := &notebook{}, &bytes.Buffer{}
		s := newAPI(&fake{}, func(c *ethapi.Config) {
			c.Observer, c.EVM, c.Slow, c.Log = n, &slowEVM{}, time.Second, slog.New(slog.NewTextHandler(log, nil))
		}).Begin(t.Context(), nil)
		for _, call := range [][2]string{
			{"eth_getBalance", `[` + anyAddress + `,"safe"]`},
			{"eth_getBalance", `[` + anyAddress + `]`},
			{"eth_getBalance", `[` + anyAddress + `,"0x5"]`},
			{"eth_getBalance", `[` + anyAddress + `,"0x5",1]`},
			{"eth_chainId", `[]`},
			{"eth_nothing", `[]`},
			{"eth_call", `[{},"latest"]`},
		} {
			_, _ = s.Call(t.Context(), nil, []byte(call[0]), values(call[1])) // what it answers is tested elsewhere
		}
		s.End()
		want := []string{
			"eth_getBalance safe -39001 0s", "eth_getBalance latest 0 0s", "eth_getBalance 0x5 0 0s", "eth_getBalance 0x5 -32602 0s",
			"eth_chainId none 0 0s", " none -32601 0s", "eth_call latest 0 1s",
		}
		if got := strings.Join(n.calls, "\n"); got != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
		}
		for _, part := range []string{`msg="slow call"`, "method=eth_call", "block=latest", "number=", "took=1s", "code=0"} {
			if !strings.Contains(log.String(), part) {
				t.Errorf("the log has no %q:\n%s", part, log)
			}
		}
		if strings.Contains(log.String(), "eth_getBalance") {
			t.Errorf("the log has calls that were not slow:\n%s", log)
		}
	})
}

func TestFailedReadsAreCounted(t *testing.T) {
	n := &notebook{}
	s := newAPI(&fake{broken: "Account"}, func(c *ethapi.Config) { c.Observer = n }).Begin(t.Context(), nil)
	defer s.End()
	if _, err := s.Call(t.Context(), nil, []byte("eth_getBalance"), values(`[`+anyAddress+`]`)); err == nil || n.failures != 1 {
		t.Errorf("got %v and %d failures, want an error and one", err, n.failures)
	}
	if _, err := s.Call(t.Context(), nil, []byte("eth_getBalance"), values(`[`+anyAddress+`,"0xffffff"]`)); err == nil || n.failures != 1 {
		t.Errorf("got %v and %d failures after a miss, want an error and one failure", err, n.failures)
	}
}

// Of calls that execute only so many run at once; the others wait for their turn,
// or are told that it will not come.
func TestCostlyCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		evm := &slowEVM{}
		api := newAPI(&fake{}, func(c *ethapi.Config) {
			c.EVM, c.MaxCalls = evm, 1
			c.Acquire = func() ethapi.Snapshot { return &fake{} } // each belongs to one goroutine
		})
		codes := make(chan int, 200)
		for range 200 {
			go func() {
				s := api.Begin(t.Context(), nil)
				defer s.End()
				_, err := s.Call(t.Context(), nil, []byte("eth_call"), values(`[{},"latest"]`))
				if err == nil {
					err = &jsonrpc.Error{}
				}
				codes <- err.Code
			}()
		}
		got := make(map[int]int)
		for range 200 {
			got[<-codes]++
		}
		// Each takes a second, and nobody waits longer than five. One runs, and 128
		// wait; all others are refused at once.
		if evm.most != 1 || got[0] < 4 || got[0] > 5 || got[0]+got[-32000]+got[-32002] != 129 || got[-32005] != 71 {
			t.Errorf("at most %d ran at once; codes %v", evm.most, got)
		}
	})
}

// A batch has a time for all of its calls: what has not begun by then is not begun.
func TestTimeOfARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPI(&fake{}, func(c *ethapi.Config) { c.EVM, c.Timeout = &slowEVM{}, 3500*time.Millisecond }).Begin(t.Context(), nil)
		defer s.End()
		var codes []int
		for range 6 {
			_, err := s.Call(t.Context(), nil, []byte("eth_call"), values(`[{},"latest"]`))
			if err == nil {
				err = &jsonrpc.Error{}
			}
			codes = append(codes, err.Code)
		}
		if want := fmt.Sprint([]int{0, 0, 0, -32000, -32002, -32002}); fmt.Sprint(codes) != want {
			t.Errorf("got codes %v, want %s", codes, want)
		}
	})
}
