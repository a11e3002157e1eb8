// SPDX-License-Identifier: Apache-2.0

package ethapi_test

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math/big"
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
	broken   string
	released int
}

const contract = "0x00000000000000000000000000000000000000c0"

var code = chain.NewCode([]byte{0x60, 0x01})

func (f *fake) fail(what string) error {
	if f.broken == what {
		return errDisk
	}
	return nil
}

func (f *fake) Latest() chain.Ref    { return chain.Ref{Number: 5, Hash: chain.Hash{31: 5}} }
func (f *fake) Oldest() chain.Number { return 2 }
func (f *fake) Release()             { f.released++ }

func (f *fake) Locate(sel chain.Selector) (chain.Number, error) {
	if n, ok := sel.Number(); ok {
		if n > 5 {
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
	return 5, f.fail("Locate")
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
	return rlp.EncodeToBytes(&types.Header{Number: big.NewInt(int64(n)), Difficulty: new(big.Int)})
}

func (f *fake) Body(chain.Number) ([]byte, error) {
	if err := f.fail("Body"); err != nil {
		return nil, err
	}
	return rlp.EncodeToBytes(&types.Body{})
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

func newAPI(f *fake) *ethapi.API {
	return ethapi.New(ethapi.Config{
		ChainID: 31337,
		Version: "glimpse/test",
		Acquire: func() ethapi.Snapshot { return f },
		Log:     slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
}

// call makes one call with params as JSON, in a session of its own.
func call(t testing.TB, f *fake, method, params string) (string, *jsonrpc.Error) {
	t.Helper()
	if !json.Valid([]byte(params)) {
		t.Fatalf("params are not JSON: %s", params)
	}
	values, ok := jsonrpc.Value(params).Elements()
	if !ok {
		t.Fatalf("params are not an array: %s", params)
	}
	s := newAPI(f).Begin(t.Context(), nil)
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
