// SPDX-License-Identifier: Apache-2.0

package head_test

import (
	"errors"
	"testing"
	"time"

	"glimpse/chain"
	"glimpse/head"
)

// A pastState is a store that does not know the hashes before its first block.
type pastState struct {
	*fakeState
	first chain.Number
	fails bool
}

func (s *pastState) Hash(n chain.Number) (chain.Hash, error) {
	switch {
	case s.fails:
		return chain.Hash{}, errDisk
	case n < s.first:
		return chain.Hash{}, &chain.Miss{Reason: chain.Pruned, Oldest: s.oldest, Latest: s.latest}
	}
	return s.fakeState.Hash(n)
}

// elsewhere is a View of a block that is not here.
type elsewhere struct {
	chain.View
	asked int
}

func TestStateOfThePast(t *testing.T) {
	stranger := chain.Hash{0: 9, 31: 200}
	ref := func(n chain.Number) chain.Hash { return newState(1, 0, n).ref(n).Hash }
	two := chain.Number(2)
	tests := []struct {
		name string
		sel  chain.Selector
		want chain.Selector // that Past is asked for
		why  chain.Reason
	}{
		{"a number before the first block", chain.ByNumber(2), chain.ByNumber(2), chain.Pruned},
		{"a number that was pruned", chain.ByNumber(4), chain.ByHash(ref(4)), chain.Pruned},
		{"a hash that was pruned", chain.ByHash(ref(4)), chain.ByHash(ref(4)), chain.Pruned},
		{"a hash that is not known", chain.ByHash(stranger), chain.ByHash(stranger), chain.UnknownHash},
		{"a safe block of the past", chain.Safe, chain.ByHash(ref(2)), chain.Pruned},
		{"a finalized block of the past", chain.Finalized, chain.ByHash(ref(2)), chain.Pruned},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var asked []chain.Selector
			p := head.Publisher{Past: func(sel chain.Selector, miss *chain.Miss) (chain.View, error) {
				if want := (chain.Miss{Reason: tt.why, Oldest: 5, Latest: 9}); *miss != want {
					t.Errorf("miss: got %v, want %v", *miss, want)
				}
				asked = append(asked, sel)
				return &elsewhere{asked: len(asked)}, nil
			}}
			s := newState(1, 5, 9)
			s.safe, s.finalized = &two, &two
			p.Publish(&pastState{fakeState: s, first: 3}, nil, time.Time{})
			defer p.Close()
			l := p.Acquire()
			for range 2 { // both must be the same (P1)
				v, err := l.View(tt.sel)
				if other, ok := v.(*elsewhere); !ok || err != nil || other.asked != 1 {
					t.Fatalf("View: got %v, %v, want the first that Past gave", v, err)
				}
			}
			l.Release()
			if len(asked) != 1 || asked[0] != tt.want {
				t.Errorf("Past was asked for %v, want %v once", asked, tt.want)
			}
			l = p.Acquire()
			defer l.Release()
			if _, err := l.View(tt.sel); err != nil || len(asked) != 2 {
				t.Errorf("the next Lease: got %v after %d questions, want it to ask again", err, len(asked))
			}
		})
	}
}

// What is here, and what is nowhere, is not asked for elsewhere.
func TestPastIsAskedOnlyForThePast(t *testing.T) {
	p := head.Publisher{Past: func(sel chain.Selector, miss *chain.Miss) (chain.View, error) {
		t.Errorf("Past was asked for %s", sel)
		return nil, miss
	}}
	p.Publish(newState(1, 5, 9), nil, time.Time{})
	defer p.Close()
	l := p.Acquire()
	defer l.Release()
	for _, here := range []chain.Selector{chain.Latest, chain.Pending, chain.Earliest, chain.ByNumber(5)} {
		if v, err := l.View(here); err != nil {
			t.Errorf("%s: got %v, %v, want what is here", here, v, err)
		}
	}
	for _, nowhere := range []chain.Selector{chain.ByNumber(10), chain.ByHash(chain.Hash{0: 9, 31: 8})} {
		if v, err := l.View(nowhere); !errors.As(err, new(*chain.Miss)) {
			t.Errorf("%s: got %v, %v, want a miss", nowhere, v, err)
		}
	}
}

func TestPastThatHasNothing(t *testing.T) {
	for _, past := range []func(chain.Selector, *chain.Miss) (chain.View, error){
		nil,
		func(_ chain.Selector, miss *chain.Miss) (chain.View, error) { return nil, miss },
	} {
		p := head.Publisher{Past: past}
		p.Publish(newState(1, 5, 9), nil, time.Time{})
		l := p.Acquire()
		var miss *chain.Miss
		if v, err := l.View(chain.ByNumber(2)); !errors.As(err, &miss) || miss.Reason != chain.Pruned {
			t.Errorf("number: got %v, %v, want a miss: pruned", v, err)
		}
		if v, err := l.View(chain.ByHash(chain.Hash{31: 200})); !errors.As(err, &miss) || miss.Reason != chain.UnknownHash {
			t.Errorf("hash: got %v, %v, want a miss: unknown hash", v, err)
		}
		l.Release()
		p.Close()
	}
}

// A hash that could not be read leaves it open which block is meant.
func TestPastIsNotAskedAfterAReadError(t *testing.T) {
	p := head.Publisher{Past: func(chain.Selector, *chain.Miss) (chain.View, error) { return &elsewhere{}, nil }}
	p.Publish(&pastState{fakeState: newState(1, 5, 9), fails: true}, nil, time.Time{})
	defer p.Close()
	l := p.Acquire()
	defer l.Release()
	if v, err := l.View(chain.ByNumber(4)); !errors.Is(err, errDisk) {
		t.Errorf("View: got %v, %v, want the disk's error", v, err)
	}
}
