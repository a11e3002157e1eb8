// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"errors"
	"slices"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/jsonrpc"
)

// A filter says which logs are wanted.
type filter struct {
	from, to  chain.Selector
	hash      *chain.Hash // of the one block to look at, in place of a range
	addresses []chain.Address
	topics    [][]chain.Hash // at each place any of these; none stands for all
}

// Of a filter at most this much is looked at for every log.
const (
	maxFilterAddresses = 1000
	maxFilterTopics    = 4
	maxTopicChoices    = 1000
)

var errHashAndRange = errors.New("cannot specify both blockHash and fromBlock/toBlock, choose one or the other")

func (a *arguments) filter() (f filter) {
	v, given := a.required()
	if !given {
		return f
	}
	if err := f.parse(v); err != nil {
		a.refuse("filter", err.Error())
	}
	return f
}

// parse leaves members that it does not know alone, as other nodes do.
func (f *filter) parse(v jsonrpc.Value) error {
	var from, to *chain.Selector
	bad := v.Members(func(name []byte, value jsonrpc.Value) *jsonrpc.Error {
		switch string(name) {
		case "fromBlock":
			return assign(&from, name, value, pointer(parseHeight))
		case "toBlock":
			return assign(&to, name, value, pointer(parseHeight))
		case "blockHash":
			return assign(&f.hash, name, value, pointer(parseHash))
		case "address":
			return assign(&f.addresses, name, value, parseAddresses)
		case "topics":
			return assign(&f.topics, name, value, list(maxFilterTopics, parseTopic))
		}
		return nil
	})
	switch {
	case bad != nil:
		return errors.New(bad.Message)
	case f.hash != nil && (from != nil || to != nil):
		return errHashAndRange
	}
	if from != nil {
		f.from = *from
	}
	if to != nil {
		f.to = *to
	}
	return nil
}

func parseHeight(v jsonrpc.Value) (chain.Selector, string) {
	text, ok := v.Text()
	if !ok {
		return chain.Selector{}, "want a hex number or a tag"
	}
	sel, err := chain.ParseSelectorNumber(text)
	if err != nil {
		return chain.Selector{}, err.Error()
	}
	return sel, ""
}

// parseAddresses reads one address or a list of them.
func parseAddresses(v jsonrpc.Value) ([]chain.Address, string) {
	if _, isList := v.Elements(); isList {
		return list(maxFilterAddresses, parseAddress)(v)
	}
	a, why := parseAddress(v)
	return []chain.Address{a}, why
}

// parseTopic reads one topic, a list to choose from, or null for any. A null in
// the list stands for any too.
func parseTopic(v jsonrpc.Value) ([]chain.Hash, string) {
	if v.IsNull() {
		return nil, ""
	}
	if elements, isList := v.Elements(); isList {
		for e, ok := elements.Next(); ok; e, ok = elements.Next() {
			if e.IsNull() {
				return nil, ""
			}
		}
		return list(maxTopicChoices, parseHash)(v)
	}
	h, why := parseHash(v)
	return []chain.Hash{h}, why
}

// maybe reports whether a block with this bloom can have a log that matches.
func (f *filter) maybe(bloom types.Bloom) bool {
	if len(f.addresses) > 0 && !slices.ContainsFunc(f.addresses, func(a chain.Address) bool { return types.BloomLookup(bloom, a) }) {
		return false
	}
	for _, choices := range f.topics {
		if len(choices) > 0 && !slices.ContainsFunc(choices, func(h chain.Hash) bool { return types.BloomLookup(bloom, h) }) {
			return false
		}
	}
	return true
}

// matches reports whether a log is wanted. A filter with more topics than the
// log has does not match it, even where they stand for all.
func (f *filter) matches(log *types.Log) bool {
	if len(f.addresses) > 0 && !slices.Contains(f.addresses, log.Address) || len(f.topics) > len(log.Topics) {
		return false
	}
	for i, choices := range f.topics {
		if len(choices) > 0 && !slices.Contains(choices, log.Topics[i]) {
			return false
		}
	}
	return true
}
