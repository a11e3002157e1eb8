// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"slices"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"glimpse/chain"
)

// A cursor is one Pebble iterator with room for the key it seeks. The key is
// here because a key on the stack would escape through the iterator and cost
// an allocation for each read.
//
// Values that a cursor returns are valid until its next seek.
type cursor struct {
	iter   *pebble.Iterator
	key    []byte
	places places // of placesOf, whose caller goes on to seek
}

// seekIn goes to the first key at or after c.key with the same stem. Every
// point read comes through here, and so does every error of one (P2).
func (c *cursor) seekIn() (found bool, err error) {
	if c.iter.SeekPrefixGE(c.key) {
		return true, nil
	}
	return false, storeError(c.iter.Error())
}

// value returns the value under the cursor.
func (c *cursor) value() ([]byte, error) {
	v, err := c.iter.ValueAndErr()
	return v, storeError(err)
}

// get returns the value of exactly c.key.
func (c *cursor) get() (value []byte, found bool, err error) {
	if found, err = c.seekIn(); !found || !bytes.Equal(c.iter.Key(), c.key) {
		return nil, false, err
	}
	value, err = c.value()
	return value, err == nil, err
}

// newest returns the version that c.key, a whole versioned key, falls to: the
// newest one at or before the block in the key.
func (c *cursor) newest() (block chain.Number, value []byte, found bool, err error) {
	if found, err = c.seekIn(); !found {
		return 0, nil, false, err
	}
	value, err = c.value()
	return versionOf(c.iter.Key()), value, err == nil, err
}

// account returns the newest version of an account at or before n.
func (c *cursor) account(a chain.Address, n chain.Number) (account chain.Account, found bool, err error) {
	c.key = appendAccountKey(c.key[:0], a, n)
	_, value, found, err := c.newest()
	if !found {
		return chain.Account{}, false, err
	}
	account, err = decodeAccount(value)
	return account, err == nil, err
}

// slot returns the newest version of a slot at or before n, wiped or not.
func (c *cursor) slot(a chain.Address, s chain.Slot, n chain.Number) (block chain.Number, v chain.Value, found bool, err error) {
	c.key = appendSlotKey(c.key[:0], a, s, n)
	block, value, found, err := c.newest()
	if !found {
		return 0, chain.Value{}, false, err
	}
	v, err = decodeSlotValue(value)
	return block, v, err == nil, err
}

// lastWipe returns the newest wipe of an address at or before n.
func (c *cursor) lastWipe(a chain.Address, n chain.Number) (block chain.Number, found bool, err error) {
	c.key = appendWipeKey(c.key[:0], a, n)
	block, _, found, err = c.newest()
	return block, found, err
}

// code returns a copy of a bytecode and the block that introduced it.
func (c *cursor) code(h chain.Hash) (first chain.Number, code []byte, found bool, err error) {
	c.key = appendHashKey(c.key[:0], spaceCode, h)
	value, found, err := c.get()
	if !found {
		return 0, nil, false, err
	}
	first, code, err = decodeCode(value)
	return first, slices.Clone(code), err == nil, err
}

// block returns a stored block, whose slices are valid until the next seek. It
// is asked only for blocks up to the head: one that is missing is damage.
func (c *cursor) block(n chain.Number) (storedBlock, error) {
	value, err := c.numbered(spaceBlock, n)
	if err != nil {
		return storedBlock{}, err
	}
	return decodeBlock(value)
}

// numbered returns what is stored for a block that has it: nothing is damage. It is
// good until the next seek.
func (c *cursor) numbered(space byte, n chain.Number) ([]byte, error) {
	c.key = appendNumberKey(c.key[:0], space, n)
	value, found, err := c.get()
	if err == nil && !found {
		err = missing(c.key)
	}
	return value, err
}

// cursorPoolSize bounds the idle cursors of a Reader. More reads than this at
// one instant still work; they open cursors and close them again.
const cursorPoolSize = 32

// A cursorPool keeps idle cursors. sync.Pool would drop them without closing
// them, and an iterator that is not closed pins its files for ever.
type cursorPool [cursorPoolSize]atomic.Pointer[cursor]

// take returns an idle cursor, or nil if there is none.
func (p *cursorPool) take() *cursor {
	for i := range p {
		if c := p[i].Load(); c != nil && p[i].CompareAndSwap(c, nil) {
			return c
		}
	}
	return nil
}

// put keeps c and reports whether there was room.
func (p *cursorPool) put(c *cursor) bool {
	for i := range p {
		if p[i].Load() == nil && p[i].CompareAndSwap(nil, c) {
			return true
		}
	}
	return false
}
