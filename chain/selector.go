// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"encoding/hex"
	"errors"
	"strconv"
)

// A Selector is a block parameter as the caller wrote it: a tag, a number or a
// hash. It says nothing about whether such a block exists; head resolves it.
//
// The zero Selector is a parameter that was not given and means the latest
// block.
type Selector struct {
	kind   selectorKind
	number Number
	hash   Hash
}

type selectorKind uint8

const (
	notGiven selectorKind = iota
	latest
	pending
	safe
	finalized
	earliest
	byNumber
	byHash
)

// The five tags.
var (
	Latest    = Selector{kind: latest}
	Pending   = Selector{kind: pending}
	Safe      = Selector{kind: safe}
	Finalized = Selector{kind: finalized}
	Earliest  = Selector{kind: earliest}
)

var tags = map[string]Selector{
	"latest":    Latest,
	"pending":   Pending,
	"safe":      Safe,
	"finalized": Finalized,
	"earliest":  Earliest,
}

// ByNumber selects the canonical block of height n.
func ByNumber(n Number) Selector { return Selector{kind: byNumber, number: n} }

// ByHash selects the block with hash h.
func ByHash(h Hash) Selector { return Selector{kind: byHash, hash: h} }

// IsLatest reports whether s means the latest block, given or not.
func (s Selector) IsLatest() bool { return s.kind == latest || s.kind == notGiven }

// IsPending, IsSafe, IsFinalized and IsEarliest report whether s is that tag.
func (s Selector) IsPending() bool   { return s.kind == pending }
func (s Selector) IsSafe() bool      { return s.kind == safe }
func (s Selector) IsFinalized() bool { return s.kind == finalized }
func (s Selector) IsEarliest() bool  { return s.kind == earliest }

// Number returns the number that s names; ok is false for tags and hashes.
func (s Selector) Number() (n Number, ok bool) { return s.number, s.kind == byNumber }

// Hash returns the hash that s names; ok is false for tags and numbers.
func (s Selector) Hash() (h Hash, ok bool) { return s.hash, s.kind == byHash }

// String returns s as it would be written in a request.
func (s Selector) String() string {
	switch s.kind {
	case byNumber:
		return "0x" + strconv.FormatUint(uint64(s.number), 16)
	case byHash:
		return s.hash.Hex()
	case notGiven:
		return "latest"
	}
	for name, tag := range tags {
		if tag.kind == s.kind {
			return name
		}
	}
	return "invalid"
}

// hashDigits is the length of a 32-byte hash written as 0x and 64 digits. No
// number has that many: one of 64 digits is far above MaxNumber.
const hashDigits = 2 + 64

// ParseSelector reads a tag, a hex number or a 32-byte hash. Tags are exact and
// lower-case; a number has the prefix 0x and no leading zeros.
func ParseSelector[T string | []byte](text T) (Selector, error) {
	if tag, ok := tags[string(text)]; ok {
		return tag, nil
	}
	if len(text) == hashDigits {
		h, err := parseHash(text)
		return ByHash(h), err
	}
	n, err := parseNumber(text)
	return ByNumber(n), err
}

// ParseSelectorHash reads the blockHash member of an EIP-1898 object.
func ParseSelectorHash[T string | []byte](text T) (Selector, error) {
	h, err := parseHash(text)
	return ByHash(h), err
}

// ParseSelectorNumber reads the blockNumber member of an EIP-1898 object: a
// number or a tag, never a hash.
func ParseSelectorNumber[T string | []byte](text T) (Selector, error) {
	if tag, ok := tags[string(text)]; ok {
		return tag, nil
	}
	n, err := parseNumber(text)
	return ByNumber(n), err
}

var (
	errNotABlock  = errors.New("want a tag, a hex number or a block hash")
	errLeadZero   = errors.New("hex number with leading zero digits")
	errOutOfRange = errors.New("block number out of range")
	errBadHash    = errors.New("want a 32-byte hash, 0x and 64 hex digits")
)

func parseNumber[T string | []byte](text T) (Number, error) {
	if len(text) < 3 || text[0] != '0' || text[1] != 'x' {
		return 0, errNotABlock
	}
	digits := text[2:]
	if digits[0] == '0' && len(digits) > 1 {
		return 0, errLeadZero
	}
	n, err := strconv.ParseUint(string(digits), 16, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) || Number(n) > MaxNumber:
		return 0, errOutOfRange
	case err != nil:
		return 0, errNotABlock
	}
	return Number(n), nil
}

func parseHash[T string | []byte](text T) (h Hash, err error) {
	if len(text) != hashDigits || text[0] != '0' || text[1] != 'x' {
		return Hash{}, errBadHash
	}
	var digits [2 * len(h)]byte
	copy(digits[:], text[2:])
	if _, err := hex.Decode(h[:], digits[:]); err != nil {
		return Hash{}, errBadHash
	}
	return h, nil
}
