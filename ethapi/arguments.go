// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"encoding/hex"

	"glimpse/chain"
	"glimpse/jsonrpc"
)

// arguments takes the parameters of a call one by one. The first bad one is
// kept in err and all later ones are zero, so that a method decodes straight
// on and looks once, in done.
type arguments struct {
	rest  jsonrpc.Values
	taken int
	err   *jsonrpc.Error

	// selector is the first block parameter, for whoever observes the call.
	selector chain.Selector
	hasBlock bool
}

// selected notes a block parameter and returns it.
func (a *arguments) selected(sel chain.Selector) chain.Selector {
	if !a.hasBlock {
		a.selector, a.hasBlock = sel, true
	}
	return sel
}

// next takes one parameter; null counts as not given.
func (a *arguments) next() (v jsonrpc.Value, given bool) {
	if a.err != nil {
		return nil, false
	}
	v, ok := a.rest.Next()
	a.taken++
	return v, ok && !v.IsNull()
}

func (a *arguments) required() (v jsonrpc.Value, given bool) {
	if v, given = a.next(); !given && a.err == nil {
		a.err = jsonrpc.InvalidParams("missing value for required argument %d", a.taken-1)
	}
	return v, given
}

// done reports the first bad parameter, or that there were too many.
func (a *arguments) done() error {
	if a.err != nil {
		return a.err
	}
	if _, more := a.rest.Next(); more {
		return jsonrpc.InvalidParams("too many arguments, want at most %d", a.taken)
	}
	return nil
}

// refuse records what is wrong with the parameter taken last.
func (a *arguments) refuse(what, why string) {
	a.err = jsonrpc.InvalidParams("invalid argument %d (%s): %s", a.taken-1, what, why)
}

func (a *arguments) address() (addr chain.Address) {
	if v, given := a.required(); given && !hexInto(addr[:], v) {
		a.refuse("address", "want 0x and 40 hex digits")
	}
	return addr
}

func (a *arguments) hash(what string) (h chain.Hash) {
	if v, given := a.required(); given && !hexInto(h[:], v) {
		a.refuse(what, "want 0x and 64 hex digits")
	}
	return h
}

func (a *arguments) quantity(what string) (n uint64) {
	if v, given := a.required(); given {
		var why string
		if n, why = parseUint64(v); why != "" {
			a.refuse(what, why)
		}
	}
	return n
}

func (a *arguments) boolean(what string) bool {
	v, given := a.required()
	value, ok := v.Bool()
	if given && !ok {
		a.refuse(what, "want true or false")
	}
	return value
}

func (a *arguments) position() (k chain.Slot) {
	if v, given := a.required(); given {
		var why string
		if k, why = parsePosition(v); why != "" {
			a.refuse("position", why)
		}
	}
	return k
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

// parsePosition reads a storage slot: 0x and up to 64 hex digits, of any
// number, padded on the left. Digits without 0x are refused because nodes do
// not agree on whether they are hex or decimal. A non-empty why says what is
// wrong.
func parsePosition(v jsonrpc.Value) (k chain.Slot, why string) {
	text, ok := v.Text()
	switch {
	case !ok:
		return k, "want a string, 0x and at most 64 hex digits"
	case len(text) < 2 || text[0] != '0' || text[1] != 'x':
		return k, "storage key without 0x prefix: " + clip(text)
	case len(text) > 2+2*len(k):
		return k, "storage key too long (want at most 32 bytes): " + clip(text)
	}
	digits := [2 * len(k)]byte([]byte(zeros))
	copy(digits[len(digits)-(len(text)-2):], text[2:])
	if _, err := hex.Decode(k[:], digits[:]); err != nil {
		return chain.Slot{}, "invalid hex in storage key: " + clip(text)
	}
	return k, ""
}

// clip bounds how much of a bad parameter an error repeats.
func clip(text []byte) string {
	const most = 80
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}

// height takes a block number or tag, for methods that already say in their
// name that it is not a hash.
func (a *arguments) height() (sel chain.Selector) {
	v, given := a.required()
	if !given {
		return sel
	}
	text, ok := v.Text()
	if !ok {
		a.refuse("block", "want a hex number or a tag")
		return sel
	}
	sel, err := chain.ParseSelectorNumber(text)
	if err != nil {
		a.refuse("block", err.Error())
	}
	return a.selected(sel)
}

// block takes an optional block parameter: a tag, a number, a hash or an
// EIP-1898 object.
func (a *arguments) block() (sel chain.Selector) {
	v, given := a.next()
	if !given {
		return a.selected(sel)
	}
	var err error
	if v.IsObject() {
		sel, err = parseBlockObject(v)
	} else if text, ok := v.Text(); ok {
		sel, err = chain.ParseSelector(text)
	} else {
		a.refuse("block", "want a string or an object")
		return sel
	}
	if err != nil {
		a.refuse("block", err.Error())
	}
	return a.selected(sel)
}
