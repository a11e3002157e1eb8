// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"errors"

	"glimpse/chain"
	"glimpse/jsonrpc"
)

var (
	errBlockBoth    = errors.New("blockNumber and blockHash exclude each other")
	errBlockNeither = errors.New("want blockNumber or blockHash")
	errCanonical    = errors.New("requireCanonical must be true or false")
	errMemberText   = errors.New("blockNumber and blockHash must be strings")
)

// parseBlockObject reads an EIP-1898 object. Members that it does not know are
// refused: a misspelt one must not be dropped silently. requireCanonical is
// checked but changes nothing, since only canonical blocks are answered for.
func parseBlockObject(v jsonrpc.Value) (sel chain.Selector, err error) {
	var number, hash jsonrpc.Value
	bad := v.Members(func(name []byte, value jsonrpc.Value) *jsonrpc.Error {
		switch string(name) {
		case "blockNumber":
			number = value
		case "blockHash":
			hash = value
		case "requireCanonical":
			if _, ok := value.Bool(); !ok && !value.IsNull() {
				err = errCanonical
			}
		default:
			return jsonrpc.InvalidParams("unknown member %q", name)
		}
		return nil
	})
	given := func(v jsonrpc.Value) bool { return v != nil && !v.IsNull() }
	switch {
	case bad != nil:
		return sel, errors.New(bad.Message)
	case err != nil:
		return sel, err
	case given(number) && given(hash):
		return sel, errBlockBoth
	case given(number):
		return parseMember(number, chain.ParseSelectorNumber[[]byte])
	case given(hash):
		return parseMember(hash, chain.ParseSelectorHash[[]byte])
	}
	return sel, errBlockNeither
}

func parseMember(v jsonrpc.Value, parse func([]byte) (chain.Selector, error)) (chain.Selector, error) {
	text, ok := v.Text()
	if !ok {
		return chain.Selector{}, errMemberText
	}
	return parse(text)
}
