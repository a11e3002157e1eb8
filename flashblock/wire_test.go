// SPDX-License-Identifier: Apache-2.0

package flashblock_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/trie"

	"glimpse/flashblock"
	"glimpse/internal/fixture"
)

// lines returns the messages in a recorded file.
func lines(t testing.TB, name string) [][]byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(fixture.Flashblocks(t), name))
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for scan := bufio.NewScanner(bytes.NewReader(data)); scan.Scan(); {
		if len(scan.Bytes()) > 0 {
			all = append(all, bytes.Clone(scan.Bytes()))
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return all
}

func decode(t testing.TB, data []byte) *flashblock.Message {
	t.Helper()
	m, err := flashblock.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// What glimpse publishes must be, byte for byte, what consumers of such feeds
// know. A change here breaks them.
func TestPinnedMessagesEncodeAsTheyWere(t *testing.T) {
	pins := lines(t, "wire_pins_op-rbuilder_2026-08.jsonl")
	for i, pin := range pins[:2] {
		got, err := flashblock.Encode(decode(t, pin))
		if err != nil || !bytes.Equal(got, pin) {
			t.Errorf("pin %d encodes, %v, as\n%s\nwant\n%s", i, err, got, pin)
		}
	}
	// The third pin is the second with the receipts of older feeds.
	got, err := flashblock.Encode(decode(t, pins[2]))
	if err != nil || !bytes.Equal(got, pins[1]) {
		t.Errorf("old receipts encode, %v, as\n%s\nwant\n%s", err, got, pins[1])
	}
}

func TestCapturesDecode(t *testing.T) {
	tests := []struct {
		name   string
		number uint64
		last   uint64
	}{
		{"unichain_sepolia_35535698.messages", 35535698, 4},
		{"unichain_sepolia_35535698.full-metadata", 35535698, 4},
		{"base_sepolia_33439826.messages", 33439826, 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			messages := lines(t, tt.name+".jsonl")
			if len(messages) != int(tt.last)+1 {
				t.Fatalf("%d messages, want %d", len(messages), tt.last+1)
			}
			for i, text := range messages {
				m := decode(t, text)
				if uint64(m.Number) != tt.number || m.Index != uint64(i) || (m.Base != nil) != (i == 0) {
					t.Errorf("message %d is %s with base %v", i, m.Position(), m.Base != nil)
				}
				checkSameJSON(t, m, text)
			}
		})
	}
}

// checkSameJSON compares with the captured text in all that is not a matter of
// the feed's age: key order, null members and the tagging of receipts.
func checkSameJSON(t *testing.T, m *flashblock.Message, text []byte) {
	t.Helper()
	again, err := flashblock.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	var got, want map[string]any
	if err := errors.Join(json.Unmarshal(again, &got), json.Unmarshal(text, &want)); err != nil {
		t.Fatal(err)
	}
	if want["base"] == nil {
		delete(want, "base")
	}
	for _, part := range []string{"payload_id", "index", "base", "diff"} {
		if !reflect.DeepEqual(got[part], want[part]) {
			t.Errorf("%s is %v, want %v", part, got[part], want[part])
		}
	}
	number := func(m map[string]any) any { return m["metadata"].(map[string]any)["block_number"] }
	if number(got) != number(want) {
		t.Errorf("block number is %v, want %v", number(got), number(want))
	}
}

func TestCompressedCapturesAreTheSameMessages(t *testing.T) {
	for _, name := range []string{"unichain_sepolia_35535698.full-metadata", "base_sepolia_33439826.messages"} {
		plain := lines(t, name+".jsonl")
		for i, line := range lines(t, name+".brotli.jsonl") {
			var packed struct {
				Data string `json:"brotli_base64"`
			}
			if err := json.Unmarshal(line, &packed); err != nil {
				t.Fatal(err)
			}
			data, err := base64.StdEncoding.DecodeString(packed.Data)
			if err != nil {
				t.Fatal(err)
			}
			want := decode(t, plain[i])
			if got := decode(t, data); !reflect.DeepEqual(got, want) {
				t.Errorf("%s %d: compressed is %+v, want %+v", name, i, got, want)
			}
			ours, err := flashblock.EncodeBrotli(want)
			if err != nil {
				t.Fatal(err)
			}
			if got := decode(t, ours); got.Position() != want.Position() || !reflect.DeepEqual(got.Delta, want.Delta) {
				t.Errorf("%s %d: our compression is %+v, want %+v", name, i, got, want)
			}
		}
	}
}

func TestDecodeIsTolerant(t *testing.T) {
	const diff = `"diff":{"gas_used":"0x5"}`
	tests := []struct {
		name string
		text string
	}{
		{"only what must be", `{"payload_id":"0x0102030405060708","index":1,` + diff + `,"metadata":{"block_number":7}}`},
		{"spaces first", "  \n" + `{"payload_id":"0x0102030405060708","index":1,` + diff + `,"metadata":{"block_number":7}}`},
		{"null members", `{"payload_id":"0x0102030405060708","index":1,"base":null,"diff":{"gas_used":"0x5","transactions":null,"withdrawals":null,"blob_gas_used":null,"post_exec_tx":null},"metadata":{"block_number":7,"receipts":null,"new_account_balances":null,"access_list":null}}`},
		{"members of other feeds", `{"target_index":9,"payload_id":"0x0102030405060708","index":1,"diff":{"gas_used":"0x5","access_list_data":{"a":[1]}},"metadata":{"block_number":7,"prev_flashblock_id":"7-0"}}`},
		{"a null receipt", `{"payload_id":"0x0102030405060708","index":1,` + diff + `,"metadata":{"block_number":7,"receipts":{"0x9999999999999999999999999999999999999999999999999999999999999999":null}}}`},
		{"metadata of a later form", `{"payload_id":"0x0102030405060708","index":1,` + diff + `,"metadata":{"block_number":7,"receipts":[1,2],"new_account_balances":"gone","access_list":7}}`},
		{"a receipt of a later form", `{"payload_id":"0x0102030405060708","index":1,` + diff + `,"metadata":{"block_number":7,"receipts":{"0x9999999999999999999999999999999999999999999999999999999999999999":{"Eip9999":{"status":"maybe"}}}}}`},
		{"a receipt with another status", `{"payload_id":"0x0102030405060708","index":1,` + diff + `,"metadata":{"block_number":7,"receipts":{"0x9999999999999999999999999999999999999999999999999999999999999999":{"type":"0x2","status":"0x2"}}}}`},
		{"the number as a quantity", `{"payload_id":"0x0102030405060708","index":1,` + diff + `,"metadata":{"block_number":"0x7"}}`},
		{"metadata null, and the number in a base that is repeated", `{"payload_id":"0x0102030405060708","index":1,"base":{"block_number":"0x7"},` + diff + `,"metadata":null}`},
		{"the number in a base that is repeated", `{"payload_id":"0x0102030405060708","index":1,"base":{"block_number":"0x7"},` + diff + `}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := decode(t, []byte(tt.text))
			want := flashblock.Position{Number: 7, Payload: flashblock.PayloadID{1, 2, 3, 4, 5, 6, 7, 8}, Index: 1}
			if m.Position() != want || m.Delta.GasUsed != 5 || m.Base != nil || len(m.Receipts) != 0 {
				t.Errorf("decoded %+v", m)
			}
		})
	}
}

func TestReceiptsInAllForms(t *testing.T) {
	const before = `{"payload_id":"0x0102030405060708","index":1,"diff":{},"metadata":{"block_number":7,"receipts":{"0x9999999999999999999999999999999999999999999999999999999999999999":`
	tests := []struct {
		name    string
		receipt string
		kind    uint8
		ok      bool
	}{
		{"type inside", `{"type":"0x2","status":"0x1","cumulativeGasUsed":"0x9","logs":[]}`, 2, true},
		{"type outside", `{"Eip1559":{"status":"0x1","cumulativeGasUsed":"0x9","logs":[]}}`, 2, true},
		{"failed", `{"Legacy":{"status":"0x0","cumulativeGasUsed":"0x9","logs":[]}}`, 0, false},
		{"boolean status", `{"type":"0x4","status":true,"cumulativeGasUsed":"0x9"}`, 4, true},
		{"boolean status outside", `{"Deposit":{"status":false,"cumulativeGasUsed":"0x9"}}`, 0x7e, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := decode(t, []byte(before+tt.receipt+`}}}`))
			for _, r := range m.Receipts {
				if r.Type != tt.kind || r.Succeeded != tt.ok || r.CumulativeGasUsed != 9 {
					t.Errorf("decoded %+v", r)
				}
			}
			if len(m.Receipts) != 1 {
				t.Errorf("%d receipts, want 1", len(m.Receipts))
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	var bomb bytes.Buffer
	w := brotli.NewWriterLevel(&bomb, 5)
	spaces := bytes.Repeat([]byte{' '}, 1<<20)
	for range 8 {
		if _, err := w.Write(spaces); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	const id = `{"payload_id":"0x0102030405060708",`
	tests := []struct {
		name string
		data []byte
	}{
		{"nothing", nil},
		{"neither JSON nor Brotli", []byte("hello")},
		{"a JSON list", []byte(`[]`)},
		{"cut JSON", []byte(id)},
		{"no payload id", []byte(`{"index":1,"diff":{},"metadata":{"block_number":7}}`)},
		{"a short payload id", []byte(`{"payload_id":"0x01","index":1,"diff":{},"metadata":{"block_number":7}}`)},
		{"no index", []byte(id + `"diff":{},"metadata":{"block_number":7}}`)},
		{"no diff", []byte(id + `"index":1,"metadata":{"block_number":7}}`)},
		{"no base at index 0", []byte(id + `"index":0,"diff":{},"metadata":{"block_number":7}}`)},
		{"no parent hash at index 0", []byte(id + `"index":0,"base":{"block_number":"0x7"},"diff":{}}`)},
		{"no block number", []byte(id + `"index":1,"diff":{}}`)},
		{"a block number that no client can hold", []byte(id + `"index":1,"diff":{},"metadata":{"block_number":18446744073709551615}}`)},
		{"two block numbers", []byte(id + `"index":0,"base":{"block_number":"0x8","parent_hash":"0x` + strings.Repeat("11", 32) + `"},"diff":{},"metadata":{"block_number":7}}`)},
		{"an empty transaction", []byte(id + `"index":1,"diff":{"transactions":["0x"]},"metadata":{"block_number":7}}`)},
		{"a null withdrawal", []byte(id + `"index":1,"diff":{"withdrawals":[null]},"metadata":{"block_number":7}}`)},
		{"a bomb", bomb.Bytes()},
		{"too long", append([]byte(`{`), bytes.Repeat([]byte{' '}, flashblock.MaxSize)...)},
		{"mostly commas", []byte(id + `"index":1,"diff":{},"metadata":{"block_number":7,"x":[0` + strings.Repeat(",0", flashblock.MaxSize/64) + `]}}`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if m, err := flashblock.Decode(tt.data); !errors.Is(err, flashblock.ErrMessage) {
				t.Errorf("Decode = %+v, %v, want ErrMessage", m, err)
			}
		})
	}
}

// Whatever is accepted encodes to something that is accepted and means the same.
func FuzzDecode(f *testing.F) {
	for _, name := range []string{"wire_pins_op-rbuilder_2026-08.jsonl", "unichain_sepolia_35535698.full-metadata.jsonl", "base_sepolia_33439826.messages.jsonl"} {
		for _, text := range lines(f, name) {
			f.Add(text)
			packed, err := flashblock.EncodeBrotli(decode(f, text))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(packed)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := flashblock.Decode(data)
		if err != nil {
			return
		}
		text, err := flashblock.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := flashblock.Encode(decode(t, text))
		if err != nil || !bytes.Equal(again, text) {
			t.Errorf("%s encodes again as %s, %v", text, again, err)
		}
	})
}

func TestTallyIsThatOfAllReceipts(t *testing.T) {
	tally := flashblock.NewTally()
	var all types.Receipts
	if got := tally.ReceiptsRoot(); got != types.EmptyReceiptsHash {
		t.Errorf("root of nothing is %s, want %s", got, types.EmptyReceiptsHash)
	}
	for i := range 300 { // beyond 0x7f and 0xff, where keys grow
		r := &types.Receipt{
			Type: uint8(i % 3), Status: uint64(i % 2), CumulativeGasUsed: uint64(i+1) * 21000,
			Logs: []*types.Log{{Address: common.Address{byte(i)}, Topics: []common.Hash{crypto.Keccak256Hash([]byte{byte(i)})}}},
		}
		r.Bloom = types.CreateBloom(r)
		all = append(all, r)
		if i%3 != 2 {
			continue // they come three at a time
		}
		if err := tally.Add(all[i-2:], all[i-2:]); err != nil {
			t.Fatal(err)
		}
		d := &flashblock.Delta{GasUsed: r.CumulativeGasUsed, LogsBloom: types.MergeBloom(all), ReceiptsRoot: types.DeriveSha(all, trie.NewStackTrie(nil))}
		if err := tally.Check(d); err != nil {
			t.Fatalf("after %d receipts: %v", i+1, err)
		}
		for _, spoil := range []func(){func() { d.GasUsed++ }, func() { d.LogsBloom[3] ^= 1; d.GasUsed-- }, func() { d.ReceiptsRoot[0] ^= 1; d.LogsBloom[3] ^= 1 }} {
			spoil()
			var mismatch *flashblock.MismatchError
			if err := tally.Check(d); !errors.As(err, &mismatch) {
				t.Fatalf("after %d receipts a wrong checksum gives %v", i+1, err)
			}
		}
	}
}
