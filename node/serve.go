// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"

	"glimpse/archive"
	"glimpse/ethapi"
	"glimpse/head"
	"glimpse/jsonrpc"
)

// ServeConfig is what Serve needs. Log is required.
type ServeConfig struct {
	Store    Store
	HTTPAddr string
	HTTPPort int // 0 takes a free one, which the log tells
	Log      *slog.Logger
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
	rules, err := storedRules(reader.Identity())
	if err != nil {
		reader.Release()
		return err
	}
	var published head.Publisher
	published.Publish(state{reader}, nil)
	defer published.Close()

	latest, oldest := reader.Head(), reader.Oldest()
	c.Log.Info("archive opened", "chain", reader.Identity().ChainID,
		"block", latest.Number, "hash", latest.Hash, "oldest", oldest)

	listener, err := listen(ctx, c.HTTPAddr, c.HTTPPort)
	if err != nil {
		return err
	}
	server := newServer(ethapi.Config{
		ChainID: reader.Identity().ChainID,
		Chain:   rules.Config(),
		EVM:     caller{rules},
		Version: ClientVersion(),
		Acquire: func() ethapi.Snapshot { return published.Acquire() },
		Log:     c.Log,
	})
	c.Log.Info("json-rpc listening", "addr", listener.Addr().String())
	err = server.Serve(ctx, listener)
	c.Log.Info("json-rpc stopped")
	return err
}

func listen(ctx context.Context, addr string, port int) (net.Listener, error) {
	address := net.JoinHostPort(addr, strconv.Itoa(port))
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return l, nil
}

func newServer(c ethapi.Config) *jsonrpc.Server {
	return jsonrpc.NewServer(ethapi.New(c), jsonrpc.Options{
		OnPanic: func(value any, stack []byte) {
			c.Log.Error("panic in a method", "value", value, "stack", string(stack))
		},
	})
}
