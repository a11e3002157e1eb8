// SPDX-License-Identifier: Apache-2.0

package devchain_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/devchain"
	"glimpse/evm"
)

// Whatever is sent, revoked and reorganised: every block is valid by the rules,
// with all roots, on a fresh store. The follower checks every flashblock on the
// way.
func TestRandomChainsAreValid(t *testing.T) {
	blocks := 300
	if testing.Short() {
		blocks = 60
	}
	for _, mode := range []struct {
		name                      string
		blockTime, flashblockTime time.Duration
	}{{"flashblocks", blockTime, flashblockTime}, {"only blocks", 200 * time.Millisecond, 0}} {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("%s, seed %d", mode.name, seed), func(t *testing.T) {
			sidecar := blobData(t, 0).Sidecar // its proofs are made outside of the bubble
			store := newStore(t, devchain.Genesis())
			change := func(o *devchain.Options) { o.BlockTime, o.FlashblockTime = mode.blockTime, mode.flashblockTime }
			run(t, store, change, func(w *world) {
				u := &user{world: w, random: rand.New(rand.NewPCG(seed, 0)), sidecar: sidecar}
				for len(store.blocks) <= blocks {
					u.act()
					if u.random.IntN(2) == 0 {
						w.pass(mode.blockTime / 7)
					}
				}
				t.Logf("%d sent, %d refused, %d revoked, %d reorgs", u.sent, u.refused, u.revoked, len(w.reorgs))
			})
			store.t = t
			checkChain(t, store)
			checkWithGoEthereum(t, store)
		})
	}
}

// checkChain executes a chain again, with every check there is.
func checkChain(t *testing.T, store *memStore) {
	t.Helper()
	fresh := newStore(t, devchain.Genesis())
	kinds := make(map[uint8]int)
	for _, stored := range store.blocks[1:] {
		parent := fresh.last()
		result, err := fresh.rules.Execute(stored.block, parent.block.Header(), parent.state, fresh.Hash, evm.Checks{Receipts: true, Roots: fresh})
		if err != nil {
			t.Fatalf("block %d: %v", stored.block.NumberU64(), err)
		}
		fresh.push(stored.block, result.Diff)
		for _, tx := range stored.block.Transactions() {
			kinds[tx.Type()]++
		}
	}
	t.Logf("%d blocks, transactions by type: %v", len(store.blocks)-1, kinds)
	if len(kinds) != 5 {
		t.Errorf("got types %v, want all five", kinds)
	}
}

// checkWithGoEthereum imports a chain into go-ethereum's own.
func checkWithGoEthereum(t *testing.T, store *memStore) {
	t.Helper()
	genesis := new(core.Genesis)
	if err := json.Unmarshal(devchain.Genesis(), genesis); err != nil {
		t.Fatal(err)
	}
	bc, err := core.NewBlockChain(rawdb.NewMemoryDatabase(), genesis, beacon.New(ethash.NewFaker()), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer bc.Stop()
	var blocks types.Blocks
	for _, stored := range store.blocks[1:] {
		blocks = append(blocks, stored.block)
	}
	if n, err := bc.InsertChain(blocks); err != nil {
		t.Errorf("go-ethereum refuses block %d: %v", n+1, err)
	}
}

// A user does random things to a chain.
type user struct {
	*world
	random    *rand.Rand
	sidecar   *types.BlobTxSidecar
	contracts []chain.Address
	last      chain.Hash // the last transaction that was sent

	sent, refused, revoked int
}

func (u *user) act() {
	ctx := u.t.Context()
	switch u.random.IntN(60) {
	case 0:
		depth := 1 + u.random.IntN(5)
		if _, err := u.Reorg(ctx, depth); err != nil && !errors.Is(err, devchain.ErrDepth) {
			u.t.Errorf("reorg: %v", err)
		}
	case 1:
		if _, err := u.Mine(ctx); err != nil {
			u.t.Errorf("mine: %v", err)
		}
	case 2, 3:
		switch err := u.Revoke(ctx, u.last); {
		case err == nil:
			u.revoked++
		case !errors.Is(err, devchain.ErrUnknownTransaction):
			u.t.Errorf("revoke: %v", err)
		}
	default:
		u.transact()
	}
}

func (u *user) transact() {
	from := u.random.IntN(len(accounts))
	nonce, err := u.NextNonce(u.t.Context(), accounts[from].Address)
	if err != nil {
		u.t.Fatal(err)
	}
	if u.random.IntN(10) == 0 {
		nonce += uint64(u.random.IntN(3)) // a gap, perhaps filled later
	}
	if u.random.IntN(20) == 0 && nonce > 0 {
		nonce-- // used, or a replacement
	}
	tx := u.transaction(from, nonce)
	refusal := new(devchain.Refusal)
	switch err := u.Send(u.t.Context(), tx); {
	case err == nil:
		u.sent++
		u.last = tx.Hash()
	case errors.As(err, &refusal):
		u.refused++
	default:
		u.t.Errorf("send: %v", err)
	}
}

func (u *user) transaction(from int, nonce uint64) *types.Transaction {
	someone := u.random.IntN(len(accounts))
	tip := int64(u.random.IntN(40))
	if len(u.contracts) == 0 {
		tx, addr := deployment(u.t, from, nonce)
		u.contracts = append(u.contracts, addr)
		return tx
	}
	contract := u.contracts[u.random.IntN(len(u.contracts))]
	if u.random.IntN(200) == 0 { // verifying a blob takes as long as a hundred others
		data := blobData(u.t, nonce)
		data.Sidecar = u.sidecar
		return sign(u.t, from, data)
	}
	switch u.random.IntN(7) {
	case 0:
		tx, addr := deployment(u.t, from, nonce)
		if len(u.contracts) < 20 {
			u.contracts = append(u.contracts, addr)
		}
		return tx
	case 1, 2, 3:
		return call(u.t, from, nonce, contract, storing(byte(u.random.IntN(6)), byte(u.random.IntN(3))))
	case 4:
		authNonce, err := u.NextNonce(u.t.Context(), accounts[someone].Address)
		if err != nil {
			u.t.Fatal(err)
		}
		if someone == from {
			authNonce++ // its own transaction uses one first
		}
		targets := []chain.Address{contract, {}}
		return delegation(u.t, from, nonce, someone, authNonce, targets[u.random.IntN(2)])
	case 5: // to an account that may have delegated, and runs a contract's code then
		return call(u.t, from, nonce, accounts[someone].Address, storing(1, byte(u.random.IntN(3))))
	}
	return transfer(u.t, from, someone, nonce, tip)
}
