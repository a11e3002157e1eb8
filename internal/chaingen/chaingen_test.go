// SPDX-License-Identifier: Apache-2.0

package chaingen_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/rawdb"

	"glimpse/internal/chaingen"
)

var schedules = map[string]chaingen.Forks{
	"Modern": chaingen.Modern, "Newest": chaingen.Newest, "Amsterdam": chaingen.Amsterdam, "Historic": chaingen.Historic,
}

func TestGoEthereumAcceptsTheChain(t *testing.T) {
	for name, forks := range schedules {
		t.Run(name, func(t *testing.T) {
			text, blocks := chaingen.Generate(1, 96, chaingen.Options{Forks: forks})
			genesis := new(core.Genesis)
			if err := json.Unmarshal(text, genesis); err != nil {
				t.Fatal(err)
			}
			bc, err := core.NewBlockChain(rawdb.NewMemoryDatabase(), genesis, beacon.New(ethash.NewFaker()), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer bc.Stop()
			if n, err := bc.InsertChain(blocks); err != nil {
				t.Fatalf("block %d: %v", n+1, err)
			}
			kinds := make(map[uint8]int)
			failed := 0
			for _, b := range blocks {
				for _, tx := range b.Transactions() {
					kinds[tx.Type()]++
				}
				for _, r := range bc.GetReceiptsByHash(b.Hash()) {
					if r.Status == 0 && len(r.PostState) == 0 {
						failed++
					}
				}
			}
			t.Logf("transactions by type: %v, failed: %d", kinds, failed)
		})
	}
}

func TestSameSeedSameChain(t *testing.T) {
	genesis1, blocks1 := chaingen.Generate(2, 10, chaingen.Options{})
	genesis2, blocks2 := chaingen.Generate(2, 10, chaingen.Options{})
	_, other := chaingen.Generate(3, 10, chaingen.Options{})
	if !bytes.Equal(genesis1, genesis2) || blocks1[9].Hash() != blocks2[9].Hash() {
		t.Error("got two chains of one seed, want the same")
	}
	if blocks1[9].Hash() == other[9].Hash() {
		t.Error("got one chain of two seeds, want different ones")
	}
}
