// SPDX-License-Identifier: Apache-2.0

package flashblock

import (
	"bytes"
	"encoding/json"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"glimpse/chain"
)

// An AccessList is an EIP-7928 list that came with a flashblock: what its
// transactions read and wrote, with the values afterwards. It is as the feed has
// it, and nothing in it was checked. Exactly one of RLP and Changes is there.
type AccessList struct {
	// RLP is a block access list in the encoding of EIP-7928, nil where the
	// feed sends JSON.
	RLP []byte

	// Changes is a JSON list of the changes of accounts, nil where the feed
	// sends RLP.
	Changes json.RawMessage

	// First and Last are the places in the block of the transactions that the
	// list is about, zero where the feed does not say.
	First, Last uint64

	// Hash is what the feed says that the list hashes to, zero where it does
	// not say.
	Hash chain.Hash
}

// The two forms of a list in JSON. One feed has it in the metadata and with all
// in one object, another in the diff and wrapped once more.
type (
	wireAccessList struct {
		AccountChanges json.RawMessage `json:"account_changes,omitempty"`
		Changes        json.RawMessage `json:"changes,omitempty"`
		MinTxIndex     *uint64         `json:"min_tx_index"`
		MaxTxIndex     *uint64         `json:"max_tx_index"`
		Hash           *chain.Hash     `json:"fal_hash,omitempty"`
	}

	wireAccessListData struct {
		AccessList json.RawMessage `json:"access_list,omitempty"`
		Hash       *chain.Hash     `json:"access_list_hash,omitempty"`
	}
)

// accessList returns the list of a message, or nil. There is no agreed form, so
// one that is not known is as good as none, and no reason to refuse a message.
func (w *wireMessage) accessList() *AccessList {
	if list := parseAccessList(w.Metadata.AccessList); list != nil {
		return list
	}
	var data wireAccessListData
	if len(w.Diff.AccessListData) == 0 || json.Unmarshal(w.Diff.AccessListData, &data) != nil {
		return nil
	}
	list := parseAccessList(data.AccessList)
	if list != nil && data.Hash != nil {
		list.Hash = *data.Hash
	}
	return list
}

func parseAccessList(text json.RawMessage) *AccessList {
	if bytes.HasPrefix(text, []byte{'"'}) {
		var encoded hexutil.Bytes
		if json.Unmarshal(text, &encoded) != nil || len(encoded) == 0 {
			return nil
		}
		return &AccessList{RLP: encoded}
	}
	var w wireAccessList
	if len(text) == 0 || json.Unmarshal(text, &w) != nil {
		return nil
	}
	changes := w.AccountChanges
	if changes == nil {
		changes = w.Changes
	}
	if !bytes.HasPrefix(changes, []byte{'['}) {
		return nil
	}
	return &AccessList{Changes: changes, First: or(w.MinTxIndex), Last: or(w.MaxTxIndex), Hash: or(w.Hash)}
}

// wireAccessListOf returns where a list is put in a message: in RLP in the
// metadata, in JSON in the diff, with its hash beside it in both cases where there
// is one.
func wireAccessListOf(list *AccessList) (metadata, diff json.RawMessage, err error) {
	if list == nil {
		return nil, nil, nil
	}
	var inner json.RawMessage
	if list.RLP != nil {
		inner, err = json.Marshal(hexutil.Bytes(list.RLP))
	} else {
		inner, err = json.Marshal(wireAccessList{Changes: list.Changes, MinTxIndex: &list.First, MaxTxIndex: &list.Last})
	}
	if err != nil {
		return nil, nil, err
	}
	if list.RLP != nil && list.Hash == (chain.Hash{}) {
		return inner, nil, nil
	}
	diff, err = json.Marshal(wireAccessListData{AccessList: inner, Hash: &list.Hash})
	return nil, diff, err
}
