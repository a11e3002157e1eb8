// SPDX-License-Identifier: Apache-2.0

package ethapi_test

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"

	"glimpse/chain"
	"glimpse/ethapi"
	"glimpse/jsonrpc"
)

var errDisk = errors.New("disk on fire at /var/secret")

// fake is a snapshot of blocks 2 to 5 in which every account has the number of
// the block as its nonce. What is named in broken fails.
type fake struct {
	pending  *chain.Preconfirmed // nil where nothing is pre-confirmed
	broken   string
	released int
	height   chain.Number // of the newest block, where not 5
	logs     int          // how many more each receipt of an even block has
	data     int          // how many bytes these have
	evm      fakeEVM
}

const contract = "0x00000000000000000000000000000000000000c0"

var code = chain.NewCode([]byte{0x60, 0x01})

func (f *fake) fail(what string) error {
	if f.broken == what {
		return errDisk
	}
	return nil
}

func (f *fake) top() chain.Number {
	if f.height > 0 {
		return f.height
	}
	return 5
}

func (f *fake) Latest() chain.Ref {
	return chain.Ref{Number: f.top(), Hash: chain.Hash{31: byte(f.top())}}
}
func (f *fake) Oldest() chain.Number                 { return 2 }
func (f *fake) Pending() (*chain.Preconfirmed, bool) { return f.pending, f.pending != nil }
func (f *fake) PendingTransaction(h chain.Hash) (*chain.Preconfirmed, int, bool) {
	if f.pending == nil || f.pending.Transactions[0].Hash() != h {
		return nil, 0, false
	}
	return f.pending, 0, true
}
func (f *fake) Release() { f.released++ }

func (f *fake) Locate(sel chain.Selector) (chain.Number, error) {
	if n, ok := sel.Number(); ok {
		if n > f.top() {
			return 0, &chain.Miss{Reason: chain.Future, Oldest: 2, Latest: 5}
		}
		return n, f.fail("Locate")
	}
	if h, ok := sel.Hash(); ok {
		if h[0] != 0 {
			return 0, &chain.Miss{Reason: chain.UnknownHash, Oldest: 2, Latest: 5}
		}
		return chain.Number(h[31]), f.fail("Locate")
	}
	if sel.IsSafe() {
		return 0, chain.ErrNoTag
	}
	return f.top(), f.fail("Locate")
}

func (f *fake) View(sel chain.Selector) (chain.View, error) {
	n, err := f.Locate(sel)
	if err == nil && n < 2 {
		err = &chain.Miss{Reason: chain.Pruned, Oldest: 2, Latest: 5}
	}
	return fakeView{f, n}, err
}

func (f *fake) Header(n chain.Number) ([]byte, error) {
	if err := f.fail("Header"); err != nil {
		return nil, err
	}
	return rlp.EncodeToBytes(fakeHeader(n))
}

func (f *fake) Body(n chain.Number) ([]byte, error) {
	if err := f.fail("Body"); err != nil {
		return nil, err
	}
	return rlp.EncodeToBytes(&types.Body{Transactions: fakeTransactions(n)})
}

func (f *fake) Receipts(n chain.Number) ([]byte, error) {
	if err := f.fail("Receipts"); err != nil {
		return nil, err
	}
	if f.broken == "number of receipts" {
		return []byte{0xc0}, nil
	}
	slim := []*types.ReceiptForStorage{}
	for _, r := range fakeReceipts(n) {
		if len(r.Logs) > 0 {
			r.Logs = append(r.Logs, slices.Repeat([]*types.Log{{Address: emitter, Data: make([]byte, f.data)}}, f.logs)...)
		}
		slim = append(slim, (*types.ReceiptForStorage)(r))
	}
	return rlp.EncodeToBytes(slim)
}

func (f *fake) Transaction(h chain.Hash) (chain.Number, int, bool, error) {
	if err := f.fail("Transaction"); err != nil {
		return 0, 0, false, err
	}
	for n := chain.Number(0); n <= 5; n++ {
		for i, tx := range fakeTransactions(n) {
			if tx.Hash() == h {
				switch f.broken {
				case "place":
					i = 1 - i
				case "place past the end":
					i += 2
				}
				return n, i, true, nil
			}
		}
	}
	return 0, 0, false, nil
}

type fakeView struct {
	*fake
	number chain.Number
}

func (v fakeView) Account(chain.Address) (chain.Account, error) {
	a := chain.Account{Exists: true, Nonce: uint64(v.number), Balance: *uint256.NewInt(1000), CodeHash: code.Hash}
	return a, v.fail("Account")
}

// Slot answers the slot's own key with the block number in front.
func (v fakeView) Slot(_ chain.Address, k chain.Slot) (chain.Value, error) {
	k[0] = byte(v.number)
	return k, v.fail("Slot")
}

func (v fakeView) Code(h chain.Hash) ([]byte, error) {
	if h != code.Hash {
		return nil, chain.ErrCorrupt
	}
	return code.Bytes, v.fail("Code")
}

func newAPI(f *fake, with func(*ethapi.Config)) *ethapi.API {
	c := ethapi.Config{
		ChainID: 31337,
		Chain:   fakeConfig(),
		EVM:     &f.evm,
		Version: "glimpse/test",
		Acquire: func() ethapi.Snapshot { return f },
		Log:     slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	if with != nil {
		with(&c)
	}
	return ethapi.New(c)
}

// call makes one call with params as JSON, in a session of its own.
func call(t testing.TB, f *fake, method, params string) (string, *jsonrpc.Error) {
	t.Helper()
	return callWith(t, f, nil, method, params)
}

// callWith is call on an API that was made with more.
func callWith(t testing.TB, f *fake, with func(*ethapi.Config), method, params string) (string, *jsonrpc.Error) {
	t.Helper()
	if !json.Valid([]byte(params)) {
		t.Fatalf("params are not JSON: %s", params)
	}
	values, ok := jsonrpc.Value(params).Elements()
	if !ok {
		t.Fatalf("params are not an array: %s", params)
	}
	s := newAPI(f, with).Begin(t.Context(), nil)
	defer s.End()
	out, err := s.Call(t.Context(), []byte("kept:"), []byte(method), values)
	if err != nil {
		return "", err
	}
	if !json.Valid(out[len("kept:"):]) {
		t.Errorf("%s%s: result is not JSON: %s", method, params, out)
	}
	return string(out[len("kept:"):]), nil
}
