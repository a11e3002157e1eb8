// SPDX-License-Identifier: Apache-2.0

package origin_test

import (
	"bytes"
	"errors"
	"testing"

	"glimpse/chain"
	"glimpse/follow/origin"
)

var (
	alice = chain.Address{19: 1}
	bob   = chain.Address{19: 2}
	code  = chain.NewCode([]byte{0x60, 0x01})
)

func contract(withCode bool) origin.Account {
	a := origin.Account{Account: chain.Account{Exists: true, Nonce: 1, CodeHash: code.Hash}}
	if withCode {
		a.Code = code.Bytes
	}
	return a
}

func TestAccountIsKeptWithItsCode(t *testing.T) {
	tests := []struct {
		name      string
		along     bool // the code comes with the account
		kept      bool // the store has the code
		wantCalls int
	}{
		{"code that is asked for", false, false, 1},
		{"code that comes along", true, false, 0},
		{"code that the store has", false, true, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, origin.Options{}, func(b *bench) {
				b.source.accounts = map[chain.Address]origin.Account{alice: contract(tt.along), bob: contract(tt.along)}
				b.source.codes = map[chain.Address][]byte{alice: code.Bytes, bob: code.Bytes}
				if tt.kept {
					b.keeper.codes[code.Hash] = code.Bytes
				}
				b.together(2, func(i int) {
					account, err := b.view.Account([]chain.Address{alice, bob}[i])
					if err != nil || account != contract(false).Account {
						t.Errorf("account: got %v, %v, want %v", account, err, contract(false).Account)
					}
					got, err := b.view.Code(code.Hash)
					if err != nil || !bytes.Equal(got, code.Bytes) {
						t.Errorf("code: got %x, %v, want %x", got, err, code.Bytes)
					}
				})
				b.expectCalls("accounts", 1)
				b.expectCalls("codes", tt.wantCalls)
			})
		})
	}
}

func TestAccountThatDoesNotExistIsKeptAsSuch(t *testing.T) {
	inBubble(t, origin.Options{}, func(b *bench) {
		for range 2 {
			if account, err := b.view.Account(alice); err != nil || account != (chain.Account{}) {
				t.Errorf("account: got %v, %v, want none", account, err)
			}
		}
		b.expectCalls("accounts", 1)
	})
}

// Nothing of an answer that cannot be right is kept, or given to anybody.
func TestAnswersThatCannotBeRightAreErrors(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(*bench)
	}{
		{"code of another hash", func(b *bench) { b.source.codes[alice] = []byte("other") }},
		{"no code where there is one", func(b *bench) { b.source.codes[alice] = nil }},
		{"code that comes along with another hash", func(b *bench) {
			b.source.accounts[alice] = origin.Account{Account: contract(false).Account, Code: []byte("other")}
		}},
		{"a value too many", func(b *bench) { b.source.extra = 1 }},
		{"a store that does not keep it", func(b *bench) { b.keeper.broken = errDown }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, origin.Options{}, func(b *bench) {
				b.source.accounts = map[chain.Address]origin.Account{alice: contract(false)}
				b.source.codes = map[chain.Address][]byte{alice: code.Bytes}
				tt.spoil(b)
				if account, err := b.view.Account(alice); !errors.Is(err, origin.ErrFetch) || account != (chain.Account{}) {
					t.Errorf("account: got %v, %v, want ErrFetch", account, err)
				}
				if len(b.keeper.accounts) != 0 {
					t.Errorf("kept: got %v, want nothing", b.keeper.accounts)
				}
			})
		})
	}
}

// Accounts whose code is a lie do not spoil those that were read with them.
func TestLieAboutOneCodeLeavesOtherAccounts(t *testing.T) {
	carol := chain.Address{19: 3}
	inBubble(t, origin.Options{}, func(b *bench) {
		other := chain.NewCode([]byte{0x60, 0x02})
		good := contract(false)
		good.CodeHash = other.Hash
		b.source.accounts = map[chain.Address]origin.Account{alice: contract(false), bob: good, carol: contract(false)}
		b.source.codes = map[chain.Address][]byte{alice: []byte("lie"), bob: other.Bytes, carol: []byte("lie")}
		b.together(3, func(i int) {
			_, err := b.view.Account([]chain.Address{alice, bob, carol}[i])
			if i != 1 && !errors.Is(err, origin.ErrFetch) || i == 1 && err != nil {
				t.Errorf("account %d: got %v, want an error of those with the lie alone", i, err)
			}
		})
		b.expectCalls("accounts", 1)
	})
}
