// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"encoding/hex"
	"strconv"

	"github.com/holiman/uint256"

	"glimpse/jsonrpc"
)

// hexInto fills dst from a JSON string of 0x and exactly that many bytes.
func hexInto(dst []byte, v jsonrpc.Value) bool {
	text, ok := v.Text()
	return ok && decodeHex(dst, text)
}

func decodeHex(dst, text []byte) bool {
	if len(text) != 2+2*len(dst) || text[0] != '0' || text[1] != 'x' {
		return false
	}
	_, err := hex.Decode(dst, text[2:])
	return err == nil
}

// appendData appends bytes as a JSON string, two digits each.
func appendData(dst, data []byte) []byte {
	dst = append(dst, `"0x`...)
	dst = hex.AppendEncode(dst, data)
	return append(dst, '"')
}

// appendQuantity appends a number as a JSON string without leading zeros.
func appendQuantity(dst []byte, n uint64) []byte {
	dst = append(dst, `"0x`...)
	dst = strconv.AppendUint(dst, n, 16)
	return append(dst, '"')
}

func appendBigQuantity(dst []byte, n *uint256.Int) []byte {
	dst = append(dst, '"')
	dst = append(dst, n.Hex()...)
	return append(dst, '"')
}
