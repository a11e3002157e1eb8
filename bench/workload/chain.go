// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"

	"github.com/ethereum/go-ethereum/common"

	"glimpse/internal/chaingen"
)

// A Chain is a generated chain with the values of all slots at all blocks. It
// does not change, so any number of readers may share it.
type Chain struct {
	Description
	Dir       string
	contracts []contract
}

type contract struct {
	address common.Address
	keys    []common.Hash // in the order in which they were first set
	history map[common.Hash]History
}

// A Version is a value that a slot has from a block on.
type Version struct {
	Block uint32
	Value common.Hash
}

// A History is all versions of a slot, oldest first.
type History []Version

// Open reads a chain that Generate made.
func Open(dir string) (*Chain, error) {
	d, err := describe(dir)
	if err != nil {
		return nil, fmt.Errorf("open chain: %w", err)
	}
	c := &Chain{Description: d, Dir: dir, contracts: make([]contract, d.Shape.Contracts)}
	for i := range c.contracts {
		c.contracts[i] = contract{address: chaingen.StorageContract(i), history: make(map[common.Hash]History)}
	}
	if err := c.readWrites(filepath.Join(dir, writesFile)); err != nil {
		return nil, fmt.Errorf("open chain: %w", err)
	}
	return c, nil
}

func (c *Chain) readWrites(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for in := bufio.NewReader(f); ; {
		var r [record]byte
		if _, err := io.ReadFull(in, r[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", writesFile, err)
		}
		n := binary.BigEndian.Uint32(r[4:])
		if int(n) >= len(c.contracts) {
			return fmt.Errorf("%s: there is no contract %d", writesFile, n)
		}
		c.contracts[n].add(common.Hash(r[8:40]), Version{binary.BigEndian.Uint32(r[:]), common.Hash(r[40:])})
	}
}

func (c *contract) add(slot common.Hash, v Version) {
	versions, known := c.history[slot]
	if !known {
		c.keys = append(c.keys, slot)
	}
	if last := len(versions) - 1; last >= 0 && versions[last].Block == v.Block {
		versions[last] = v // set twice in one block
		return
	}
	c.history[slot] = append(versions, v)
}

// Head is the number of the newest block.
func (c *Chain) Head() uint64 { return uint64(c.Shape.Blocks) }

// Value returns the value of a slot after a block, zero before it was first set.
func (c *Chain) Value(contract int, slot common.Hash, block uint64) common.Hash {
	return c.contracts[contract].history[slot].At(block)
}

// At returns the value after a block, zero before the first version.
func (h History) At(block uint64) common.Hash {
	i := sort.Search(len(h), func(i int) bool { return uint64(h[i].Block) > block })
	if i == 0 {
		return common.Hash{}
	}
	return h[i-1].Value
}

// Contracts returns the number of the contract at each address.
func (c *Chain) Contracts() map[common.Address]int {
	numbers := make(map[common.Address]int, len(c.contracts))
	for i := range c.contracts {
		numbers[c.contracts[i].address] = i
	}
	return numbers
}

// Slots calls f for every slot that is ever set. The history is shared.
func (c *Chain) Slots(f func(common.Address, common.Hash, History)) {
	for i := range c.contracts {
		for _, slot := range c.contracts[i].keys {
			f(c.contracts[i].address, slot, c.contracts[i].history[slot])
		}
	}
}
