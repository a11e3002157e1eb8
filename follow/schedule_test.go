// SPDX-License-Identifier: Apache-2.0

package follow_test

import (
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/params/forks"

	"glimpse/evm"
	"glimpse/follow"
)

const (
	blobs    = `"blobSchedule":{"target":14,"max":21,"baseFeeUpdateFraction":11684671},"chainId":"0x539"`
	cancun   = `"KZG_POINT_EVALUATION":"0x000000000000000000000000000000000000000a"`
	prague   = cancun + `,"BLS12_G1ADD":"0x000000000000000000000000000000000000000b"`
	osaka    = prague + `,"P256VERIFY":"0x0000000000000000000000000000000000000100"`
	nextFork = osaka + `,"SOMETHING":"0x0000000000000000000000000000000000000200"`
)

func TestScheduleOf(t *testing.T) {
	fork := func(at, precompiles string) string {
		return `{"activationTime":` + at + `,` + blobs + `,"precompiles":{` + precompiles + `}}`
	}
	tests := []struct {
		name, current, next string
		at                  uint64 // a time at which the rules are asked for
		want                forks.Fork
		unsupported         bool
	}{
		{"Cancun", fork("0", cancun), "null", 100, forks.Cancun, false},
		{"Prague", fork("50", prague), "null", 100, forks.Prague, false},
		{"Osaka", fork("50", osaka), "null", 100, forks.Osaka, false},
		{"Osaka before more blobs", fork("50", osaka), fork("200", osaka), 100, forks.Osaka, false},
		{"Osaka with more blobs", fork("50", osaka), fork("200", osaka), 200, forks.BPO1, false},
		{"before a fork that is not known", fork("50", osaka), fork("200", nextFork), 199, forks.Osaka, false},
		{"after a fork that is not known", fork("50", osaka), fork("200", nextFork), 200, forks.Bogota, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			config, err := follow.ScheduleOf([]byte(`{"current":` + tt.current + `,"next":` + tt.next + `}`))
			if err != nil {
				t.Fatal(err)
			}
			if got := config.LatestFork(tt.at); got != tt.want || config.ChainID.Uint64() != 1337 {
				t.Errorf("at %d it is %v of chain %v, want %v of 1337", tt.at, got, config.ChainID, tt.want)
			}
			if _, err := evm.NewRules(config); err != nil {
				t.Errorf("no rules can be made of it: %v", err)
			}
		})
	}
}

func TestNoSchedule(t *testing.T) {
	for _, tt := range []struct{ name, answer, want string }{
		{"null", `null`, "no current fork"},
		{"not an object", `[]`, "eth_config"},
		{"no current fork", `{"current":null}`, "no current fork"},
		{"no chain id", `{"current":{"activationTime":0,"precompiles":{}}}`, "chain id"},
		{"a fork before Cancun", `{"current":{` + blobs + `,"precompiles":{}}}`, "older than Cancun"},
		{"no blob schedule", `{"current":{"chainId":"0x1","precompiles":{` + osaka + `}}}`, "blob schedule"},
	} {
		if _, err := follow.ScheduleOf([]byte(tt.answer)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want an error with %q", tt.name, err, tt.want)
		}
	}
}
