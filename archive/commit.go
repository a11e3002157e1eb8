// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/ethereum/go-ethereum/crypto"

	"glimpse/chain"
)

// A Block is what Commit stores. The archive keeps nothing of it after it
// returns.
type Block struct {
	chain.Ref
	Parent chain.Hash

	// Header and Body are the caller's encodings, and opaque here.
	Header, Body []byte

	// Transactions are the hashes of the block's transactions, in order. None
	// may be on the chain already. Receipts belong to them, and are opaque too.
	Transactions []chain.Hash
	Receipts     []byte

	// Diff is what the block changed, in canonical order. It is never nil.
	Diff *chain.Diff

	// Side is written together with the block.
	Side []SideWrite

	// Digest is what the digest after the block has to be, from somebody who has
	// the block already; zero means that nobody has.
	Digest Digest
}

// Init makes an empty store that of the chain id, with genesis as its block 0.
// On a store that has this genesis already it does nothing; on one that has
// another, or another chain id, the error wraps ErrGenesis and names both. It
// refuses a sparse store with ErrSparse.
func (db *DB) Init(id Identity, genesis Block) error {
	db.writing.Lock()
	defer db.writing.Unlock()
	if err := db.init(id, genesis); err != nil {
		return fmt.Errorf("init archive: %w", err)
	}
	return nil
}

func (db *DB) init(id Identity, genesis Block) error {
	if r := db.current.Load(); r != nil {
		if err := r.belongsTo(id); err != nil {
			return err
		}
		if r.heads.sparse {
			return ErrSparse
		}
		return nil
	}
	if err := db.writable(); err != nil {
		return err
	}
	if genesis.Number != 0 || genesis.Hash != id.Genesis {
		return fmt.Errorf("%w: genesis block %s, want 0 (%s)", ErrGenesis, genesis.Ref, id.Genesis)
	}
	if err := validate(genesis.Diff); err != nil {
		return err
	}
	if len(genesis.Transactions) > 0 {
		return fmt.Errorf("%w: genesis block with transactions", ErrGenesis)
	}
	if err := knowsCodes(genesis.Diff, func(chain.Hash) (bool, error) { return false, nil }); err != nil {
		return err
	}
	c := db.newChanges()
	defer c.close()
	h := heads{identity: id, head: genesis.Ref}
	c.set(metaKey(metaIdentity), appendIdentity(nil, id))
	h.digest = c.setBlock(&genesis, digestSeed(id))
	c.setHeads(h)
	for i := range genesis.Diff.Accounts {
		c.setGenesisAccount(&genesis.Diff.Accounts[i])
	}
	for _, code := range genesis.Diff.Codes {
		c.setCode(code, 0)
	}
	return db.apply(c, h, pebble.Sync)
}

// belongsTo refuses a store of another chain.
func (r *Reader) belongsTo(id Identity) error {
	if have := r.Identity(); have.Genesis != id.Genesis || have.ChainID != id.ChainID {
		return fmt.Errorf("%w: it has chain %d with genesis %s, want chain %d with genesis %s",
			ErrGenesis, have.ChainID, have.Genesis, id.ChainID, id.Genesis)
	}
	return nil
}

// setGenesisAccount leaves out what is absent: before genesis there is nothing
// that it would hide (A2).
func (c *changes) setGenesisAccount(a *chain.AccountDiff) {
	if a.Account.Exists {
		c.setAccount(a.Address, 0, &a.Account)
	}
	for _, s := range a.Slots {
		if s.Value != (chain.Value{}) {
			c.setSlot(a.Address, s.Slot, 0, s.Value)
		}
	}
}

// Commit adds the block that follows the head, all of it or nothing (P5), and
// returns when it is durable. The error wraps ErrParent where b does not
// follow, and ErrDigest where the store would have another digest than b says.
func (db *DB) Commit(b Block) error { return db.commit(&b, pebble.Sync) }

// CommitUnsynced is Commit without waiting for the disk, for sources that can
// give the block again after a crash.
func (db *DB) CommitUnsynced(b Block) error { return db.commit(&b, pebble.NoSync) }

func (db *DB) commit(b *Block, how *pebble.WriteOptions) error {
	db.writing.Lock()
	defer db.writing.Unlock()
	if err := db.commitLocked(b, how); err != nil {
		return fmt.Errorf("commit block %s: %w", b.Ref, err)
	}
	return nil
}

func (db *DB) commitLocked(b *Block, how *pebble.WriteOptions) error {
	r, c, err := db.begin()
	if err != nil {
		return err
	}
	defer c.close()
	h := r.heads
	if b.Parent != h.head.Hash || b.Number != h.head.Number+1 {
		return fmt.Errorf("%w: its parent is %s, the head %s", ErrParent, b.Parent, h.head)
	}
	if err := validate(b.Diff); err != nil {
		return err
	}
	err = r.read(func(cur *cursor) error {
		if err := c.addTransactions(cur, b); err != nil {
			return err
		}
		return db.addDiff(c, cur, b)
	})
	if err != nil {
		return err
	}
	h.head = b.Ref
	h.digest = c.setBlock(b, h.digest)
	if b.Digest != (Digest{}) && b.Digest != h.digest {
		return fmt.Errorf("%w: %s, want %s", ErrDigest, h.digest, b.Digest)
	}
	c.setHeads(h)
	db.known.writes(b.Diff, b.Number)
	return db.apply(c, h, how)
}

