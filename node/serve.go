// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"glimpse/archive"
	"glimpse/ethapi"
	"glimpse/head"
	"glimpse/replica"
)

// ServeConfig is what Serve needs. Log is required.
type ServeConfig struct {
	Service Service
	Store   Store
	Publish Publish
	Log     *slog.Logger
}

// Serve answers JSON-RPC from a datadir until ctx ends, then lets requests under
// way finish.
func Serve(ctx context.Context, c ServeConfig) error {
	db, err := c.open()
	if err != nil {
		return err
	}
	return errors.Join(serve(ctx, c, db), db.Close())
}

// open opens the store. A copy for replicas can only be made of one that is open for
// writing.
func (c *ServeConfig) open() (*archive.DB, error) {
	db, err := c.Store.openReadOnly(c.Log)
	if err != nil || c.Publish.To == "" {
		return db, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return c.Store.open(c.Log, 0)
}

func serve(ctx context.Context, c ServeConfig, db *archive.DB) error {
	var published head.Publisher
	// No blocks come, so none are expected.
	s, err := newService(&c.Service, db, &published, expectations{}, c.Log)
	if err != nil {
		return err
	}
	if err := s.publishTo(&c.Publish, c.Store.Datadir, db); err != nil {
		return err
	}
	defer s.close()
	reader, err := db.NewReader()
	if err != nil {
		return err
	}
	identity, latest, oldest := reader.Identity(), reader.Head(), reader.Oldest()
	s.publishing.show(reader, nil, time.Time{}, replica.NotWithdrawn)
	published.Publish(state{reader}, nil, time.Time{})
	defer published.Close()
	rules, err := storedRules(identity)
	if err != nil {
		return err
	}
	c.Log.Info("archive opened", "chain", identity.ChainID, "block", latest.Number, "hash", latest.Hash, "oldest", oldest)

	endpoints, err := s.listen(ctx)
	if err != nil {
		return err
	}
	return s.run(ctx, endpoints, ethapi.Config{
		ChainID: identity.ChainID, Chain: rules.Config(), EVM: caller{rules},
		Status: func() ethapi.NodeStatus {
			return ethapi.NodeStatus{Source: "archive", Publish: s.publishing.status()}
		},
	})
}
