// SPDX-License-Identifier: Apache-2.0

package flashblock_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/holiman/uint256"

	"glimpse/chain"
	"glimpse/flashblock"
)

func message(diff, metadata string) []byte {
	return []byte(`{"payload_id":"0x0102030405060708","index":1,"diff":{"gas_used":"0x5"` + diff + `},"metadata":{"block_number":7` + metadata + `}}`)
}

func TestAccessListsOfAllFeeds(t *testing.T) {
	hash := chain.Hash{31: 0xab}
	const hashText = `"0x00000000000000000000000000000000000000000000000000000000000000ab"`
	const changes = `[{"address":"0x00000000000000000000000000000000000000bb","storage_changes":[]}]`
	const ofBase = `{"account_changes":` + changes + `,"min_tx_index":3,"max_tx_index":9,"fal_hash":` + hashText + `}`
	const ofWorld = `{"changes":` + changes + `,"min_tx_index":3,"max_tx_index":9}`
	list := func(text string, hash chain.Hash) *flashblock.AccessList {
		return &flashblock.AccessList{Text: json.RawMessage(text), Hash: hash}
	}
	tests := []struct {
		name           string
		diff, metadata string
		want           *flashblock.AccessList
	}{
		{"none", "", "", nil},
		{"null", `,"access_list_data":null`, `,"access_list":null`, nil},
		{"RLP in the metadata", "", `,"access_list":"0xc2c0c0"`, list(`"0xc2c0c0"`, chain.Hash{})},
		{"JSON in the metadata", "", `,"access_list":` + ofBase, list(ofBase, chain.Hash{})},
		{"JSON in the diff", `,"access_list_data":{"access_list":` + ofWorld + `,"access_list_hash":` + hashText + `}`, "", list(ofWorld, hash)},
		{"RLP in the diff", `,"access_list_data":{"access_list":"0xc0","access_list_hash":` + hashText + `}`, "", list(`"0xc0"`, hash)},
		{"JSON without range and hash", "", `,"access_list":{"account_changes":[]}`, list(`{"account_changes":[]}`, chain.Hash{})},
		{"a number", `,"access_list_data":7`, `,"access_list":7`, nil},
		{"a list", `,"access_list_data":[]`, `,"access_list":[]`, nil},
		{"text that is not hex", "", `,"access_list":"0xzz"`, nil},
		{"empty text", "", `,"access_list":"0x"`, nil},
		{"an object without changes", `,"access_list_data":{"access_list":{}}`, `,"access_list":{"account_changes":null}`, nil},
		{"a hash that is none", "", `,"access_list":{"account_changes":[],"fal_hash":"0x1"}`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := decode(t, message(tt.diff, tt.metadata))
			if !reflect.DeepEqual(m.AccessList, tt.want) || m.Delta.GasUsed != 5 {
				t.Errorf("decoded %+v, want %+v", m.AccessList, tt.want)
			}
			text, err := flashblock.Encode(m)
			if err != nil {
				t.Fatal(err)
			}
			if again := decode(t, text); !reflect.DeepEqual(again.AccessList, tt.want) {
				t.Errorf("encoded and decoded %+v, want %+v", again.AccessList, tt.want)
			}
		})
	}
}

func TestEndOfABuildIsToldApart(t *testing.T) {
	_, err := flashblock.Decode([]byte(`{"payload_id":"0x0102030405060708"}`))
	if !errors.Is(err, flashblock.ErrEnd) || !errors.Is(err, flashblock.ErrMessage) {
		t.Errorf("Decode of an end = %v, want ErrEnd", err)
	}
	for _, text := range []string{`{}`, `{"payload_id":"0x0102030405060708","index":1}`, `{"payload_id":"0x0102030405060708","diff":{}}`} {
		if _, err := flashblock.Decode([]byte(text)); errors.Is(err, flashblock.ErrEnd) || !errors.Is(err, flashblock.ErrMessage) {
			t.Errorf("Decode of %s = %v, want ErrMessage and not ErrEnd", text, err)
		}
	}
}

