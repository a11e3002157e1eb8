// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"

	"glimpse/archive"
	"glimpse/chain"
	"glimpse/evm"
	"glimpse/importer"
	"glimpse/merkle"
)

// initialize makes an empty store that of the genesis, with state tries where
// asked for. A store that has this genesis is left as it is.
func initialize(db *archive.DB, g *evm.Genesis, withTries bool) error {
	stored, err := importer.NewBlock(g.Block, nil, g.Diff)
	if err != nil {
		return err
	}
	var side []archive.SideWrite
	if withTries {
		if side, err = genesisTries(g, stored.Ref); err != nil {
			return err
		}
	}
	id := archive.Identity{ChainID: g.Rules.ChainID(), Genesis: stored.Hash, Config: g.Config}
	return db.Init(id, archiveBlock(stored, side))
}

// genesisTries also checks that the flat state, which is what gets stored, has
// the root that the block has.
func genesisTries(g *evm.Genesis, ref chain.Ref) ([]archive.SideWrite, error) {
	tries, err := merkle.Open(noNodes{}, 0)
	if err != nil {
		return nil, err
	}
	root, err := tries.Apply(g.Diff)
	if err != nil {
		return nil, err
	}
	if want := g.Block.Root(); root != want {
		return nil, fmt.Errorf("genesis state has root %s, want %s", root, want)
	}
	return sideWrites(tries.Commit(ref)), nil
}

// noNodes is the store of tries before there is one.
type noNodes struct{}

func (noNodes) Side([]byte) (value []byte, ok bool, err error) { return nil, false, nil }

func archiveBlock(b importer.Block, side []archive.SideWrite) archive.Block {
	return archive.Block{
		Ref: b.Ref, Parent: b.Parent, Header: b.Header, Body: b.Body,
		Transactions: b.Transactions, Receipts: b.Receipts, Diff: b.Diff, Side: side,
	}
}
