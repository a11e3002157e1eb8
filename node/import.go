// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"glimpse/archive"
	"glimpse/chain"
	"glimpse/evm"
	"glimpse/importer"
	"glimpse/merkle"
)

// ImportConfig is what Import needs. Log is required.
type ImportConfig struct {
	Store   Store
	Genesis string // file; may be empty where the store has a chain already
	Files   []string
	Verify  string // root, receipts or off

	// Head is the block to end at, Safe and Finalized are what to call so: a
	// number, a hash, or nothing.
	Head, Safe, Finalized string

	// KeepBlocks and KeepTime are how much state to keep before the head. With
	// both zero everything is kept, with both set what either keeps.
	KeepBlocks uint64
	KeepTime   time.Duration

	Log      *slog.Logger
	Progress func(ImportProgress) // after every block; may be nil
}

// Import adds the blocks of files to a store and sets its heads.
func Import(ctx context.Context, c ImportConfig) error {
	p, err := c.plan()
	if err != nil {
		return err
	}
	db, err := c.Store.open(c.Log, p.trieBytes())
	if err != nil {
		return err
	}
	// Blocks are not synced one by one; Close syncs them all. A crash before
	// that loses only blocks that the files still have.
	return errors.Join(p.run(ctx, db), db.Close())
}

// An importPlan is an ImportConfig whose texts have been read.
type importPlan struct {
	ImportConfig
	genesis               *evm.Genesis // nil where no file was given
	verify                importer.Verify
	head, safe, finalized chain.Selector
}

func (c ImportConfig) plan() (p importPlan, err error) {
	p.ImportConfig = c
	if p.verify, err = importer.ParseVerify(c.Verify); err != nil {
		return p, err
	}
	for _, s := range []struct {
		what, text string
		into       *chain.Selector
	}{{"head", c.Head, &p.head}, {"safe", c.Safe, &p.safe}, {"finalized", c.Finalized, &p.finalized}} {
		if *s.into, err = parseBlock(s.text); err != nil {
			return p, fmt.Errorf("%s block %q: %w", s.what, s.text, err)
		}
	}
	if c.Genesis == "" {
		return p, nil
	}
	text, err := os.ReadFile(c.Genesis)
	if err != nil {
		return p, err
	}
	if p.genesis, err = evm.ParseGenesis(text); err != nil {
		return p, fmt.Errorf("%s: %w", c.Genesis, err)
	}
	return p, nil
}

// trieBytes is the part of the store's memory that holds trie nodes.
func (p *importPlan) trieBytes() int64 {
	if p.verify != importer.VerifyRoot {
		return 0
	}
	return p.Store.bytes() / 4
}

func (p *importPlan) run(ctx context.Context, db *archive.DB) error {
	rules, err := p.rules(db)
	if err != nil {
		return err
	}
	var tries *merkle.State
	if p.verify == importer.VerifyRoot {
		if tries, err = openTries(db, int(p.trieBytes()), p.Log); err != nil {
			return err
		}
	}
	before, err := db.Sizes()
	if err != nil {
		return err
	}
	if err := p.importBlocks(ctx, db, rules, tries); err != nil {
		return err
	}
	if err := p.setTags(db); err != nil {
		return err
	}
	if err := p.prune(db); err != nil {
		return err
	}
	return settleIfSmall(ctx, db, before.Disk)
}

// settleBelow is how big a store may be that is settled after an import. The
// nodes of tries are written again and again, and until Pebble has come to them
// the old ones are a tenth of a small store; of a big one they are little.
const settleBelow = 512 << 20

// settleIfSmall settles a store that the import has made at least twice as big,
// so that it costs a part of the import and not of the store.
func settleIfSmall(ctx context.Context, db *archive.DB, before uint64) error {
	now, err := db.Sizes()
	if err != nil || now.Disk > settleBelow || now.Disk < 2*before {
		return err
	}
	return db.Settle(ctx)
}

