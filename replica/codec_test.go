// SPDX-License-Identifier: Apache-2.0

package replica_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"

	"glimpse/chain"
	"glimpse/replica"
	"glimpse/replica/replicatest"
)

func ref(n chain.Number, b byte) chain.Ref { return chain.Ref{Number: n, Hash: chain.Hash{b}} }

// everyKind returns one event of each kind, with all that it can have.
func everyKind() map[string]replica.Body {
	safe, final := ref(6, 6), ref(5, 5)
	code := chain.NewCode([]byte{0x60, 0})
	w := replicatest.NewWriter(1)
	w.Flashblock(true)
	w.Flashblock(false)
	w.Flashblock(true)
	overlay := w.Overlay()
	return map[string]replica.Body{
		"sealed": &replica.Sealed{
			Ref: ref(7, 7), Parent: chain.Hash{6}, Header: []byte("header"), Body: []byte("body"),
			Transactions: []chain.Hash{{1}, {2}}, Receipts: []byte("receipts"),
			Diff:  &chain.Diff{Accounts: []chain.AccountDiff{{Address: chain.Address{1}, Slots: []chain.SlotDiff{{Slot: chain.Slot{2}, Value: chain.Value{3}}}}}},
			Marks: replica.Marks{Safe: &safe, Finalized: &final}, Digest: replica.Digest{9},
		},
		"sealed without anything": &replica.Sealed{Diff: new(chain.Diff)},
		"unwound":                 &replica.Unwound{To: ref(3, 3), Goal: ref(5, 9)},
		"tags":                    &replica.Tags{Head: ref(7, 7), Marks: replica.Marks{Safe: &safe}},
		"facts": &replica.Facts{Head: ref(7, 7), Facts: &chain.Facts{
			Accounts: []chain.AccountFact{
				{Address: chain.Address{1}},
				{Address: chain.Address{2}, Account: chain.Account{Exists: true, Nonce: 3, Balance: *uint256.NewInt(4), CodeHash: code.Hash}},
			},
			Slots: []chain.SlotFact{{Address: chain.Address{1}, Slot: chain.Slot{1}}, {Address: chain.Address{3}, Slot: chain.Slot{1}, Value: chain.Value{1}}},
			Codes: []chain.Code{code},
		}},
		"pending":       &replica.Pending{Parent: overlay.Parent, GoodFor: time.Second, Blocks: overlay.Parts()},
		"pending delta": &replica.Pending{Parent: overlay.Parent, Base: 3, GoodFor: time.Second, Blocks: overlay.Parts()[1:]},
		"nothing is pending": &replica.Pending{
			Parent: ref(7, 7), Why: replica.Revoked,
		},
	}
}

func event(body replica.Body) *replica.Event {
	return &replica.Event{Chain: replica.Identity{ChainID: 31337, Genesis: chain.Hash{1}}, Epoch: 2, Order: 3, Body: body}
}

func encode(t testing.TB, e *replica.Event) []byte {
	t.Helper()
	data, err := replica.AppendEvent(nil, e)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestEventsComeBackAsTheyWere(t *testing.T) {
	for name, body := range everyKind() {
		t.Run(name, func(t *testing.T) {
			want := event(body)
			data := encode(t, want)
			got, err := replica.DecodeEvent(data)
			if err != nil {
				t.Fatal(err)
			}
			if again := encode(t, got); !bytes.Equal(again, data) {
				t.Errorf("encoded again it is\n%x, was\n%x", again, data)
			}
			if p, ok := got.Body.(*replica.Pending); ok {
				compareParts(t, p.Blocks, body.(*replica.Pending).Blocks)
				return
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("DecodeEvent = %+v, want %+v", got.Body, want.Body)
			}
		})
	}
}

// compareParts looks also at what is not sent but follows: blooms, places of logs.
func compareParts(t *testing.T, got, want []replica.Part) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d blocks, want %d", len(got), len(want))
	}
	for i := range want {
		if g, w := got[i].Header.Hash(), want[i].Header.Hash(); g != w {
			t.Errorf("header of block %d is %s, want %s", i, g, w)
		}
		for k, w := range want[i].Receipts {
			if g := got[i].Receipts[k]; !reflect.DeepEqual(g, w) {
				t.Errorf("receipt %d of block %d is\n%+v, want\n%+v", k, i, g, w)
			}
			if g, w := got[i].Transactions[k].Hash(), want[i].Transactions[k].Hash(); g != w {
				t.Errorf("transaction %d of block %d is %s, want %s", k, i, g, w)
			}
		}
		if !reflect.DeepEqual(got[i].Layers, want[i].Layers) {
			t.Errorf("layers of block %d are %v, want %v", i, got[i].Layers, want[i].Layers)
		}
	}
}

