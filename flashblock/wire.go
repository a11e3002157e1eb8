// SPDX-License-Identifier: Apache-2.0

package flashblock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
)

// The wire form: the names, their order and the encodings are those of
// op-rbuilder, and pinned by tests against its messages. Members are pointers
// because feeds send null where they have nothing to say.
type (
	wireMessage struct {
		PayloadID *hexutil.Bytes `json:"payload_id"`
		Index     *uint64        `json:"index"`
		Base      *wireBase      `json:"base,omitempty"`
		Diff      *wireDiff      `json:"diff"`
		Metadata  wireMetadata   `json:"metadata"`
	}

	wireBase struct {
		ParentBeaconBlockRoot *chain.Hash     `json:"parent_beacon_block_root"`
		ParentHash            *chain.Hash     `json:"parent_hash"`
		FeeRecipient          *chain.Address  `json:"fee_recipient"`
		PrevRandao            *chain.Hash     `json:"prev_randao"`
		BlockNumber           *hexutil.Uint64 `json:"block_number"`
		GasLimit              *hexutil.Uint64 `json:"gas_limit"`
		Timestamp             *hexutil.Uint64 `json:"timestamp"`
		ExtraData             *hexutil.Bytes  `json:"extra_data"`
		BaseFeePerGas         *hexutil.U256   `json:"base_fee_per_gas"`
	}

	wireDiff struct {
		StateRoot       *chain.Hash         `json:"state_root"`
		ReceiptsRoot    *chain.Hash         `json:"receipts_root"`
		LogsBloom       *types.Bloom        `json:"logs_bloom"`
		GasUsed         *hexutil.Uint64     `json:"gas_used"`
		BlockHash       *chain.Hash         `json:"block_hash"`
		Transactions    []hexutil.Bytes     `json:"transactions"`
		Withdrawals     []*types.Withdrawal `json:"withdrawals"`
		WithdrawalsRoot *chain.Hash         `json:"withdrawals_root"`
		BlobGasUsed     *hexutil.Uint64     `json:"blob_gas_used,omitempty"`
		PostExecTx      *hexutil.Bytes      `json:"post_exec_tx,omitempty"`
		AccessListData  json.RawMessage     `json:"access_list_data,omitempty"`
	}

	wireMetadata struct {
		BlockNumber        *wireNumber                               `json:"block_number"`
		NewAccountBalances tolerant[map[chain.Address]*hexutil.U256] `json:"new_account_balances"`
		Receipts           tolerant[map[chain.Hash]wireOptional]     `json:"receipts"`
		AccessList         json.RawMessage                           `json:"access_list,omitempty"`
	}

	wireReceipt struct {
		Type                  *hexutil.Uint64 `json:"type"`
		Status                wireStatus      `json:"status"`
		CumulativeGasUsed     *hexutil.Uint64 `json:"cumulativeGasUsed"`
		Logs                  []wireLog       `json:"logs"`
		DepositNonce          *hexutil.Uint64 `json:"depositNonce,omitempty"`
		DepositReceiptVersion *hexutil.Uint64 `json:"depositReceiptVersion,omitempty"`
	}

	wireLog struct {
		Address *chain.Address `json:"address"`
		Topics  []chain.Hash   `json:"topics"`
		Data    *hexutil.Bytes `json:"data"`
	}

	wireStatus bool

	wireNumber uint64

	wireOptional = tolerant[*wireReceipt]
)

// A tolerant is a member of the metadata, whose form feeds have changed and will
// change again: what is not understood is not there. Nothing that decides what
// state a flashblock makes is read from it, so it is read when it is asked for.
type tolerant[T any] struct {
	value T
	text  []byte // what was decoded and not read yet
}

// MarshalJSON writes the value alone.
func (t tolerant[T]) MarshalJSON() ([]byte, error) { return json.Marshal(t.value) }

// UnmarshalJSON never fails.
func (t *tolerant[T]) UnmarshalJSON(text []byte) error {
	t.text = bytes.Clone(text)
	return nil
}

// read returns the value, zero where it is not understood.
func (t *tolerant[T]) read() (v T) {
	if json.Unmarshal(t.text, &v) != nil {
		return *new(T)
	}
	return v
}

// UnmarshalJSON takes a number as feeds send it, and also a quantity in hex, as
// every other number in a message is.
func (n *wireNumber) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte{'"'}) {
		return (*hexutil.Uint64)(n).UnmarshalJSON(text)
	}
	return json.Unmarshal(text, (*uint64)(n))
}

// MarshalJSON writes the status as a quantity.
func (s wireStatus) MarshalJSON() ([]byte, error) {
	if s {
		return []byte(`"0x1"`), nil
	}
	return []byte(`"0x0"`), nil
}

// UnmarshalJSON also takes the form of older feeds, a boolean.
func (s *wireStatus) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case `"0x1"`, `true`:
		*s = true
	case `"0x0"`, `false`, `null`:
		*s = false
	default:
		return fmt.Errorf("receipt status %.20s", text)
	}
	return nil
}

// receiptTypes are the names by which older feeds wrap a receipt.
var receiptTypes = map[string]hexutil.Uint64{
	"Legacy": types.LegacyTxType, "Eip2930": types.AccessListTxType, "Eip1559": types.DynamicFeeTxType,
	"Eip4844": types.BlobTxType, "Eip7702": types.SetCodeTxType, "Deposit": depositType, "PostExec": postExecutionType,
}

// The transaction types of OP-Stack chains.
const (
	postExecutionType = 0x7d
	depositType       = 0x7e
)

// UnmarshalJSON takes a receipt with a type in it, or one that is the only
// member of an object and named after its type.
func (r *wireReceipt) UnmarshalJSON(text []byte) error {
	type plain wireReceipt // without this method
	if !bytes.Contains(text, []byte(`"type"`)) {
		var wrapped map[string]json.RawMessage
		if err := json.Unmarshal(text, &wrapped); err != nil {
			return err
		}
		_, known := wrapped["status"]
		for name, inner := range wrapped {
			if kind, ok := receiptTypes[name]; ok && len(wrapped) == 1 {
				r.Type = &kind
				text, known = inner, true
			}
		}
		if !known { // without a word of it, "failed" would be a lie
			return errors.New("receipt of an unknown form")
		}
	}
	return json.Unmarshal(text, (*plain)(r))
}

// or returns what p points to, or zero.
func or[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
