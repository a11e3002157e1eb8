// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"glimpse/chain"
)

// A Report is what Check found in a sound store.
type Report struct {
	Head   chain.Ref
	Oldest chain.Number

	Slots        uint64 // versions of slots
	Accounts     uint64 // versions of accounts
	Wipes        uint64
	Codes        uint64
	Blocks       uint64
	Digests      uint64 // blocks with their digest
	Journals     uint64
	Receipts     uint64 // blocks with their receipts
	Transactions uint64
	Orphans      uint64 // hashes of blocks that were unwound
	Side         uint64 // keys of side data
	Origins      uint64 // slots and accounts kept of the first block of a sparse store

	// Digest is over all content but orphans, tags, digests, and in a sparse
	// store bytecode and what was kept of the first block, which depends on what
	// was asked for. Stores that were given the same blocks and side data, and
	// pruned at the same heads, have the same one, however often they were
	// closed, killed or unwound in between.
	Digest [sha256.Size]byte
}

// A Progress says how far a Check is.
type Progress struct {
	Keys uint64 // looked at so far
	At   string // the key it has reached, in words
}

// progressKeys is how many keys pass between two reports of progress.
const progressKeys = 1 << 16

// Check reads the whole store as it is now and verifies that it agrees with
// itself: every key is known, versions and journals match both ways,
// transactions and the blocks they are in do too, blocks link from the first to
// the head, digests are those of the blocks, every code is there and has its
// hash, and nothing is above the head or below what pruning should have left
// (A1, A2, A7). It streams
// through the store in bounded memory and takes no notice of later writes.
//
// The first disagreement is the error. It wraps chain.ErrCorrupt and names the
// key and what was expected. Progress, if not nil, is called now and then.
func (db *DB) Check(ctx context.Context, progress func(Progress)) (Report, error) {
	r, err := db.NewReader()
	if err != nil {
		return Report{}, fmt.Errorf("check archive: %w", err)
	}
	defer r.Release()
	k := &checker{r: r, heads: r.heads, digest: contentDigest{sha256.New()}}
	err = r.read(func(c *cursor) error {
		k.cursor = c
		return k.run(ctx, progress)
	})
	if err != nil {
		return Report{}, fmt.Errorf("check archive: %w", err)
	}
	k.digest.hash.Sum(k.report.Digest[:0])
	return k.report, nil
}

// A checker goes once through all keys in order and looks others up as it
// needs them.
//
// For versions and journals to agree both ways it is enough that each journal
// entry has its version and that there are as many of one as of the other:
// entries have distinct keys.
type checker struct {
	r      *Reader
	heads  heads
	cursor *cursor // for lookups beside the scan
	digest contentDigest
	report Report
	keys   uint64

	versions uint64 // above oldest, so that a journal must list them
	listed   uint64 // by journals above oldest

	mined uint64 // transactions that blocks list

	stem      []byte     // of the last versioned key
	settled   bool       // a version of stem at or below oldest was seen
	lastBlock chain.Hash // hash of the last block seen
}

func (k *checker) run(ctx context.Context, progress func(Progress)) error {
	err := k.each(nil, []byte{0xff}, func(key, value []byte) error {
		if k.keys%progressKeys == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if progress != nil {
				progress(Progress{k.keys, formatKey(key)})
			}
		}
		k.keys++
		return k.key(key, value)
	})
	if err != nil {
		return err
	}
	return k.end()
}

func (k *checker) each(lower, upper []byte, use func(key, value []byte) error) (err error) {
	iter, err := k.r.scan(lower, upper)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, storeError(iter.Close())) }()
	for ok := iter.First(); ok; ok = iter.Next() {
		value, err := iter.ValueAndErr()
		if err != nil {
			return storeError(err)
		}
		if err := use(iter.Key(), value); err != nil {
			return err
		}
	}
	return nil
}

func (k *checker) key(key, value []byte) error {
	if !wellFormed(key) {
		return corrupt(key, "not a key of this format")
	}
	var err error
	switch key[0] {
	case spaceSlot:
		err = k.slot(key, value)
	case spaceAccount:
		err = k.account(key, value)
	case spaceWipe:
		err = k.wipe(key, value)
	case spaceCode:
		err = k.code(key, value)
	case spaceBlock:
		err = k.block(key, value)
	case spaceDigest:
		return k.inDigests(key)
	case spaceJournal:
		value, err = k.journal(key, value)
	case spaceHash:
		return k.hash(key, value)
	case spaceReceipt:
		err = k.receipts(key, value)
	case spaceTx:
		err = k.transaction(key, value)
	case spaceMeta:
		return k.meta(key, value)
	case spaceOrigin:
		return k.origin(key, value)
	case spaceSide:
		k.report.Side++
	}
	if err == nil && !(k.heads.sparse && key[0] == spaceCode) {
		k.digest.add(key, value)
	}
	return err
}

// end checks what only the whole shows.
func (k *checker) end() error {
	head := k.heads.head
	stored := uint64(head.Number-k.heads.first) + 1
	if want := stored; k.report.Blocks != want {
		return fmt.Errorf("%w: %d blocks, want %d up to the head", chain.ErrCorrupt, k.report.Blocks, want)
	}
	if k.lastBlock != head.Hash {
		return corrupt(metaKey(metaHead), "head is %s, want the last block's hash %s", head, k.lastBlock)
	}
	if want := uint64(head.Number-k.heads.oldest) + 1; k.report.Journals != want {
		return fmt.Errorf("%w: %d journals, want %d from oldest to head", chain.ErrCorrupt, k.report.Journals, want)
	}
	if want := stored; k.report.Receipts != want {
		return fmt.Errorf("%w: receipts of %d blocks, want %d up to the head", chain.ErrCorrupt, k.report.Receipts, want)
	}
	if k.versions != k.listed {
		return k.findUnlisted()
	}
	if k.report.Transactions != k.mined {
		return k.findUnmined()
	}
	if err := k.digests(); err != nil {
		return err
	}
	k.report.Head, k.report.Oldest = head, k.heads.oldest
	return nil
}
