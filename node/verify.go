// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"glimpse/archive"
	"glimpse/chain"
	"glimpse/merkle"
)

// VerifyConfig is what Verify needs. Log is required.
type VerifyConfig struct {
	Store    Store
	Log      *slog.Logger
	Progress func(VerifyProgress) // may be nil
}

// A Report is what Verify found in a sound store.
type Report struct {
	archive.Report

	// Root is the state root that the whole state of the head was shown to have,
	// zero where the store has no tries to show it with.
	Root chain.Hash

	// Content is over all that the store says about its chain, without what this
	// node keeps beside it: it is the same for a writer and its replicas.
	Content archive.Digest
}

// Verify checks a whole store: that it agrees with itself and, where it has
// state tries, that all state of the head together has the root in its header.
func Verify(ctx context.Context, c VerifyConfig) (Report, error) {
	db, err := c.Store.openReadOnly(c.Log)
	if err != nil {
		return Report{}, err
	}
	report, err := verify(ctx, c, db)
	return report, errors.Join(err, db.Close())
}

func verify(ctx context.Context, c VerifyConfig, db *archive.DB) (report Report, err error) {
	if report.Report, err = db.Check(ctx, c.Progress); err != nil {
		return Report{}, err
	}
	r, err := db.NewReader()
	if err != nil {
		return Report{}, err
	}
	defer r.Release()
	if report.Content, err = r.ContentDigest(ctx); err != nil {
		return Report{}, err
	}
	tries, err := merkle.Open(trieNodes{db}, 0)
	if err != nil {
		return Report{}, err
	}
	at, root, ok := tries.At()
	if !ok || at != r.Head() {
		c.Log.Info("no state tries of the head: its state root is not checked", "block", r.Head().Number)
		return report, nil
	}
	c.Log.Info("checking the state root", "block", at.Number)
	header, err := headerAt(r, at.Number)
	if err != nil {
		return Report{}, err
	}
	if root != header.Root {
		return Report{}, fmt.Errorf("%w: tries of block %s have root %s, want %s", chain.ErrCorrupt, at, root, header.Root)
	}
	report.Root = root
	return report, tries.Check(ctx, flat{r, at.Number})
}
