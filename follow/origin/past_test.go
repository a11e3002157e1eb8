// SPDX-License-Identifier: Apache-2.0

package origin_test

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"

	"glimpse/chain"
	"glimpse/follow/origin"
)

var (
	final  = chain.Ref{Number: 50, Hash: chain.Hash{0: 1, 31: 50}}
	recent = chain.Ref{Number: 90, Hash: chain.Hash{0: 1, 31: 90}}

	// here is what the node answers for blocks that are nowhere.
	here = &chain.Miss{Reason: chain.Pruned, Oldest: 100, Latest: 120}
)

// inPast runs a test with a Past of a chain whose block 60 is final.
func inPast(t *testing.T, o origin.Options, test func(*fakeSource, *origin.Past)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		source := &fakeSource{
			blocks: map[chain.Selector]chain.Ref{
				chain.ByNumber(final.Number):  final,
				chain.ByNumber(recent.Number): recent,
				chain.ByHash(final.Hash):      final,
				chain.ByNumber(held.Number):   held,
			},
			accounts: map[chain.Address]origin.Account{alice: contract(false), bob: contract(true)},
			codes:    map[chain.Address][]byte{alice: code.Bytes},
		}
		p := origin.NewPast(source, func() (chain.Ref, bool) { return chain.Ref{Number: 60}, true }, o)
		test(source, p)
		p.Close()
	})
}

func TestPastRemembersOnlyWhatIsFinal(t *testing.T) {
	tests := []struct {
		name      string
		block     chain.Ref
		wantCalls int // of two rounds of reads
	}{
		{"a final block", final, 1},
		{"a recent block", recent, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inPast(t, origin.Options{}, func(source *fakeSource, p *origin.Past) {
				for range 2 {
					v, err := p.View(chain.ByNumber(tt.block.Number), here)
					if err != nil {
						t.Fatal(err)
					}
					got, err := v.Slot(key(1).Address, key(1).Slot)
					if want := valueOf(tt.block, key(1)); err != nil || got != want {
						t.Errorf("slot: got %s, %v, want %s", got, err, want)
					}
					if account, err := v.Account(bob); err != nil || account != contract(true).Account {
						t.Errorf("account: got %v, %v, want %v", account, err, contract(true).Account)
					}
				}
				for _, kind := range []string{"block", "slots", "accounts"} {
					if got := source.count(kind); got != tt.wantCalls {
						t.Errorf("calls for %s: got %d, want %d", kind, got, tt.wantCalls)
					}
				}
			})
		})
	}
}

func TestPastReadsCodeOfAccounts(t *testing.T) {
	for _, a := range []chain.Address{alice, bob} {
		inPast(t, origin.Options{}, func(source *fakeSource, p *origin.Past) {
			v, err := p.View(chain.ByHash(final.Hash), here)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := v.Code(code.Hash); err == nil {
				t.Error("code of no account that was read: got no error")
			}
			account, err := v.Account(a)
			if err != nil {
				t.Fatal(err)
			}
			got, err := v.Code(account.CodeHash)
			if err != nil || !bytes.Equal(got, code.Bytes) {
				t.Errorf("code: got %x, %v, want %x", got, err, code.Bytes)
			}
			if got, err := v.Code(chain.Hash{}); err != nil || len(got) != 0 {
				t.Errorf("code of the zero hash: got %x, %v, want none", got, err)
			}
		})
	}
}

func TestPastRefusesCodeOfAnotherHash(t *testing.T) {
	inPast(t, origin.Options{}, func(source *fakeSource, p *origin.Past) {
		source.codes[alice] = []byte("lie")
		source.accounts[bob] = origin.Account{Account: contract(false).Account, Code: []byte("lie")}
		v, err := p.View(chain.ByHash(final.Hash), here)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.Account(alice); err != nil {
			t.Fatal(err)
		}
		if got, err := v.Code(code.Hash); !errors.Is(err, origin.ErrFetch) {
			t.Errorf("code that is a lie: got %x, %v, want ErrFetch", got, err)
		}
		if _, err := v.Account(bob); !errors.Is(err, origin.ErrFetch) {
			t.Errorf("account that brings a lie: got %v, want ErrFetch", err)
		}
	})
}

func TestPastExplainsWhatItDoesNotHave(t *testing.T) {
	inPast(t, origin.Options{}, func(source *fakeSource, p *origin.Past) {
		for name, sel := range map[string]chain.Selector{
			"a block that the upstream does not know": chain.ByHash(chain.Hash{7}),
			"a block that is here":                    chain.ByNumber(held.Number),
		} {
			if v, err := p.View(sel, here); err != error(here) {
				t.Errorf("%s: got %v, %v, want the miss of the node", name, v, err)
			}
		}
		v, err := p.View(chain.ByNumber(recent.Number), here)
		if err != nil {
			t.Fatal(err)
		}
		source.lost = map[chain.Ref]error{recent: &chain.Miss{Reason: chain.Pruned}}
		var miss *chain.Miss
		if _, err := v.Slot(alice, chain.Slot{}); !errors.As(err, &miss) || *miss != *here {
			t.Errorf("state that the upstream has pruned: got %v, want the miss of the node", err)
		}
		source.down = errDown
		if _, err := v.Slot(alice, chain.Slot{}); !errors.Is(err, origin.ErrFetch) || !errors.Is(err, errDown) {
			t.Errorf("while the upstream is down: got %v, want ErrFetch and its reason", err)
		}
		if _, err := p.View(chain.ByNumber(1), here); !errors.Is(err, origin.ErrFetch) {
			t.Errorf("block while the upstream is down: got %v, want ErrFetch", err)
		}
	})
}

// With room for one slot, the second takes the place of the first.
func TestPastIsBounded(t *testing.T) {
	inPast(t, origin.Options{CacheBytes: 3000}, func(source *fakeSource, p *origin.Past) {
		v, err := p.View(chain.ByNumber(final.Number), here)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range []origin.Key{key(1), key(1), key(2), key(1)} {
			if _, err := v.Slot(k.Address, k.Slot); err != nil {
				t.Fatal(err)
			}
		}
		if got := source.count("slots"); got != 3 {
			t.Errorf("calls: got %d, want 3: one for each change of key", got)
		}
	})
}
