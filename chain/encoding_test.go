// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"

	"glimpse/chain"
)

func sample() *chain.Diff {
	code := chain.NewCode([]byte{0x60, 0x00})
	return &chain.Diff{
		Accounts: []chain.AccountDiff{
			{Address: common.Address{19: 1}, Changed: true, Account: chain.Account{
				Exists: true, Nonce: 300, Balance: *uint256.NewInt(7), CodeHash: code.Hash,
			}, Slots: []chain.SlotDiff{
				{Slot: common.Hash{31: 1}, Value: common.Hash{31: 5}},
				{Slot: common.Hash{31: 2}},
				{Slot: common.Hash{31: 3}, Value: common.Hash{30: 6, 31: 7}},
			}},
			{Address: common.Address{19: 2}, Slots: []chain.SlotDiff{{Slot: common.Hash{31: 9}}}},
			{Address: common.Address{19: 3}, Changed: true, Wiped: true},
		},
		Codes: []chain.Code{code},
	}
}

// The encoding is stored in journals and sent to replicas: a change of these
// bytes breaks both, and needs a new version.
func TestDiffEncodingIsPinned(t *testing.T) {
	const want = "0203" +
		"0000000000000000000000000000000000000001" + "07" + "ac02" + "0107" +
		"07ad118d6cc8642c86c03827f276d8b791a65e5c99a3845faf186be720a1455d" +
		"03" + "010002" +
		"0000000000000000000000000000000000000000000000000000000000000001" + "05" +
		"0000000000000000000000000000000000000000000000000000000000000002" +
		"0000000000000000000000000000000000000000000000000000000000000003" + "0607" +
		"0000000000000000000000000000000000000002" + "00" +
		"01" + "00" + "0000000000000000000000000000000000000000000000000000000000000009" +
		"0000000000000000000000000000000000000003" + "09" + "00" +
		"01" + "07ad118d6cc8642c86c03827f276d8b791a65e5c99a3845faf186be720a1455d" + "02" + "6000"
	if got := hex.EncodeToString(chain.AppendDiff(nil, sample())); got != want {
		t.Errorf("encoding\n got %s\nwant %s", got, want)
	}
}

func TestDiffRoundTrip(t *testing.T) {
	for seed := range uint64(50) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			want := randomDiff(rand.New(rand.NewPCG(seed, 0)))
			got, err := chain.DecodeDiff(chain.AppendDiff(nil, want))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestDecodeDiffRefusesWhatAppendNeverWrites(t *testing.T) {
	good := chain.AppendDiff(nil, sample())
	unsorted := sample()
	unsorted.Accounts[0], unsorted.Accounts[1] = unsorted.Accounts[1], unsorted.Accounts[0]
	twice := sample()
	twice.Accounts[1].Slots = append(twice.Accounts[1].Slots, twice.Accounts[1].Slots[0])
	forged := sample()
	forged.Codes[0].Bytes = []byte{0x60, 0x01}
	wipedZero := sample()
	wipedZero.Accounts[2].Slots = []chain.SlotDiff{{}}
	// slots is an account with a change of slots, up to their number.
	slots := func(parts ...[]byte) []byte {
		return append(append([]byte{2, 1}, make([]byte, 20+1)...), bytes.Join(parts, nil)...)
	}
	slot := make([]byte, 32)
	if _, err := chain.DecodeDiff(slots([]byte{1, 1}, slot, []byte{7, 0})); err != nil {
		t.Fatalf("an account with a slot: %v", err)
	}

	tests := []struct {
		name string
		data []byte
	}{
		{"nothing", nil},
		{"another version", append([]byte{9}, good[1:]...)},
		{"bytes after the end", append(bytes.Clone(good), 0)},
		{"accounts out of order", chain.AppendDiff(nil, unsorted)},
		{"a slot twice", chain.AppendDiff(nil, twice)},
		{"code that does not have its hash", chain.AppendDiff(nil, forged)},
		{"a cleared slot after a wipe", chain.AppendDiff(nil, wipedZero)},
		{"an account without a change", chain.AppendDiff(nil, &chain.Diff{Accounts: make([]chain.AccountDiff, 1)})},
		{"a count beyond the data", []byte{2, 0xff, 0xff, 0xff, 0xff, 0x0f}},
		{"an overlong count", []byte{2, 0x80, 0x00, 0x00}},
		{"the version before", append([]byte{1}, good[1:]...)},
		{"more slots than there are numbers", slots(binary.AppendUvarint(nil, 1<<64-1), slot)},
		{"a value of 33 bytes", slots([]byte{1, 33}, slot, bytes.Repeat([]byte{7}, 33), []byte{0})},
		{"a value with a leading zero", slots([]byte{1, 2}, slot, []byte{0, 7, 0})},
		{"a value that is shorter than it says", slots([]byte{1, 3}, slot, []byte{7, 0})},
	}
	for i := range good {
		tests = append(tests, struct {
			name string
			data []byte
		}{fmt.Sprintf("cut after %d bytes", i), good[:i]})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if d, err := chain.DecodeDiff(tt.data); !errors.Is(err, chain.ErrDiff) {
				t.Errorf("DecodeDiff = %+v, %v, want ErrDiff", d, err)
			}
		})
	}
}

