// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	_ "embed" // for exampleGenesis
	"errors"
	"fmt"

	"glimpse/evm"
)

// exampleGenesis is a chain of one block with ten funded accounts and, at
// 0x5fbd…0aa3, a contract that returns its slot 0, which holds 42.
//
//go:embed example.json
var exampleGenesis []byte

// ServeExample is Serve from a small chain that is made in memory, for trying
// glimpse out. A datadir in c is not used.
func ServeExample(ctx context.Context, c ServeConfig) error {
	c.Store.Datadir = ""
	db, err := c.Store.open(c.Log, 0)
	if err != nil {
		return err
	}
	genesis, err := evm.ParseGenesis(exampleGenesis)
	if err == nil {
		err = initialize(db, genesis, false)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("example chain: %w", err), db.Close())
	}
	return errors.Join(serve(ctx, c, db), db.Close())
}
