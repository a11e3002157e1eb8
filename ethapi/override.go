// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"math/big"

	"github.com/holiman/uint256"

	"glimpse/chain"
	"glimpse/jsonrpc"
)

// stateOverrides are what a caller wants to be different in the state of a call.
type stateOverrides map[chain.Address]*accountOverride

// An accountOverride is what is different at one address. Nil is as it is.
type accountOverride struct {
	nonce   *uint64
	balance *big.Int
	code    *chain.Code // with the zero hash where it is empty

	slots map[chain.Slot]chain.Value
	whole bool // slots are all there is: others are zero
}

func (a *arguments) stateOverrides() stateOverrides {
	v, given := a.next()
	if !given {
		return nil
	}
	all := make(stateOverrides)
	bad := v.Members(func(name []byte, value jsonrpc.Value) *jsonrpc.Error {
		var addr chain.Address
		if !decodeHex(addr[:], name) {
			return jsonrpc.InvalidParams("invalid address %q: %s", clip(name), wantAddress)
		}
		if all[addr] != nil {
			return jsonrpc.InvalidParams("address %s comes twice", addr)
		}
		o, err := parseAccountOverride(addr, value)
		all[addr] = o
		return err
	})
	if bad != nil {
		a.refuse("state overrides", bad.Message)
	}
	return all
}

func parseAccountOverride(addr chain.Address, v jsonrpc.Value) (*accountOverride, *jsonrpc.Error) {
	o := new(accountOverride)
	bad := v.Members(func(name []byte, value jsonrpc.Value) *jsonrpc.Error {
		switch string(name) {
		case "nonce":
			return assign(&o.nonce, name, value, pointer(parseUint64))
		case "balance":
			return assign(&o.balance, name, value, parseBig)
		case "code":
			return assign(&o.code, name, value, parseCode)
		case "state", "stateDiff":
			if o.slots != nil {
				return jsonrpc.InvalidParams("account %s has both 'state' and 'stateDiff'", addr)
			}
			o.whole = string(name) == "state"
			return assign(&o.slots, name, value, parseSlots)
		}
		return jsonrpc.InvalidParams("state override %q is not supported", clip(name))
	})
	return o, bad
}

func parseCode(v jsonrpc.Value) (*chain.Code, string) {
	code, why := parseData(v)
	if why != "" || len(code) == 0 {
		return new(chain.Code), why
	}
	c := chain.NewCode(code)
	return &c, ""
}

func parseSlots(v jsonrpc.Value) (map[chain.Slot]chain.Value, string) {
	slots := make(map[chain.Slot]chain.Value)
	bad := v.Members(func(name []byte, value jsonrpc.Value) *jsonrpc.Error {
		var slot chain.Slot
		if !decodeHex(slot[:], name) {
			return jsonrpc.InvalidParams("slot %q: %s", clip(name), wantHash)
		}
		content, why := parseHash(value)
		if why != "" {
			return jsonrpc.InvalidParams("value of slot %s: %s", slot, why)
		}
		slots[slot] = content
		return nil
	})
	if bad != nil {
		return nil, bad.Message
	}
	return slots, ""
}

// check refuses to override a precompiled contract: the EVM would run it all the
// same.
func (all stateOverrides) check(precompiles map[string]chain.Address) error {
	for name, addr := range precompiles {
		if all[addr] != nil {
			return jsonrpc.InvalidParams("state override of the precompiled contract %s (%s) is not supported", addr, name)
		}
	}
	return nil
}

// An overriddenView is a state with some of it replaced.
type overriddenView struct {
	chain.View
	accounts stateOverrides
	codes    map[chain.Hash][]byte
}

func newOverriddenView(v chain.View, accounts stateOverrides) *overriddenView {
	o := &overriddenView{View: v, accounts: accounts, codes: make(map[chain.Hash][]byte)}
	for _, a := range accounts {
		if a.code != nil && len(a.code.Bytes) > 0 {
			o.codes[a.code.Hash] = a.code.Bytes
		}
	}
	return o
}

func (v *overriddenView) Account(addr chain.Address) (chain.Account, error) {
	account, err := v.View.Account(addr)
	o := v.accounts[addr]
	if err != nil || o == nil {
		return account, err
	}
	account.Exists = true
	if o.nonce != nil {
		account.Nonce = *o.nonce
	}
	if o.balance != nil {
		account.Balance = *uint256.MustFromBig(o.balance) // parsed as at most 256 bits
	}
	if o.code != nil {
		account.CodeHash = o.code.Hash
	}
	return account, nil
}

func (v *overriddenView) Slot(addr chain.Address, slot chain.Slot) (chain.Value, error) {
	if o := v.accounts[addr]; o != nil {
		if value, ok := o.slots[slot]; ok || o.whole {
			return value, nil
		}
	}
	return v.View.Slot(addr, slot)
}

func (v *overriddenView) Code(h chain.Hash) ([]byte, error) {
	if code, ok := v.codes[h]; ok {
		return code, nil
	}
	return v.View.Code(h)
}