// What is logged of a message must not be as long as the message.
func TestErrorsAreShort(t *testing.T) {
	_, err := flashblock.Decode(message(`,"block_hash":`+strings.Repeat("9", 1<<20), ""))
	if err == nil || len(err.Error()) > 300 {
		t.Errorf("Decode = %d bytes of error, want a short one", len(err.Error()))
	}
}

func TestTextIsKeptOnRequest(t *testing.T) {
	text := message("", `,"unknown":[1, 2]`)
	packed, err := flashblock.Compress(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{text, packed} {
		m, err := flashblock.DecodeWithText(data)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := m.Text(); !ok || string(got) != string(text) {
			t.Errorf("Text = %s, %v, want %s", got, ok, text)
		}
		plain := decode(t, data)
		if got, ok := plain.Text(); ok {
			t.Errorf("Text = %s without being asked for", got)
		}
		if m.Size() <= plain.Size() {
			t.Errorf("a message with its text is of size %d, without of %d", m.Size(), plain.Size())
		}
	}
	if _, err := flashblock.DecodeWithText([]byte("hello")); !errors.Is(err, flashblock.ErrMessage) {
		t.Errorf("DecodeWithText of garbage = %v, want ErrMessage", err)
	}
}

func TestFingerprintIsOfWhatDecidesTheState(t *testing.T) {
	text := lines(t, "unichain_sepolia_35535698.full-metadata.jsonl")[0]
	want := decode(t, text).Fingerprint()
	bare := decode(t, lines(t, "unichain_sepolia_35535698.messages.jsonl")[0])
	if len(bare.Receipts) != 0 || bare.Fingerprint() != want {
		t.Errorf("without metadata it is another flashblock")
	}
	changes := map[string]func(*flashblock.Message){
		"payload":          func(m *flashblock.Message) { m.Payload[0]++ },
		"index":            func(m *flashblock.Message) { m.Index++ },
		"number":           func(m *flashblock.Message) { m.Number++ },
		"no base":          func(m *flashblock.Message) { m.Base = nil },
		"parent":           func(m *flashblock.Message) { m.Base.ParentHash[0]++ },
		"beacon root":      func(m *flashblock.Message) { m.Base.ParentBeaconRoot[0]++ },
		"fee recipient":    func(m *flashblock.Message) { m.Base.FeeRecipient[0]++ },
		"randao":           func(m *flashblock.Message) { m.Base.PrevRandao[0]++ },
		"gas limit":        func(m *flashblock.Message) { m.Base.GasLimit++ },
		"time":             func(m *flashblock.Message) { m.Base.Time++ },
		"extra data":       func(m *flashblock.Message) { m.Base.ExtraData[0]++ },
		"base fee":         func(m *flashblock.Message) { m.Base.BaseFee = uint256.NewInt(1) },
		"a transaction":    func(m *flashblock.Message) { m.Delta.Transactions[0][5]++ },
		"one less":         func(m *flashblock.Message) { m.Delta.Transactions = m.Delta.Transactions[1:] },
		"gas used":         func(m *flashblock.Message) { m.Delta.GasUsed++ },
		"receipts root":    func(m *flashblock.Message) { m.Delta.ReceiptsRoot[0]++ },
		"bloom":            func(m *flashblock.Message) { m.Delta.LogsBloom[0]++ },
		"state root":       func(m *flashblock.Message) { m.Delta.StateRoot[0]++ },
		"block hash":       func(m *flashblock.Message) { m.Delta.BlockHash[0]++ },
		"withdrawals root": func(m *flashblock.Message) { m.Delta.WithdrawalsRoot[0]++ },
		"blob gas":         func(m *flashblock.Message) { m.Delta.BlobGasUsed = new(uint64) },
		"last transaction": func(m *flashblock.Message) { m.Delta.PostExecution = []byte{0x7d} },
	}
	for name, change := range changes {
		m := decode(t, text)
		change(m)
		if m.Fingerprint() == want {
			t.Errorf("another %s has the same fingerprint", name)
		}
	}
}