// A false count is refused as such, before anything is read for it.
func TestFalseCountOfSlots(t *testing.T) {
	data := append([]byte{2, 1}, make([]byte, 20+1)...)
	data = append(append(data, 2, 0, 0), make([]byte, 32+31)...) // a byte less than two slots
	_, err := chain.DecodeDiff(data)
	if !errors.Is(err, chain.ErrDiff) || !strings.Contains(err.Error(), "count 2 ") {
		t.Errorf("got %v, want the count to be refused", err)
	}
}

func FuzzDecodeDiff(f *testing.F) {
	f.Add(chain.AppendDiff(nil, sample()))
	f.Add(chain.AppendDiff(nil, &chain.Diff{}))
	f.Add(chain.AppendDiff(nil, randomDiff(rand.New(rand.NewPCG(1, 1)))))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := chain.DecodeDiff(data)
		if err != nil {
			return
		}
		if again := chain.AppendDiff(nil, d); !bytes.Equal(again, data) {
			t.Errorf("accepted %x, which encodes as %x", data, again)
		}
	})
}

func randomDiff(r *rand.Rand) *chain.Diff {
	d := new(chain.Diff)
	for range 1 + r.IntN(20) {
		a := chain.AccountDiff{Changed: r.IntN(3) > 0, Wiped: r.IntN(5) == 0}
		fill(r, a.Address[:])
		if a.Changed && r.IntN(4) > 0 {
			a.Account = chain.Account{Exists: true, Nonce: r.Uint64() >> r.IntN(64)}
			a.Account.Balance = *new(uint256.Int).Rsh(new(uint256.Int).SetAllOne(), uint(r.IntN(257)))
			if r.IntN(2) == 0 {
				code := make([]byte, 1+r.IntN(100))
				fill(r, code)
				d.Codes = append(d.Codes, chain.NewCode(code))
				a.Account.CodeHash = d.Codes[len(d.Codes)-1].Hash
			}
		}
		for range r.IntN(5) {
			var s chain.SlotDiff
			fill(r, s.Slot[:])
			if a.Wiped || r.IntN(4) > 0 {
				fill(r, s.Value[r.IntN(32):])
				s.Value[31] |= 1
			}
			a.Slots = append(a.Slots, s)
		}
		if a.Changed || a.Wiped || len(a.Slots) > 0 {
			d.Accounts = append(d.Accounts, a)
		}
	}
	d.Sort()
	return d
}

func fill(r *rand.Rand, b []byte) {
	for i := range b {
		b[i] = byte(r.Uint32())
	}
}
