// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/chain"
	"glimpse/follow/upstream"
)

// A fakeNode answers for a world, or for whatever is put in the place of one of
// its methods.
type fakeNode struct {
	world *world

	mu        sync.Mutex
	head      int
	methods   map[string]func(params []json.RawMessage) (any, error)
	calls     map[string]int
	maxBatch  int
	tooLarge  func(n int) string                            // what a batch that is too large is answered with
	intercept func(w http.ResponseWriter, body []byte) bool // true where it has answered
}

func newNode(w *world) *fakeNode {
	n := &fakeNode{world: w, head: len(w.blocks) - 1, calls: make(map[string]int), maxBatch: 1000}
	n.methods = map[string]func([]json.RawMessage) (any, error){
		"eth_chainId":          func([]json.RawMessage) (any, error) { return hexutil.Uint64(w.rules.ChainID()), nil },
		"eth_getBlockByNumber": n.blockJSON,
		"eth_getBlockByHash":   n.blockJSON,
		"eth_getStorageAt":     n.storageAt,
		"eth_getCode": func(p []json.RawMessage) (any, error) {
			return hexutil.Bytes(n.code(p[0], p[1])), nil
		},
		"eth_getBalance": func(p []json.RawMessage) (any, error) {
			a := n.account(p[0], p[1])
			return (*hexutil.U256)(&a.Balance), nil
		},
		"eth_getTransactionCount": func(p []json.RawMessage) (any, error) {
			return hexutil.Uint64(n.account(p[0], p[1]).Nonce), nil
		},
	}
	return n
}

// withRaw lets the node have debug_getRawBlock.
func (n *fakeNode) withRaw() *fakeNode {
	n.methods["debug_getRawBlock"] = func(p []json.RawMessage) (any, error) {
		b, err := n.find(p[0])
		if err != nil {
			return nil, err
		}
		if b == nil {
			return nil, &upstream.RPCError{Code: -32000, Message: "block not found"}
		}
		raw, err := rlp.EncodeToBytes(b)
		return hexutil.Bytes(raw), err
	}
	return n
}

func (n *fakeNode) set(method string, answer func(params []json.RawMessage) (any, error)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.methods[method] = answer
}

func (n *fakeNode) setHead(head int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.head = head
}

func (n *fakeNode) called(method string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.calls[method]
}

// find returns the block that a parameter names, nil where there is none. The
// caller holds the mutex, as all methods do.
func (n *fakeNode) find(param json.RawMessage) (*types.Block, error) {
	var text string
	if json.Unmarshal(param, &text) != nil {
		var object struct {
			Hash      chain.Hash `json:"blockHash"`
			Canonical bool       `json:"requireCanonical"`
		}
		if err := json.Unmarshal(param, &object); err != nil {
			return nil, err
		}
		text = object.Hash.Hex()
	}
	if text == "safe" || text == "finalized" {
		return n.world.blocks[n.head-n.head/2], nil
	}
	at, err := chain.ParseSelector(text)
	if err != nil {
		return nil, err
	}
	for i, b := range n.world.blocks[:n.head+1] {
		number, byNumber := at.Number()
		hash, _ := at.Hash()
		if byNumber && int(number) == i || hash == b.Hash() || at.IsLatest() && i == n.head {
			return b, nil
		}
	}
	return nil, nil
}

func (n *fakeNode) blockJSON(p []json.RawMessage) (any, error) {
	b, err := n.find(p[0])
	if b == nil || err != nil {
		return nil, err
	}
	return objectOf(b), nil
}

// objectOf is the JSON form of a block.
func objectOf(b *types.Block) map[string]any {
	object := make(map[string]any)
	text, err := json.Marshal(b.Header())
	if err == nil {
		err = json.Unmarshal(text, &object)
	}
	if err != nil {
		panic(err) // of a header that was made before
	}
	maps.DeleteFunc(object, func(_ string, value any) bool { return value == nil })
	object["transactions"] = b.Transactions()
	object["uncles"] = []chain.Hash{}
	if b.Withdrawals() != nil {
		object["withdrawals"] = b.Withdrawals()
	}
	return object
}

