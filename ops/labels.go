// SPDX-License-Identifier: Apache-2.0

package ops

import "glimpse/chain"

// A TagClass is the kind of block that a call asked for.
type TagClass uint8

// The classes. A call that takes no block is of TagNone, the zero value.
const (
	TagNone TagClass = iota
	TagLatest
	TagPending
	TagSafe
	TagFinalized
	TagEarliest
	TagNumber
	TagHash
	tagClasses int = iota
)

var tagNames = [tagClasses]string{
	"none", "latest", "pending", "safe", "finalized", "earliest", "number", "hash",
}

// ClassOf returns the class of a block parameter. One that was not given means
// the latest block and is counted so.
func ClassOf(s chain.Selector) TagClass {
	switch {
	case s.IsLatest():
		return TagLatest
	case s.IsPending():
		return TagPending
	case s.IsSafe():
		return TagSafe
	case s.IsFinalized():
		return TagFinalized
	case s.IsEarliest():
		return TagEarliest
	}
	if _, ok := s.Number(); ok {
		return TagNumber
	}
	return TagHash
}

// String returns the value of the label.
func (t TagClass) String() string { return tagNames[t.index()] }

// index is that of the class, or of none for a value that is no class.
func (t TagClass) index() int {
	if int(t) < tagClasses {
		return int(t)
	}
	return 0
}

// codeNames are the values of the label code. Any other code is counted as the
// last of them, so that no error can add to the set.
var codeNames = [...]string{
	"0", "3", "4", "4444", "-32000", "-32001", "-32002", "-32003", "-32004", "-32005",
	"-32600", "-32601", "-32602", "-32603", "-32700", "-38026", "-39001", other,
}

func codeIndex(code int) int {
	switch code {
	case 0:
		return 0
	case 3, 4:
		return code - 2
	case 4444:
		return 3
	case -32000, -32001, -32002, -32003, -32004, -32005:
		return 4 + (-32000 - code)
	case -32600, -32601, -32602, -32603:
		return 10 + (-32600 - code)
	case -32700:
		return 14
	case -38026:
		return 15
	case -39001:
		return 16
	}
	return len(codeNames) - 1
}

// other stands for every value that is not in a label's set.
const other = "other"

// outcomeApplied is the outcome that makes pre-confirmed state newer.
const outcomeApplied = "applied"

// outcomes are what can become of a flashblock, or of what was pre-confirmed
// when a block is sealed.
var outcomes = []string{
	outcomeApplied, "restored", "ignored", "waiting", "refused", "replaced", "mismatched",
	"invalid", "unread", "expired", "promoted", "rebased", "discarded", "kept", other,
}
