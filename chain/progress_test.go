// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
)

func TestParseProgress(t *testing.T) {
	for _, good := range []string{"0", "7", "120", "9223372036854775807", "0.0", "7.0", "7.12", "9223372036854775807.18446744073709551615"} {
		p, err := chain.ParseProgress(good)
		if err != nil || p.String() != good {
			t.Errorf("ParseProgress(%q) = %v, %v", good, p, err)
		}
		if q, err := chain.ParseProgress([]byte(good)); err != nil || p != q {
			t.Errorf("of bytes %q is %v, %v, want %v", good, q, err, p)
		}
	}
	for _, bad := range []string{
		"", ".", "7.", ".7", "-1", "+1", "01", "00", "7.01", "7.-1", "7.1.2", "0x7", "7 ", " 7", "7,1", "1e3", "latest",
		"9223372036854775808", "18446744073709551616", "7.18446744073709551616", "99999999999999999999999999",
	} {
		if p, err := chain.ParseProgress(bad); err == nil {
			t.Errorf("ParseProgress(%q) = %v, want an error", bad, p)
		}
	}
}

func TestParseProgressDoesNotAllocate(t *testing.T) {
	text := []byte("9223372036854775807.18446744073709551615")
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := chain.ParseProgress(text); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Errorf("parsing allocates %v times, want 0", allocs)
	}
}

func TestProgressReached(t *testing.T) {
	at := func(n int64, index uint64) *chain.Preconfirmed {
		return &chain.Preconfirmed{Header: &types.Header{Number: big.NewInt(n)}, Index: index}
	}
	tests := []struct {
		name    string
		want    string
		latest  chain.Number
		pending *chain.Preconfirmed
		reached bool
	}{
		{"genesis is always there", "0", 0, nil, true},
		{"the block itself", "7", 7, nil, true},
		{"a later block", "7", 9, nil, true},
		{"an earlier block", "7", 6, nil, false},
		{"a block that is only pre-confirmed is not sealed", "7", 6, at(7, 9), false},
		{"a block on one that is only pre-confirmed is not sealed", "7", 6, at(8, 0), false},
		{"a flashblock of a sealed block", "7.3", 7, nil, true},
		{"the flashblock itself", "7.3", 6, at(7, 3), true},
		{"a later flashblock", "7.3", 6, at(7, 4), true},
		{"an earlier flashblock", "7.3", 6, at(7, 2), false},
		{"a flashblock of a later block", "7.3", 6, at(8, 0), true},
		{"a flashblock of an earlier block", "7.3", 5, at(6, 9), false},
		{"nothing pre-confirmed", "7.0", 6, nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := chain.ParseProgress(tt.want)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.ReachedBy(tt.latest, tt.pending); got != tt.reached {
				t.Errorf("ReachedBy(%d, %+v) of %s = %v, want %v", tt.latest, tt.pending, tt.want, got, tt.reached)
			}
		})
	}
}

func FuzzParseProgress(f *testing.F) {
	for _, seed := range []string{"0", "7", "7.0", "01", "7.", "18446744073709551616", "9223372036854775807.18446744073709551615"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := chain.ParseProgress(text)
		q, errBytes := chain.ParseProgress([]byte(text))
		if p != q || (err == nil) != (errBytes == nil) {
			t.Fatalf("text %q gives %v, %v, and as bytes %v, %v", text, p, err, q, errBytes)
		}
		if err == nil && p.String() != text {
			t.Errorf("ParseProgress(%q) = %v, want no second way to write it", text, p)
		}
	})
}