// What is not known of a block arrives as not known, and not as nothing; more of the
// block may be added to it.
func TestWhatIsNotKnownIsLeftOut(t *testing.T) {
	txs := []*types.Transaction{types.NewTx(&types.LegacyTx{Nonce: 1}), types.NewTx(&types.LegacyTx{Nonce: 2})}
	receipts := []*types.Receipt{{Status: 1, Logs: []*types.Log{}}, {Status: 1, Logs: []*types.Log{}}}
	tests := []struct {
		name               string
		bodies, execution  bool
		hashes             int
		wantTxs, wantRcpts int
	}{
		{"all is known", true, true, 2, 2, 2},
		{"transactions are of a type that is not", false, true, 2, 0, 2},
		{"nothing was executed", true, false, 2, 2, 0},
		{"hashes alone are", false, false, 2, 0, 0},
		{"there are no transactions", false, false, 0, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := &chain.Preconfirmed{Header: &types.Header{Number: big.NewInt(8), Difficulty: new(big.Int), ParentHash: chain.Hash{7}}}
			for _, tx := range txs[:tt.hashes] {
				b.Hashes = append(b.Hashes, tx.Hash())
			}
			if tt.bodies {
				b.Transactions = txs
			}
			if tt.execution {
				b.Receipts = receipts
			}
			o := &replica.Overlay{Parent: ref(7, 7), Blocks: []replica.OverlayBlock{{Block: b, Layers: []replica.Layer{{Diff: new(chain.Diff)}}}}}
			got, err := replica.DecodeEvent(encode(t, event(&replica.Pending{Parent: o.Parent, Blocks: o.Parts()})))
			if err != nil {
				t.Fatal(err)
			}
			p := got.Body.(*replica.Pending).Blocks[0]
			if len(p.Hashes) != tt.hashes || len(p.Transactions) != tt.wantTxs || len(p.Receipts) != tt.wantRcpts {
				t.Errorf("got %d hashes, %d transactions and %d receipts, want %d, %d and %d",
					len(p.Hashes), len(p.Transactions), len(p.Receipts), tt.hashes, tt.wantTxs, tt.wantRcpts)
			}
		})
	}
}

// Bytes in a stream outlive the program that wrote them: a change here needs a
// version of its own.
func TestEncodingIsPinned(t *testing.T) {
	const want = "0102e9f401" + "0100000000000000000000000000000000000000000000000000000000000000" + "0203" +
		"03" + "0300000000000000000000000000000000000000000000000000000000000000" +
		"05" + "0900000000000000000000000000000000000000000000000000000000000000"
	if got := hex.EncodeToString(encode(t, event(&replica.Unwound{To: ref(3, 3), Goal: ref(5, 9)}))); got != want {
		t.Errorf("an unwound event is %s, want %s", got, want)
	}
	messages, err := replica.Cut(event(&replica.Unwound{To: ref(3, 3), Goal: ref(5, 9)}), 1024, 1024)
	if err != nil {
		t.Fatal(err)
	}
	const frame = "0102" + "03" + "0300000000000000000000000000000000000000000000000000000000000000" + "000169" + "e7719b26fb5e9f1c"
	if got := hex.EncodeToString(messages[0]); len(messages) != 1 || got != frame+want {
		t.Errorf("its message is %s, want %s", got, frame+want)
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := encode(t, event(everyKind()["sealed"]))
	tests := map[string][]byte{
		"nothing":             {},
		"another version":     append([]byte{9}, good[1:]...),
		"an unknown kind":     append([]byte{1, 9}, good[2:]...),
		"an event cut short":  good[:len(good)-1],
		"bytes after the end": append(bytes.Clone(good), 0),
		"a false count":       encode(t, event(&replica.Tags{}))[:40],
	}
	for name, data := range tests {
		t.Run(name, func(t *testing.T) {
			if e, err := replica.DecodeEvent(data); !errors.Is(err, replica.ErrEvent) {
				t.Errorf("DecodeEvent = %v, %v, want ErrEvent", e, err)
			}
		})
	}
}

func TestAppendRefuses(t *testing.T) {
	header := &types.Header{Number: big.NewInt(8), Difficulty: new(big.Int)}
	tests := map[string]replica.Body{
		"no body":                    nil,
		"a block without a diff":     &replica.Sealed{},
		"no facts":                   &replica.Facts{},
		"facts that contradict":      &replica.Facts{Facts: &chain.Facts{Slots: []chain.SlotFact{{Value: chain.Value{1}}, {Value: chain.Value{2}}}}},
		"accounts that contradict":   &replica.Facts{Facts: &chain.Facts{Accounts: []chain.AccountFact{{}, {Account: chain.Account{Exists: true}}}}},
		"good for ever":              &replica.Pending{GoodFor: 2 * time.Hour},
		"a hash without its receipt": &replica.Pending{Blocks: []replica.Part{{Header: header, Hashes: []chain.Hash{{1}, {2}}, Receipts: []*types.Receipt{{}}}}},
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			if data, err := replica.AppendEvent(nil, event(body)); err == nil {
				t.Errorf("AppendEvent = %x, want an error", data)
			}
		})
	}
}

