// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"glimpse/chain"
)

// Values have one form each, and the decoders accept no other: Check relies on
// equal state being equal bytes.

func appendSlotValue(dst []byte, v chain.Value) []byte {
	return append(dst, bytes.TrimLeft(v[:], "\x00")...)
}

func decodeSlotValue(data []byte) (v chain.Value, err error) {
	if len(data) > len(v) || len(data) > 0 && data[0] == 0 {
		return chain.Value{}, fmt.Errorf("%w: slot value %x", chain.ErrCorrupt, data)
	}
	copy(v[len(v)-len(data):], data)
	return v, nil
}

// appendAccount writes nonce, length-prefixed balance, and the code hash where
// there is code. An account that does not exist is empty.
func appendAccount(dst []byte, a *chain.Account) []byte {
	if !a.Exists {
		return dst
	}
	dst = binary.AppendUvarint(dst, a.Nonce)
	dst = append(dst, byte(a.Balance.ByteLen()))
	balance := a.Balance.Bytes32()
	dst = append(dst, balance[len(balance)-a.Balance.ByteLen():]...)
	if a.CodeHash != (chain.Hash{}) {
		dst = append(dst, a.CodeHash[:]...)
	}
	return dst
}

func decodeAccount(data []byte) (a chain.Account, err error) {
	if len(data) == 0 {
		return chain.Account{}, nil
	}
	nonce, n := binary.Uvarint(data)
	if n <= 0 || n > 1 && data[n-1] == 0 || n == len(data) {
		return chain.Account{}, corruptAccount(data)
	}
	size, rest := int(data[n]), data[n+1:]
	if size > 32 || size > len(rest) || size > 0 && rest[0] == 0 {
		return chain.Account{}, corruptAccount(data)
	}
	a.Exists = true
	a.Nonce = nonce
	a.Balance.SetBytes(rest[:size])
	switch hash := rest[size:]; len(hash) {
	case 0:
	case hashSize:
		if a.CodeHash = chain.Hash(hash); a.CodeHash == (chain.Hash{}) {
			return chain.Account{}, corruptAccount(data)
		}
	default:
		return chain.Account{}, corruptAccount(data)
	}
	return a, nil
}

func corruptAccount(data []byte) error {
	return fmt.Errorf("%w: account %x", chain.ErrCorrupt, data)
}

// A storedBlock is the value of a block key. Its slices are parts of what was
// decoded.
type storedBlock struct {
	hash, parent chain.Hash
	header, body []byte
}

func appendBlock(dst []byte, b storedBlock) []byte {
	dst = append(append(dst, b.hash[:]...), b.parent[:]...)
	dst = binary.AppendUvarint(dst, uint64(len(b.header)))
	return append(append(dst, b.header...), b.body...)
}

func decodeBlock(data []byte) (b storedBlock, err error) {
	if len(data) < 2*hashSize {
		return storedBlock{}, fmt.Errorf("%w: block of %d bytes", chain.ErrCorrupt, len(data))
	}
	b.hash, b.parent = chain.Hash(data[:hashSize]), chain.Hash(data[hashSize:2*hashSize])
	rest := data[2*hashSize:]
	size, n := binary.Uvarint(rest)
	if n <= 0 || n > 1 && rest[n-1] == 0 || size > uint64(len(rest)-n) {
		return storedBlock{}, fmt.Errorf("%w: header length of block %s", chain.ErrCorrupt, b.hash)
	}
	b.header, b.body = rest[n:n+int(size)], rest[n+int(size):]
	return b, nil
}

func decodeNumber(data []byte) (chain.Number, error) {
	if len(data) != numberSize {
		return 0, fmt.Errorf("%w: block number %x", chain.ErrCorrupt, data)
	}
	return chain.Number(binary.BigEndian.Uint64(data)), nil
}

// appendCode puts the block that introduced the code before it, so that
// unwinding knows which codes go with which block.
func appendCode(dst []byte, first chain.Number, code []byte) []byte {
	return append(appendNumber(dst, first), code...)
}

func decodeCode(data []byte) (first chain.Number, code []byte, err error) {
	if len(data) <= numberSize {
		return 0, nil, fmt.Errorf("%w: code entry of %d bytes", chain.ErrCorrupt, len(data))
	}
	return chain.Number(binary.BigEndian.Uint64(data)), data[numberSize:], nil
}

func appendRef(dst []byte, r chain.Ref) []byte {
	return append(appendNumber(dst, r.Number), r.Hash[:]...)
}

func decodeRef(data []byte) (r chain.Ref, err error) {
	if len(data) != numberSize+hashSize {
		return chain.Ref{}, fmt.Errorf("%w: block reference %x", chain.ErrCorrupt, data)
	}
	r.Number = chain.Number(binary.BigEndian.Uint64(data))
	r.Hash = chain.Hash(data[numberSize:])
	return r, nil
}
