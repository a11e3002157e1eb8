// SPDX-License-Identifier: Apache-2.0

package floor

import (
	"bytes"
	"encoding/hex"
	"math"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
)

// A call is a request in the one form that is known here:
//
//	{"jsonrpc":"2.0","id":1,"method":"m","params":["0x…","0x…","latest"]}
type call struct {
	id      []byte
	method  []byte
	address common.Address
	slot    common.Hash // of eth_getStorageAt
	block   uint64
}

// newest is the block of latest and pending.
const newest = math.MaxUint64

var (
	beforeID     = []byte(`{"jsonrpc":"2.0","id":`)
	beforeMethod = []byte(`,"method":"`)
	beforeParams = []byte(`","params":["0x`)
	latest       = []byte("latest")
	pending      = []byte("pending")
	getStorageAt = []byte("eth_getStorageAt")
	getCode      = []byte("eth_getCode")
)

// parse takes one call off the front of text.
func parse(text []byte) (c call, rest []byte, ok bool) {
	if !bytes.HasPrefix(text, beforeID) {
		return c, nil, false
	}
	if c.id, text, ok = bytes.Cut(text[len(beforeID):], beforeMethod); !ok {
		return c, nil, false
	}
	if c.method, text, ok = bytes.Cut(text, beforeParams); !ok {
		return c, nil, false
	}
	if text, ok = fixed(c.address[:], text); !ok {
		return c, nil, false
	}
	if bytes.Equal(c.method, getStorageAt) {
		if len(text) < 2 || text[0] != '0' || text[1] != 'x' {
			return c, nil, false
		}
		if text, ok = fixed(c.slot[:], text[2:]); !ok {
			return c, nil, false
		}
	}
	end := bytes.IndexByte(text, '"')
	if end < 0 || !bytes.HasPrefix(text[end:], []byte(`"]}`)) {
		return c, nil, false
	}
	if c.block, ok = block(text[:end]); !ok {
		return c, nil, false
	}
	return c, text[end+3:], true
}

// fixed decodes a hexadecimal string to the end of its quotes and the next
// parameter's begin.
func fixed(into, text []byte) (rest []byte, ok bool) {
	digits := 2 * len(into)
	if len(text) < digits+3 || string(text[digits:digits+3]) != `","` {
		return nil, false
	}
	_, err := hex.Decode(into, text[:digits])
	return text[digits+3:], err == nil
}

func block(text []byte) (uint64, bool) {
	if bytes.Equal(text, latest) || bytes.Equal(text, pending) {
		return newest, true
	}
	if len(text) < 3 || text[0] != '0' || text[1] != 'x' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:]), 16, 64)
	return n, err == nil
}