func FuzzDecodeEvent(f *testing.F) {
	for _, body := range everyKind() {
		f.Add(encode(f, event(body)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := replica.DecodeEvent(data)
		if err != nil {
			if !errors.Is(err, replica.ErrEvent) {
				t.Fatalf("error %v does not wrap ErrEvent", err)
			}
			return
		}
		if again := encode(t, e); !bytes.Equal(again, data) {
			t.Fatalf("%x was accepted, and is encoded as %x", data, again)
		}
	})
}

func TestCutEventsComeTogetherAgain(t *testing.T) {
	want := event(&replica.Sealed{Ref: ref(7, 7), Body: bytes.Repeat([]byte("0123456789"), 1000), Diff: new(chain.Diff)})
	for _, piece := range []int{1, 7, 1000, 1 << 20} {
		t.Run(fmt.Sprintf("pieces of %d bytes", piece), func(t *testing.T) {
			messages, err := replica.Cut(want, piece, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			var a replica.Assembler
			for i, m := range messages {
				got, err := a.Add(frame(t, m))
				if i < len(messages)-1 {
					if !errors.Is(err, replica.ErrIncomplete) {
						t.Fatalf("piece %d: %v, want ErrIncomplete", i, err)
					}
					continue
				}
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("got %v, %v", got, err)
				}
			}
		})
	}
}

func frame(t testing.TB, data []byte) *replica.Frame {
	t.Helper()
	f, err := replica.DecodeFrame(data)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestAssemblerRefuses(t *testing.T) {
	cut := func(b byte) [][]byte {
		e := event(&replica.Sealed{Ref: ref(7, b), Body: bytes.Repeat([]byte{b}, 3000), Diff: new(chain.Diff)})
		messages, err := replica.Cut(e, 1024, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		return messages
	}
	one, two := cut(1), cut(2)
	changed := bytes.Clone(one[2])
	changed[len(changed)-1] ^= 1
	tests := []struct {
		name     string
		most     int
		messages [][]byte
		want     error
	}{
		{"a piece that is left out", 0, [][]byte{one[0], one[2]}, replica.ErrEvent},
		{"a piece that comes twice", 0, [][]byte{one[0], one[1], one[1]}, replica.ErrEvent},
		{"pieces of two events", 0, [][]byte{one[0], two[1]}, replica.ErrEvent},
		{"a beginning that was not seen", 0, [][]byte{one[1]}, replica.ErrIncomplete},
		{"more than agreed", 2000, [][]byte{one[0]}, replica.ErrEvent},
		{"a piece that was changed", 0, [][]byte{one[0], one[1], changed, one[3]}, replica.ErrEvent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := replica.Assembler{Most: tt.most}
			var err error
			for _, m := range tt.messages {
				_, err = a.Add(frame(t, m))
			}
			if !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if tt.most > 0 {
				return
			}
			for i, m := range two { // what follows is not harmed
				if e, err := a.Add(frame(t, m)); i == len(two)-1 && (err != nil || e.At() != ref(7, 2)) {
					t.Errorf("the next event is %v, %v", e, err)
				}
			}
		})
	}
}

func FuzzAssembler(f *testing.F) {
	messages, err := replica.Cut(event(everyKind()["sealed"]), 32, 1<<20)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(messages[0], messages[1])
	f.Fuzz(func(t *testing.T, one, two []byte) {
		a := replica.Assembler{Most: 1 << 16}
		for _, data := range [][]byte{one, two} {
			m, err := replica.DecodeFrame(data)
			if err == nil {
				_, err = a.Add(m)
			}
			if err != nil && !errors.Is(err, replica.ErrEvent) && !errors.Is(err, replica.ErrIncomplete) {
				t.Fatalf("error %v is neither of the two", err)
			}
		}
	})
}