func (n *fakeNode) account(addr, block json.RawMessage) (a chain.Account) {
	var address chain.Address
	b, err := n.find(block)
	if err == nil && b != nil && json.Unmarshal(addr, &address) == nil {
		a, _ = n.world.states[b.NumberU64()].Account(address) // never fails
	}
	return a
}

func (n *fakeNode) code(addr, block json.RawMessage) []byte {
	b, _ := n.find(block)
	if b == nil {
		return nil
	}
	code, _ := n.world.states[b.NumberU64()].Code(n.account(addr, block).CodeHash) // it is an account's
	return code
}

func (n *fakeNode) storageAt(p []json.RawMessage) (any, error) {
	var addr chain.Address
	var slot chain.Slot
	if err := json.Unmarshal(p[0], &addr); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(p[1], &slot); err != nil {
		return nil, err
	}
	b, err := n.find(p[2])
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, &upstream.RPCError{Code: -32000, Message: "header not found"}
	}
	return n.world.states[b.NumberU64()].Slot(addr, slot)
}

type rpcRequest struct {
	ID     json.RawMessage   `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

// answer is one answer as JSON.
func (n *fakeNode) answer(r rpcRequest) string {
	n.calls[r.Method]++
	method := n.methods[r.Method]
	if method == nil {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no method %s"}}`, r.ID, r.Method)
	}
	result, err := method(r.Params)
	if raw, ok := result.(rawAnswer); ok {
		return fmt.Sprintf(string(raw), r.ID)
	}
	if rpc, ok := err.(*upstream.RPCError); ok {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, r.ID, rpc.Code, rpc.Message)
	}
	if err != nil {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":%q}}`, r.ID, err.Error())
	}
	text, err := json.Marshal(result)
	if err != nil {
		panic(err) // of what the tests made
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, text)
}

// rawAnswer is a whole answer, with %s in the place of the id.
type rawAnswer string

func (n *fakeNode) reply(body []byte) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if body[0] != '[' {
		var r rpcRequest
		if err := json.Unmarshal(body, &r); err != nil {
			return `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`
		}
		return n.answer(r)
	}
	var batch []rpcRequest
	if err := json.Unmarshal(body, &batch); err != nil {
		return `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`
	}
	if len(batch) > n.maxBatch {
		return n.tooLarge(len(batch))
	}
	var out bytes.Buffer
	for i := range batch {
		// Answers may come in any order.
		fmt.Fprintf(&out, ",%s", n.answer(batch[len(batch)-1-i]))
	}
	return "[" + out.String()[1:] + "]"
}

func (n *fakeNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	n.mu.Lock()
	intercept := n.intercept
	n.mu.Unlock()
	if intercept != nil && intercept(w, body) {
		return
	}
	_, _ = io.WriteString(w, n.reply(body)) // the client notices
}

// RoundTrip lets a node be asked without a network, so that time may stand
// still meanwhile.
func (n *fakeNode) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	recorder := httptest.NewRecorder()
	n.ServeHTTP(recorder, r)
	return recorder.Result(), nil
}

// hosts are nodes by the host in their URL.
type hosts map[string]http.RoundTripper

func (h hosts) RoundTrip(r *http.Request) (*http.Response, error) {
	if node := h[r.URL.Host]; node != nil {
		return node.RoundTrip(r)
	}
	return nil, fmt.Errorf("no such host: %s", r.URL.Host)
}

// open opens a pool of one node.
func open(t *testing.T, n *fakeNode) *upstream.Pool {
	t.Helper()
	return openAll(t, upstream.Options{URLs: []string{"http://node"}, RoundTripper: hosts{"node": n}, Rounds: 1})
}

func openAll(t *testing.T, o upstream.Options) *upstream.Pool {
	t.Helper()
	p, err := upstream.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}