// setBlock adds what every block has, the first too, and returns its digest, which
// follows that of the block before (A7), or digestSeed.
func (c *changes) setBlock(b *Block, previous Digest) Digest {
	digest := newDigester(previous, b.Number)
	setNumbered := func(space byte, value []byte) {
		c.key = appendNumberKey(c.key[:0], space, b.Number)
		c.set(c.key, value)
	}
	block := appendBlock(nil, storedBlock{b.Hash, b.Parent, b.Header, b.Body})
	setNumbered(spaceBlock, block)
	digest.add(block)
	whole, journal := encodeJournal(b.Diff)
	c.value = packJournal(c.value[:0], journal, block)
	setNumbered(spaceJournal, c.value)
	digest.add(whole)
	c.value = appendReceipts(c.value[:0], b.Transactions, b.Receipts)
	setNumbered(spaceReceipt, c.value)
	digest.add(c.value)
	c.set(appendHashKey(nil, spaceHash, b.Hash), appendNumber(nil, b.Number))
	sum := digest.sum()
	c.setDigest(b.Number, sum)
	c.writeSide(b.Side)
	return sum
}

func (c *changes) setCode(code chain.Code, first chain.Number) {
	c.value = appendCode(c.value[:0], first, code.Bytes)
	c.set(appendHashKey(nil, spaceCode, code.Hash), c.value)
}

// addDiff adds the versions of one block. The cursor reads the store as its
// parent left it.
func (db *DB) addDiff(c *changes, cur *cursor, b *Block) error {
	if err := knowsCodes(b.Diff, cur.hasCode); err != nil {
		return err
	}
	for _, code := range b.Diff.Codes {
		if known, err := cur.hasCode(code.Hash); err != nil {
			return err
		} else if !known {
			c.setCode(code, b.Number)
		}
	}
	for i := range b.Diff.Accounts {
		if err := db.addAccount(c, cur, &b.Diff.Accounts[i], b.Number); err != nil {
			return err
		}
	}
	return nil
}

// knowsCodes refuses an account whose code neither the diff brings nor the
// store has: reading it later would look like damage.
func knowsCodes(d *chain.Diff, stored func(chain.Hash) (bool, error)) error {
	brought := make(map[chain.Hash]bool, len(d.Codes))
	for _, code := range d.Codes {
		brought[code.Hash] = true
	}
	for i := range d.Accounts {
		h := d.Accounts[i].Account.CodeHash
		if h == (chain.Hash{}) || brought[h] {
			continue
		}
		known, err := stored(h)
		if err != nil {
			return err
		}
		if !known {
			return fmt.Errorf("account %s: %w: %s", d.Accounts[i].Address, ErrNoCode, h)
		}
	}
	return nil
}

func (db *DB) addAccount(c *changes, cur *cursor, a *chain.AccountDiff, n chain.Number) error {
	if a.Changed {
		c.setAccount(a.Address, n, &a.Account)
	}
	for _, s := range a.Slots {
		c.setSlot(a.Address, s.Slot, n, s.Value)
	}
	if !a.Wiped {
		return nil
	}
	// Most accounts that are destroyed never had storage. A mark for each
	// would fill the filter and slow the reads of all others. A sparse store
	// cannot tell, and the mark is what makes unknown slots known.
	stored, err := c.sparse, error(nil)
	if !stored {
		stored, err = cur.hasSlots(a.Address)
	}
	if stored {
		db.wiped.add(a.Address)
		c.setWipe(a.Address, n)
	}
	return err
}

func (c *cursor) hasCode(h chain.Hash) (bool, error) {
	c.key = appendHashKey(c.key[:0], spaceCode, h)
	_, found, err := c.get()
	return found, err
}

// hasSlots reports whether any version of any slot of a is stored.
func (c *cursor) hasSlots(a chain.Address) (bool, error) {
	c.key = appendAccountStem(c.key[:0], spaceSlot, a)
	if !c.iter.SeekGE(c.key) {
		return false, storeError(c.iter.Error())
	}
	key := c.iter.Key()
	return key[0] == spaceSlot && len(key) >= accountStem && addressOf(key) == a, nil
}

// validate refuses a Diff that would not come back from the journal as it went
// in: chain.DecodeDiff accepts only the canonical form.
func validate(d *chain.Diff) error {
	if d == nil {
		return errors.New("block has no diff")
	}
	for i := range d.Accounts {
		a := &d.Accounts[i]
		if i > 0 && d.Accounts[i-1].Address.Cmp(a.Address) >= 0 {
			return fmt.Errorf("%w: accounts out of order at %s", chain.ErrDiff, a.Address)
		}
		if err := validateAccount(a); err != nil {
			return fmt.Errorf("%w: account %s %w", chain.ErrDiff, a.Address, err)
		}
	}
	for i, code := range d.Codes {
		if i > 0 && d.Codes[i-1].Hash.Cmp(code.Hash) >= 0 {
			return fmt.Errorf("%w: codes out of order at %s", chain.ErrDiff, code.Hash)
		}
		if len(code.Bytes) == 0 || crypto.Keccak256Hash(code.Bytes) != code.Hash {
			return fmt.Errorf("%w: code does not have hash %s", chain.ErrDiff, code.Hash)
		}
	}
	return nil
}

func validateAccount(a *chain.AccountDiff) error {
	if !a.Changed && a.Account != (chain.Account{}) {
		return errors.New("has values but is not marked as changed")
	}
	if !a.Account.Exists && a.Account != (chain.Account{}) {
		return errors.New("has values but does not exist")
	}
	if !a.Changed && !a.Wiped && len(a.Slots) == 0 {
		return errors.New("is without a change")
	}
	for i, s := range a.Slots {
		if i > 0 && a.Slots[i-1].Slot.Cmp(s.Slot) >= 0 {
			return fmt.Errorf("has slots out of order at %s", s.Slot)
		}
		if a.Wiped && s.Value == (chain.Value{}) {
			return fmt.Errorf("has the zero slot %s after a wipe", s.Slot)
		}
	}
	return nil
}
