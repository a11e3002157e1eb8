// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"encoding/hex"
	"math/big"
	"strconv"

	"glimpse/chain"
	"glimpse/jsonrpc"
)

// What is wrong with a parameter, as the parsers of this file say it.
const (
	wantQuantity = "want a hex number, 0x without leading zeros"
	wantAddress  = "want 0x and 40 hex digits"
	wantHash     = "want 0x and 64 hex digits"
	wantData     = "want 0x and an even number of hex digits"
)

// parseBig reads a QUANTITY of at most 256 bits. A non-empty why says what is
// wrong.
func parseBig(v jsonrpc.Value) (n *big.Int, why string) {
	text, ok := v.Text()
	if !ok || len(text) < 3 || text[0] != '0' || text[1] != 'x' || text[2] == '0' && len(text) > 3 {
		return nil, wantQuantity
	}
	digits := text[2:]
	for _, c := range digits {
		if !isHexDigit(c) {
			return nil, wantQuantity
		}
	}
	if len(digits) > 64 {
		return nil, "number of more than 256 bits"
	}
	n, ok = new(big.Int).SetString(string(digits), 16)
	if !ok {
		return nil, wantQuantity
	}
	return n, ""
}

func isHexDigit(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// parseUint64 reads a QUANTITY of at most 64 bits.
func parseUint64(v jsonrpc.Value) (n uint64, why string) {
	large, why := parseBig(v)
	switch {
	case why != "":
		return 0, why
	case !large.IsUint64():
		return 0, "number of more than 64 bits"
	}
	return large.Uint64(), ""
}

// parseData reads bytes of any length.
func parseData(v jsonrpc.Value) (data []byte, why string) {
	text, ok := v.Text()
	if !ok || len(text) < 2 || text[0] != '0' || text[1] != 'x' {
		return nil, wantData
	}
	data = make([]byte, hex.DecodedLen(len(text)-2))
	if _, err := hex.Decode(data, text[2:]); err != nil {
		return nil, wantData
	}
	return data, ""
}

func parseAddress(v jsonrpc.Value) (a chain.Address, why string) {
	if !hexInto(a[:], v) {
		return a, wantAddress
	}
	return a, ""
}

func parseHash(v jsonrpc.Value) (h chain.Hash, why string) {
	if !hexInto(h[:], v) {
		return h, wantHash
	}
	return h, ""
}

// parseFloat reads a JSON number.
func parseFloat(v jsonrpc.Value) (f float64, why string) {
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		return 0, "want a number"
	}
	return f, ""
}

// assign stores what parse makes of a member, unless it is null.
func assign[T any](dst *T, name []byte, v jsonrpc.Value, parse func(jsonrpc.Value) (T, string)) *jsonrpc.Error {
	if v.IsNull() {
		return nil
	}
	value, why := parse(v)
	if why != "" {
		return jsonrpc.InvalidParams("invalid member %q: %s", clip(name), why)
	}
	*dst = value
	return nil
}

// pointer is a parser for members that can be absent.
func pointer[T any](parse func(jsonrpc.Value) (T, string)) func(jsonrpc.Value) (*T, string) {
	return func(v jsonrpc.Value) (*T, string) {
		value, why := parse(v)
		return &value, why
	}
}

// list is a parser for arrays of at most this many elements.
func list[T any](most int, parse func(jsonrpc.Value) (T, string)) func(jsonrpc.Value) ([]T, string) {
	return func(v jsonrpc.Value) ([]T, string) {
		elements, ok := v.Elements()
		if !ok {
			return nil, "want an array"
		}
		all := []T{}
		for {
			v, ok := elements.Next()
			if !ok {
				return all, ""
			}
			if len(all) == most {
				return nil, "want at most " + strconv.Itoa(most) + " elements"
			}
			value, why := parse(v)
			if why != "" {
				return nil, "element " + strconv.Itoa(len(all)) + ": " + why
			}
			all = append(all, value)
		}
	}
}
