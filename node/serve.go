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
)

// ServeConfig is what Serve needs. Log is required.
type ServeConfig struct {
	Service Service
	Store   Store
	Log     *slog.Logger
}

// Serve answers JSON-RPC from a datadir until ctx ends, then lets requests under
// way finish.
func Serve(ctx context.Context, c ServeConfig) error {
	db, err := c.Store.openReadOnly(c.Log)
	if err != nil {
		return err
	}
	return errors.Join(serve(ctx, c, db), db.Close())
}

func serve(ctx context.Context, c ServeConfig, db *archive.DB) error {
	reader, err := db.NewReader()
	if err != nil {
		return err
	}
	identity, latest, oldest := reader.Identity(), reader.Head(), reader.Oldest()
	var published head.Publisher
	published.Publish(state{reader}, nil, time.Time{})
	defer published.Close()
	rules, err := storedRules(identity)
	if err != nil {
		return err
	}
	c.Log.Info("archive opened", "chain", identity.ChainID, "block", latest.Number, "hash", latest.Hash, "oldest", oldest)

	// No blocks come, so none are expected.
	s, err := newService(&c.Service, db, &published, expectations{}, c.Log)
	if err != nil {
		return err
	}
	endpoints, err := s.listen(ctx)
	if err != nil {
		return err
	}
	return s.run(ctx, endpoints, ethapi.Config{
		ChainID: identity.ChainID, Chain: rules.Config(), EVM: caller{rules},
		Status: func() ethapi.NodeStatus { return ethapi.NodeStatus{Source: "archive"} },
	})
}