// rules returns those of the store's chain, which the genesis file starts or
// must agree with.
func (p *importPlan) rules(db *archive.DB) (*evm.Rules, error) {
	if p.genesis != nil {
		return p.genesis.Rules, initialize(db, p.genesis, p.verify == importer.VerifyRoot)
	}
	id, ok := db.Identity()
	if !ok {
		return nil, errors.New("a new datadir needs a genesis file")
	}
	return storedRules(id)
}

// storedRules returns the rules of a store's chain.
func storedRules(id archive.Identity) (*evm.Rules, error) {
	config, err := evm.ParseConfig(id.Config)
	if err != nil {
		return nil, fmt.Errorf("stored chain config: %w", err)
	}
	return evm.NewRules(config)
}

// importBlocks brings the store to the wanted head, forwards from the files or
// backwards by taking blocks off.
func (p *importPlan) importBlocks(ctx context.Context, db *archive.DB, rules *evm.Rules, tries *merkle.State) error {
	there, n, err := p.headIsStored(db)
	if err != nil {
		return err
	}
	if there {
		return unwind(db, tries, n)
	}
	target := &importTarget{db: db, tries: tries}
	options := importer.Options{Verify: p.verify, Head: p.head, Progress: p.Progress}
	if tries != nil {
		options.Roots = tries
	}
	return importer.Run(ctx, target, rules, p.Files, options)
}

// headIsStored reports whether the store has the wanted head already, and its
// height.
func (p *importPlan) headIsStored(db *archive.DB) (there bool, n chain.Number, err error) {
	if p.head == (chain.Selector{}) {
		return false, 0, nil
	}
	n, err = read(db, func(r *archive.Reader) (chain.Number, error) { return locate(r, p.head) })
	var miss *chain.Miss
	if errors.As(err, &miss) {
		return false, 0, nil // the files may have it
	}
	return err == nil, n, err
}

func (p *importPlan) setTags(db *archive.DB) error {
	r, err := db.NewReader()
	if err != nil {
		return err
	}
	defer r.Release()
	safe, err := tagRef(r, p.safe, r.Safe)
	if err != nil {
		return fmt.Errorf("safe block %s: %w", p.safe, err)
	}
	finalized, err := tagRef(r, p.finalized, r.Finalized)
	if err != nil {
		return fmt.Errorf("finalized block %s: %w", p.finalized, err)
	}
	return db.SetTags(safe, finalized)
}

// tagRef returns the block that was asked for, or the one there was.
func tagRef(r *archive.Reader, sel chain.Selector, present func() (chain.Ref, bool)) (*chain.Ref, error) {
	if sel == (chain.Selector{}) {
		if ref, ok := present(); ok {
			return &ref, nil
		}
		return nil, nil
	}
	n, err := locate(r, sel)
	if err != nil {
		return nil, err
	}
	hash, err := r.Hash(n)
	return &chain.Ref{Number: n, Hash: hash}, err
}

// An importTarget is the importer's view of the archive.
type importTarget struct {
	db    *archive.DB
	tries *merkle.State // nil where roots are not verified
}

func (t *importTarget) Head() (importer.Head, error) {
	r, err := t.db.NewReader()
	if err != nil {
		return importer.Head{}, err
	}
	view, err := r.At(r.Head().Number)
	if err != nil {
		r.Release()
		return importer.Head{}, err
	}
	return importer.Head{Ref: r.Head(), View: view, Release: r.Release}, nil
}

func (t *importTarget) Hash(n chain.Number) (chain.Hash, error) {
	return read(t.db, func(r *archive.Reader) (chain.Hash, error) { return r.Hash(n) })
}

func (t *importTarget) Header(n chain.Number) ([]byte, error) {
	return read(t.db, func(r *archive.Reader) ([]byte, error) { return r.Header(n) })
}

func (t *importTarget) Commit(b importer.Block) error {
	var side []archive.SideWrite
	if t.tries != nil {
		side = sideWrites(t.tries.Commit(b.Ref))
	}
	return t.db.CommitUnsynced(archiveBlock(b, side))
}

// read runs one read on the store as it is now.
func read[T any](db *archive.DB, f func(*archive.Reader) (T, error)) (v T, err error) {
	r, err := db.NewReader()
	if err != nil {
		return v, err
	}
	defer r.Release()
	return f(r)
}
