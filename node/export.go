// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"glimpse/archive"
	"glimpse/importer"
)

// ExportConfig is what Export needs. Log is required.
type ExportConfig struct {
	Store Store
	File  string // is made, or written over
	Log   *slog.Logger
}

// Export writes all blocks of a store to a file that geth and Import read. A file
// whose writing did not succeed is removed.
func Export(ctx context.Context, c ExportConfig) error {
	db, err := c.Store.openReadOnly(c.Log)
	if err != nil {
		return err
	}
	return errors.Join(c.export(ctx, db), db.Close())
}

func (c *ExportConfig) export(ctx context.Context, db *archive.DB) error {
	r, err := db.NewReader()
	if err != nil {
		return err
	}
	defer r.Release()
	f, err := os.Create(c.File)
	if err != nil {
		return err
	}
	err = importer.WriteBlocks(ctx, f, r, 0, r.Head().Number)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(c.File))
	}
	c.Log.Info("exported", "blocks", r.Head().Number+1, "hash", r.Head().Hash, "file", c.File)
	return nil
}
