// SPDX-License-Identifier: Apache-2.0

package evm_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"glimpse/evm"
)

func TestParseGenesis(t *testing.T) {
	const rest = `"difficulty":"0x0","gasLimit":"0x1000000"`
	tests := []struct {
		name, text  string
		unsupported bool
		ok          bool
	}{
		{name: "the least there is", text: `{"config":{"chainId":5},"alloc":{},` + rest + `}`, ok: true},
		{name: "an empty account", text: `{"config":{"chainId":5},"alloc":{"00000000000000000000000000000000000000aa":{"balance":"0x0"}},` + rest + `}`, ok: true},
		{name: "an unknown key that is no fork", text: `{"config":{"chainId":5,"eip150Hash":"0x00"},"alloc":{},` + rest + `}`, ok: true},
		{name: "a fork of the future", text: `{"config":{"chainId":5,"marsTime":7},"alloc":{},` + rest + `}`, unsupported: true},
		{name: "a fork of the future, never", text: `{"config":{"chainId":5,"marsTime":null},"alloc":{},` + rest + `}`, ok: true},
		{name: "clique", text: `{"config":{"chainId":5,"clique":{"period":1}},"alloc":{},` + rest + `}`, unsupported: true},
		{name: "a chain id that is too large", text: `{"config":{"chainId":100000000000000000000},"alloc":{},` + rest + `}`, unsupported: true},
		{name: "no chain id", text: `{"config":{},"alloc":{},` + rest + `}`, unsupported: true},
		{name: "no config", text: `{"alloc":{},` + rest + `}`},
		{name: "forks out of order", text: `{"config":{"chainId":5,"homesteadBlock":9,"eip150Block":3},"alloc":{},` + rest + `}`},
		{name: "a number", text: `{"config":{"chainId":5},"number":"0x5","alloc":{},` + rest + `}`},
		{name: "a balance that is too large", text: `{"config":{"chainId":5},"alloc":{"00000000000000000000000000000000000000aa":{"balance":"0x1` + string(bytes.Repeat([]byte("0"), 64)) + `"}},` + rest + `}`},
		{name: "no alloc", text: `{"config":{"chainId":5},` + rest + `}`},
		{name: "not JSON", text: `genesis`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g, err := evm.ParseGenesis([]byte(tt.text))
			if (err == nil) != tt.ok || (g != nil) != tt.ok {
				t.Errorf("got %v, want success to be %v", err, tt.ok)
			}
			if errors.Is(err, evm.ErrUnsupported) != tt.unsupported {
				t.Errorf("got %v, want ErrUnsupported to be %v", err, tt.unsupported)
			}
		})
	}
}

// What is stored of a genesis gives the same rules again.
func TestConfigSurvivesStoring(t *testing.T) {
	for _, c := range chains(t) {
		t.Run(c.name, func(t *testing.T) {
			g, err := evm.ParseGenesis(c.genesis)
			if err != nil {
				t.Fatal(err)
			}
			config, err := evm.ParseConfig(g.Config)
			if err != nil {
				t.Fatal(err)
			}
			again, err := json.Marshal(config)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(again, g.Config) {
				t.Errorf("got %s, want %s", again, g.Config)
			}
			if g.Block.Hash() != c.blocks[0].ParentHash() {
				t.Errorf("got genesis %s, want %s", g.Block.Hash(), c.blocks[0].ParentHash())
			}
		})
	}
}
