// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types/bal"
)

// memberNames leads from the names that senders use for the members of account
// changes, in small letters and without underscores, to go-ethereum's.
var memberNames = map[string]string{
	"address":          "address",
	"storagechanges":   "storageChanges",
	"storagereads":     "storageReads",
	"balancechanges":   "balanceChanges",
	"noncechanges":     "nonceChanges",
	"codechanges":      "codeChanges",
	"slot":             "slot",
	"slotchanges":      "slotChanges",
	"changes":          "slotChanges",
	"blockaccessindex": "blockAccessIndex",
	"txindex":          "blockAccessIndex",
	"postvalue":        "postValue",
	"newvalue":         "postValue",
	"value":            "postValue",
	"postbalance":      "postBalance",
	"balance":          "postBalance",
	"postnonce":        "postNonce",
	"newnonce":         "postNonce",
	"nonce":            "postNonce",
	"newcode":          "newCode",
	"code":             "newCode",
}

// parseAccounts reads an array of account changes under any of the names, with
// numbers in hex or decimal.
func parseAccounts(raw json.RawMessage) (bal.BlockAccessList, error) {
	if isNull(raw) {
		return nil, errors.New("no account changes")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var tree []any
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	renamed, err := rename(tree, 0)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(renamed)
	if err != nil {
		return nil, err
	}
	list := bal.BlockAccessList{}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	return list, nil
}

// maxNesting is more than account changes have.
const maxNesting = 8

func rename(node any, depth int) (any, error) {
	if depth > maxNesting {
		return nil, errors.New("nested too deeply")
	}
	var err error
	switch node := node.(type) {
	case []any:
		for i := range node {
			if node[i], err = rename(node[i], depth+1); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		renamed := make(map[string]any, len(node))
		for name, value := range node {
			known := memberNames[strings.ToLower(strings.ReplaceAll(name, "_", ""))]
			if known == "" {
				return nil, fmt.Errorf("member %q is not known", clip(name))
			}
			if renamed[known], err = renameValue(known, value, depth+1); err != nil {
				return nil, err
			}
		}
		return renamed, whole(renamed)
	case json.Number:
		n, err := strconv.ParseUint(node.String(), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("number %s: %w", clip(node.String()), err)
		}
		return hexutil.EncodeUint64(n), nil
	}
	return node, nil
}

// whole sees that an object has all members of the kind that it is: what is
// missing, or null, would be taken for zero.
func whole(object map[string]any) error {
	for name, value := range object {
		if value == nil {
			return fmt.Errorf("%s is null", name)
		}
	}
	has := func(name string) bool { return object[name] != nil }
	switch {
	case has("address"):
		return nil
	case has("slot") && has("slotChanges"):
		return nil
	case has("blockAccessIndex") && (has("postValue") || has("postBalance") || has("postNonce") || has("newCode")):
		return nil
	}
	return errors.New("a member is missing")
}

// renameValue also mends what go-ethereum is stricter about: numbers that were
// written with all their 32 bytes, and an index that it would cut off.
func renameValue(name string, value any, depth int) (any, error) {
	switch name {
	case "address", "newCode":
		return value, nil
	}
	value, err := rename(value, depth)
	if err != nil {
		return nil, err
	}
	if name == "storageReads" {
		list, _ := value.([]any)
		for i := range list {
			if list[i] == nil {
				return nil, errors.New("a slot that was read is null")
			}
			list[i] = withoutZeros(list[i])
		}
		return list, nil
	}
	value = withoutZeros(value)
	if text, ok := value.(string); ok && name == "blockAccessIndex" {
		if n, err := hexutil.DecodeUint64(text); err != nil || n > math.MaxUint32 {
			return nil, fmt.Errorf("block access index %q", clip(text))
		}
	}
	return value, nil
}

func withoutZeros(value any) any {
	text, ok := value.(string)
	digits, isHex := strings.CutPrefix(text, "0x")
	if !ok || !isHex || digits == "" {
		return value
	}
	if digits = strings.TrimLeft(digits, "0"); digits == "" {
		digits = "0"
	}
	return "0x" + digits
}
