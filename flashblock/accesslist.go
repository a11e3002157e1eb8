// SPDX-License-Identifier: Apache-2.0

package flashblock

import (
	"bytes"
	"encoding/json"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"glimpse/chain"
)

// An AccessList is an EIP-7928 list that came with a flashblock: what its
// transactions read and wrote, with the values afterwards. Nothing in it was
// checked.
type AccessList struct {
	// Text is the list in JSON as the feed has it: a string with its RLP, or an
	// object with a list of changes. What the hash is about depends on the form.
	Text json.RawMessage

	// Hash is what the feed says beside the list that it hashes to, zero where it
	// does not, or says so inside of Text.
	Hash chain.Hash
}

// wireAccessListData is a list and its hash, in the diff.
type wireAccessListData struct {
	AccessList json.RawMessage `json:"access_list,omitempty"`
	Hash       *chain.Hash     `json:"access_list_hash,omitempty"`
}

// accessList returns the list of a message, or nil. There is no agreed form, so
// one that is not known is as good as none, and no reason to refuse a message.
func (w *wireMessage) accessList() *AccessList {
	if isAccessList(w.Metadata.AccessList) {
		return &AccessList{Text: w.Metadata.AccessList}
	}
	var data wireAccessListData
	if len(w.Diff.AccessListData) == 0 || json.Unmarshal(w.Diff.AccessListData, &data) != nil || !isAccessList(data.AccessList) {
		return nil
	}
	return &AccessList{Text: data.AccessList, Hash: or(data.Hash)}
}

// isAccessList reports whether something has the form of a list.
func isAccessList(text json.RawMessage) bool {
	if bytes.HasPrefix(text, []byte{'"'}) {
		var encoded hexutil.Bytes
		return json.Unmarshal(text, &encoded) == nil && len(encoded) > 0
	}
	var w struct {
		AccountChanges json.RawMessage `json:"account_changes"`
		Changes        json.RawMessage `json:"changes"`
		Hash           *chain.Hash     `json:"fal_hash"`
	}
	if len(text) == 0 || json.Unmarshal(text, &w) != nil {
		return false
	}
	return bytes.HasPrefix(w.AccountChanges, []byte{'['}) || bytes.HasPrefix(w.Changes, []byte{'['})
}

// wireAccessListOf returns where a list is put in a message: with a hash beside it
// in the diff, without in the metadata.
func wireAccessListOf(list *AccessList) (metadata, diff json.RawMessage, err error) {
	switch {
	case list == nil:
		return nil, nil, nil
	case list.Hash == (chain.Hash{}):
		return list.Text, nil, nil
	}
	diff, err = json.Marshal(wireAccessListData{AccessList: list.Text, Hash: &list.Hash})
	return nil, diff, err
}
