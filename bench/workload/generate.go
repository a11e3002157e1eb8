// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/internal/chaingen"
)

// A Description is what a chain was made from and what became of it.
type Description struct {
	Seed  uint64
	Shape chaingen.StorageOptions

	Transactions, Gas uint64
	Versions          int // of slots: each counts once for each block that sets it
	Hottest           int // versions of the slot that has most
}

// Files of a chain in its directory.
const (
	genesisFile     = "genesis.json"
	blocksFile      = "chain.rlp"
	writesFile      = "writes.bin"
	descriptionFile = "chain.json" // the last to be written: with it, all are complete
)

// Genesis is the path of the genesis file of a chain in a directory.
func Genesis(dir string) string { return filepath.Join(dir, genesisFile) }

// Blocks is the path of the RLP blocks of a chain in a directory.
func Blocks(dir string) string { return filepath.Join(dir, blocksFile) }

// Generate makes a chain in a directory that exists, unless the same one is
// there already, and reports whether it did. An end of ctx ends it.
func Generate(ctx context.Context, dir string, seed uint64, shape chaingen.StorageOptions) (made bool, err error) {
	if d, err := describe(dir); err == nil && d.Seed == seed && d.Shape == shape {
		return false, nil
	}
	f := &files{ctx: ctx, description: Description{Seed: seed, Shape: shape}, versions: make(map[slotID]int)}
	if err := f.open(dir); err != nil {
		return false, err
	}
	genesis, err := chaingen.GenerateStorage(seed, shape, f.add)
	if err != nil {
		f.abandon()
		return false, fmt.Errorf("generate chain: %w", err)
	}
	if err := f.close(); err != nil {
		return false, fmt.Errorf("generate chain: %w", err)
	}
	if err := os.WriteFile(Genesis(dir), genesis, 0o600); err != nil {
		return false, err
	}
	text, err := json.MarshalIndent(f.description, "", "\t")
	if err != nil {
		return false, fmt.Errorf("describe chain: %w", err)
	}
	return true, os.WriteFile(filepath.Join(dir, descriptionFile), text, 0o600)
}

func describe(dir string) (d Description, err error) {
	text, err := os.ReadFile(filepath.Join(dir, descriptionFile))
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return d, fmt.Errorf("%s: %w", descriptionFile, err)
	}
	return d, nil
}

// slotID is a slot of one of the contracts.
type slotID struct {
	contract int
	slot     [32]byte
}

// files are those of a chain while they are written.
type files struct {
	ctx            context.Context // looked at before each block
	description    Description
	versions       map[slotID]int
	blocks, writes *os.File
	toBlocks       *bufio.Writer
	toWrites       *bufio.Writer
}

func (f *files) open(dir string) (err error) {
	if err := os.Remove(filepath.Join(dir, descriptionFile)); err != nil && !os.IsNotExist(err) {
		return err
	}
	if f.blocks, err = os.Create(Blocks(dir)); err != nil {
		return err
	}
	if f.writes, err = os.Create(filepath.Join(dir, writesFile)); err != nil {
		f.blocks.Close()
		return err
	}
	f.toBlocks, f.toWrites = bufio.NewWriter(f.blocks), bufio.NewWriter(f.writes)
	return nil
}

// record is how many bytes a write takes: block, contract, slot and value.
const record = 4 + 4 + 32 + 32

func (f *files) add(b *types.Block, writes []chaingen.Write) error {
	if f.ctx.Err() != nil {
		return context.Cause(f.ctx)
	}
	d := &f.description
	d.Transactions += uint64(len(b.Transactions()))
	d.Gas += b.GasUsed()
	set := make(map[slotID]bool)
	for _, w := range writes {
		id := slotID{w.Contract, w.Slot}
		if !set[id] {
			set[id] = true
			f.versions[id]++
			d.Versions++
			d.Hottest = max(d.Hottest, f.versions[id])
		}
		var r [record]byte
		binary.BigEndian.PutUint32(r[:], uint32(w.Block))
		binary.BigEndian.PutUint32(r[4:], uint32(w.Contract))
		copy(r[8:], w.Slot[:])
		copy(r[40:], w.Value[:])
		if _, err := f.toWrites.Write(r[:]); err != nil {
			return err
		}
	}
	return b.EncodeRLP(f.toBlocks)
}

func (f *files) close() error {
	for _, w := range []*bufio.Writer{f.toBlocks, f.toWrites} {
		if err := w.Flush(); err != nil {
			f.abandon()
			return err
		}
	}
	if err := f.blocks.Close(); err != nil {
		f.writes.Close()
		return err
	}
	return f.writes.Close()
}

// abandon closes files whose content does not matter any more.
func (f *files) abandon() {
	f.blocks.Close()
	f.writes.Close()
}
