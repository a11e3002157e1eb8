// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethdb/memorydb"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/ethereum/go-ethereum/triedb"
	"github.com/holiman/uint256"

	"glimpse/chain"
	"glimpse/follow/upstream"
)

// byNumberOnly takes the block parameter away that a node could be pinned with.
func byNumberOnly(n *fakeNode) *fakeNode {
	for _, method := range []string{"eth_getStorageAt", "eth_getCode", "eth_getBalance", "eth_getTransactionCount"} {
		honest := n.methods[method]
		n.methods[method] = func(p []json.RawMessage) (any, error) {
			if strings.HasPrefix(string(p[len(p)-1]), "{") {
				return nil, &upstream.RPCError{Code: -32602, Message: "want a string"}
			}
			return honest(p)
		}
	}
	return n
}

func TestState(t *testing.T) {
	w := small(t)
	for name, n := range map[string]*fakeNode{"by hash": newNode(w), "by number": byNumberOnly(newNode(w))} {
		t.Run(name, func(t *testing.T) {
			p := open(t, n)
			if p.Can().RequireCanonical != (name == "by hash") {
				t.Errorf("requireCanonical is found to be %v", p.Can().RequireCanonical)
			}
			for i := range w.blocks {
				q, want := allChanges(w, i)
				q.Accounts = append(q.Accounts, chain.Address{1, 2, 3})
				state, err := p.State(t.Context(), w.ref(i), q)
				if err != nil {
					t.Fatal(err)
				}
				for j, addr := range q.Accounts {
					account, _ := w.states[i].Account(addr) // never fails
					code, _ := w.states[i].Code(account.CodeHash)
					if got := state.Accounts[j]; got.Account != account || string(got.Code) != string(code) {
						t.Errorf("block %d: account %s = %+v, want %+v", i, addr, got, account)
					}
				}
				for j := range want {
					if state.Slots[j] != want[j] {
						t.Errorf("block %d: slot %v = %s, want %s", i, q.Slots[j], state.Slots[j], want[j])
					}
				}
			}
		})
	}
}

// Without pinning, a height that has another block afterwards had perhaps
// another one when it was read.
func TestStateOfABlockThatIsGone(t *testing.T) {
	w := small(t)
	p := open(t, byNumberOnly(newNode(w)))
	at := w.ref(5)
	at.Hash[0]++
	if state, err := p.State(t.Context(), at, upstream.Query{Slots: make([]upstream.SlotKey, 1)}); !errors.Is(err, upstream.ErrNotFound) {
		t.Errorf("got %+v, %v, want ErrNotFound", state, err)
	}
}

