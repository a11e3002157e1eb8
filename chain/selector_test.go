// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"strings"
	"testing"

	"glimpse/chain"
)

func TestParseSelector(t *testing.T) {
	hash := "0x" + strings.Repeat("ab", 32)
	tests := []struct {
		name, text string
		want       chain.Selector
		ok         bool
	}{
		{"latest", "latest", chain.Latest, true},
		{"pending", "pending", chain.Pending, true},
		{"safe", "safe", chain.Safe, true},
		{"finalized", "finalized", chain.Finalized, true},
		{"earliest", "earliest", chain.Earliest, true},
		{"zero", "0x0", chain.ByNumber(0), true},
		{"upper-case digits are tolerated", "0xAbC", chain.ByNumber(0xabc), true},
		{"largest number", "0x7fffffffffffffff", chain.ByNumber(chain.MaxNumber), true},
		{"66 characters are a hash", hash, chain.ByHash([32]byte([]byte(strings.Repeat("\xab", 32)))), true},

		{"empty", "", chain.Selector{}, false},
		{"tag in capitals", "LATEST", chain.Selector{}, false},
		{"tag with a space", " latest", chain.Selector{}, false},
		{"bare prefix", "0x", chain.Selector{}, false},
		{"leading zero", "0x01", chain.Selector{}, false},
		{"two zeros", "0x00", chain.Selector{}, false},
		{"decimal", "10", chain.Selector{}, false},
		{"negative", "-1", chain.Selector{}, false},
		{"upper-case prefix", "0X1", chain.Selector{}, false},
		{"not hex", "0xg", chain.Selector{}, false},
		{"one above the largest", "0x8000000000000000", chain.Selector{}, false},
		{"seventy digits", "0x1" + strings.Repeat("0", 69), chain.Selector{}, false},
		{"hash without prefix", strings.Repeat("ab", 32), chain.Selector{}, false},
		{"hash with a stray letter", hash[:65] + "g", chain.Selector{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := chain.ParseSelector(tt.text)
			if (err == nil) != tt.ok {
				t.Fatalf("ParseSelector(%q) error = %v, want ok %v", tt.text, err, tt.ok)
			}
			if tt.ok && got != tt.want {
				t.Errorf("ParseSelector(%q) = %v, want %v", tt.text, got, tt.want)
			}
		})
	}
}

func TestSelectorNumberIsNeverAHash(t *testing.T) {
	if got, err := chain.ParseSelectorNumber("0x" + strings.Repeat("11", 32)); err == nil {
		t.Errorf("ParseSelectorNumber(hash) = %v, want an error", got)
	}
}

// A number must not be able to pass for a tag, nor a tag for a number.
func TestZeroSelectorMeansLatest(t *testing.T) {
	var s chain.Selector
	if !s.IsLatest() {
		t.Error("the zero Selector is not latest")
	}
	if _, ok := s.Number(); ok {
		t.Error("the zero Selector names a number")
	}
	if chain.ByNumber(0).IsLatest() || chain.ByNumber(0).IsEarliest() {
		t.Error("block 0 passes for a tag")
	}
}

func FuzzSelector(f *testing.F) {
	for _, s := range []string{"latest", "0x0", "0x7fffffffffffffff", "0x" + strings.Repeat("0", 64)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := chain.ParseSelector(text)
		if err != nil {
			return
		}
		if got := s.String(); !strings.EqualFold(got, text) {
			t.Errorf("ParseSelector(%q).String() = %q", text, got)
		}
	})
}