func TestOddStateIsAnError(t *testing.T) {
	w := small(t)
	tests := []struct{ name, method, result string }{
		{"a null slot", "eth_getStorageAt", `null`},
		{"no slot", "eth_getStorageAt", `"0x"`},
		{"an empty slot", "eth_getStorageAt", `""`},
		{"a slot without prefix", "eth_getStorageAt", `"11"`},
		{"a number for a slot", "eth_getStorageAt", `0`},
		{"a slot of 33 bytes", "eth_getStorageAt", `"0x` + strings.Repeat("00", 33) + `"`},
		{"a null balance", "eth_getBalance", `null`},
		{"no balance", "eth_getBalance", `"0x"`},
		{"a balance of 33 bytes", "eth_getBalance", `"0x1` + strings.Repeat("00", 32) + `"`},
		{"a null nonce", "eth_getTransactionCount", `null`},
		{"a nonce that is too large", "eth_getTransactionCount", `"0x1` + strings.Repeat("00", 8) + `"`},
		{"null code", "eth_getCode", `null`},
		{"half a byte of code", "eth_getCode", `"0x6"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(w)
			p := open(t, n)
			n.set(tt.method, func([]json.RawMessage) (any, error) { return json.RawMessage(tt.result), nil })
			q := upstream.Query{Accounts: make([]chain.Address, 1), Slots: make([]upstream.SlotKey, 1)}
			if state, err := p.State(t.Context(), w.ref(3), q); err == nil {
				t.Errorf("got %+v, want an error", state)
			}
		})
	}
	// What some nodes shorten is a value all the same.
	n := newNode(w)
	p := open(t, n)
	n.set("eth_getStorageAt", func([]json.RawMessage) (any, error) { return "0x1", nil })
	if value, err := p.Slot(t.Context(), w.ref(3), chain.Address{}, chain.Slot{}); err != nil || value != (chain.Value{31: 1}) {
		t.Errorf("Slot = %s, %v, want 1", value, err)
	}
}

func TestCodeMustHaveItsHash(t *testing.T) {
	w := small(t)
	n := newNode(w)
	p := open(t, n)
	var addr chain.Address
	var hash chain.Hash
	for _, a := range w.states[3].Diff().Accounts {
		if a.Account.CodeHash != (chain.Hash{}) {
			addr, hash = a.Address, a.Account.CodeHash
		}
	}
	if code, err := p.Code(t.Context(), w.ref(3), addr, hash); err != nil || crypto.Keccak256Hash(code) != hash {
		t.Errorf("Code = %x, %v, want code with hash %s", code, err, hash)
	}
	n.set("eth_getCode", func([]json.RawMessage) (any, error) { return "0x", nil })
	var lie *upstream.LieError
	if code, err := p.Code(t.Context(), w.ref(3), addr, hash); !errors.As(err, &lie) || *lie.Address != addr {
		t.Errorf("Code = %x, %v, want a LieError about %s", code, err, addr)
	}
}

// proofs is a small state with real proofs.
type proofs struct {
	root    chain.Hash
	account types.StateAccount
	state   *trie.StateTrie
	storage *trie.StateTrie
}

var (
	proven     = chain.Address{1}
	provenSlot = chain.Slot{31: 1}
)

func newProofs(t *testing.T) *proofs {
	t.Helper()
	db := triedb.NewDatabase(rawdb.NewMemoryDatabase(), nil)
	tries := make([]*trie.StateTrie, 2)
	for i := range tries {
		var err error
		if tries[i], err = trie.NewStateTrie(trie.TrieID(types.EmptyRootHash), db); err != nil {
			t.Fatal(err)
		}
	}
	p := &proofs{state: tries[0], storage: tries[1]}
	for i := range byte(50) {
		if err := p.storage.UpdateStorage(proven, chain.Slot{31: i}.Bytes(), []byte{i + 1}); err != nil {
			t.Fatal(err)
		}
	}
	p.account = types.StateAccount{Nonce: 7, Balance: uint256.NewInt(5), Root: p.storage.Hash(), CodeHash: crypto.Keccak256([]byte{1})}
	for i := range byte(50) {
		if err := p.state.UpdateAccount(chain.Address{i}, &p.account, 0); err != nil {
			t.Fatal(err)
		}
	}
	p.root = p.state.Hash()
	return p
}

// answer is what eth_getProof gives.
func (p *proofs) answer(t *testing.T, addr chain.Address, slots []chain.Slot) map[string]any {
	t.Helper()
	answer := map[string]any{
		"address": addr, "accountProof": nodesOf(t, p.state, addr.Bytes()),
		"nonce": "0x0", "balance": "0x0", "codeHash": types.EmptyCodeHash, "storageHash": types.EmptyRootHash,
	}
	exists := addr[0] < 50
	if exists {
		answer["nonce"], answer["balance"], answer["codeHash"] = "0x7", "0x5", hexutil.Bytes(p.account.CodeHash)
	}
	list := []map[string]any{}
	for _, slot := range slots {
		one := map[string]any{"key": slot, "value": "0x0", "proof": []hexutil.Bytes{}}
		if exists {
			one["proof"] = nodesOf(t, p.storage, slot.Bytes())
			if slot[31] < 50 {
				one["value"] = hexutil.Uint64(slot[31] + 1)
			}
		}
		list = append(list, one)
	}
	answer["storageProof"] = list
	return answer
}

func nodesOf(t *testing.T, from *trie.StateTrie, key []byte) []hexutil.Bytes {
	t.Helper()
	db := memorydb.New()
	if err := from.Prove(crypto.Keccak256(key), db); err != nil {
		t.Fatal(err)
	}
	list := []hexutil.Bytes{}
	for it := db.NewIterator(nil, nil); it.Next(); {
		list = append(list, append(hexutil.Bytes{}, it.Value()...))
	}
	return list
}

func TestProof(t *testing.T) {
	tries := newProofs(t)
	w := small(t)
	n := newNode(w)
	change := func(map[string]any) {}
	n.methods["eth_getProof"] = func(p []json.RawMessage) (any, error) {
		var addr chain.Address
		var slots []chain.Slot
		if err := json.Unmarshal(p[0], &addr); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(p[1], &slots); err != nil {
			return nil, err
		}
		answer := tries.answer(t, addr, slots)
		change(answer)
		return answer, nil
	}
	p := open(t, n)
	absent, absentSlot := chain.Address{200}, chain.Slot{31: 200}
	for _, addr := range []chain.Address{proven, absent} {
		got, err := p.Proof(t.Context(), w.ref(3), tries.root, addr, []chain.Slot{provenSlot, absentSlot})
		if err != nil {
			t.Fatal(err)
		}
		want := &upstream.Proven{Slots: make([]chain.Value, 2)}
		if addr == proven {
			want.Account = chain.Account{Exists: true, Nonce: 7, Balance: *uint256.NewInt(5), CodeHash: chain.Hash(tries.account.CodeHash)}
			want.Slots[0][31] = 2
		}
		if got.Account != want.Account || got.Slots[0] != want.Slots[0] || got.Slots[1] != want.Slots[1] {
			t.Errorf("account %s: got %+v, want %+v", addr, got, want)
		}
	}
	slotOf := func(a map[string]any) map[string]any { return a["storageProof"].([]map[string]any)[0] }
	forged, err := rlp.EncodeToBytes([]any{uint64(1)})
	if err != nil {
		t.Fatal(err)
	}
	lies := []struct {
		name   string
		addr   chain.Address
		slot   chain.Slot
		lie    func(map[string]any)
		ofSlot bool
	}{
		{"nonce", proven, provenSlot, func(a map[string]any) { a["nonce"] = "0x8" }, false},
		{"balance", proven, provenSlot, func(a map[string]any) { a["balance"] = "0x6" }, false},
		{"code hash", proven, provenSlot, func(a map[string]any) { a["codeHash"] = chain.Hash{1} }, false},
		{"no account proof", proven, provenSlot, func(a map[string]any) { a["accountProof"] = []string{} }, false},
		{"a forged node", proven, provenSlot, func(a map[string]any) { a["accountProof"] = []hexutil.Bytes{forged} }, false},
		{"an account that is there is called absent", proven, provenSlot, func(a map[string]any) {
			a["nonce"], a["balance"], a["codeHash"] = "0x0", "0x0", types.EmptyCodeHash
		}, false},
		{"an absent account has a balance", absent, provenSlot, func(a map[string]any) { a["balance"] = "0x1" }, false},
		{"a value", proven, provenSlot, func(a map[string]any) { slotOf(a)["value"] = "0x9" }, true},
		{"a value is called zero", proven, provenSlot, func(a map[string]any) { slotOf(a)["value"] = "0x0" }, true},
		{"a null value", proven, provenSlot, func(a map[string]any) { slotOf(a)["value"] = nil }, true},
		{"an absent value", proven, absentSlot, func(a map[string]any) { slotOf(a)["value"] = "0x1" }, true},
		{"no proof of a slot", proven, provenSlot, func(a map[string]any) { slotOf(a)["proof"] = []string{} }, true},
		{"a slot of an absent account", absent, provenSlot, func(a map[string]any) { slotOf(a)["value"] = "0x1" }, true},
	}
	for _, tt := range lies {
		t.Run(tt.name, func(t *testing.T) {
			change = tt.lie
			got, err := p.Proof(t.Context(), w.ref(3), tries.root, tt.addr, []chain.Slot{tt.slot})
			var lie *upstream.LieError
			if !errors.As(err, &lie) {
				t.Fatalf("got %+v, %v, want a LieError", got, err)
			}
			if lie.Upstream != "http://node" || *lie.Address != tt.addr || (lie.Slot != nil) != tt.ofSlot || lie.Slot != nil && *lie.Slot != tt.slot {
				t.Errorf("the error tells of %v, want account, slot and upstream", err)
			}
		})
	}
	change = func(map[string]any) {}
	if got, err := p.Proof(t.Context(), w.ref(3), chain.Hash{1}, proven, nil); err == nil {
		t.Errorf("another root: got %+v, want an error", got)
	}
	if p.Status()[0].Lies != len(lies)+1 {
		t.Errorf("%d lies are counted, want %d", p.Status()[0].Lies, len(lies)+1)
	}
}
