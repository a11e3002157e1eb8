// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"context"
	"log/slog"
	"sync"

	"glimpse/chain"
	"glimpse/jsonrpc"
)

// A Snapshot is what one request is answered from. It never changes.
type Snapshot interface {
	Latest() chain.Ref
	Oldest() chain.Number // the lowest block with state

	// View returns the state of a block, Locate its height. Where there is no
	// such block they return a *chain.Miss, or chain.ErrNoTag for a tag that no
	// block has yet.
	View(chain.Selector) (chain.View, error)
	Locate(chain.Selector) (chain.Number, error)

	// Header and Body return the RLP of a block that Locate found.
	Header(chain.Number) ([]byte, error)
	Body(chain.Number) ([]byte, error)

	Release()
}

// Config is what an API is made from. All of it is required.
type Config struct {
	ChainID uint64
	Version string // what web3_clientVersion answers
	Acquire func() Snapshot
	Log     *slog.Logger // of failures whose cause callers are not told
}

// An API is the jsonrpc.Handler of the node.
type API struct {
	config   Config
	sessions sync.Pool
}

// New returns an API.
func New(c Config) *API {
	a := &API{config: c}
	a.sessions.New = func() any { return &session{api: a} }
	return a
}

// A method appends its result to dst.
type method func(s *session, dst []byte, args *arguments) ([]byte, error)

var methods = map[string]method{
	"eth_getStorageAt":        getStorageAt,
	"eth_getCode":             getCode,
	"eth_getStorageValues":    getStorageValues,
	"eth_getBalance":          getBalance,
	"eth_getTransactionCount": getTransactionCount,
	"eth_getBlockByNumber":    getBlockByNumber,
	"eth_getBlockByHash":      getBlockByHash,
	"eth_blockNumber":         blockNumber,
	"eth_chainId":             chainID,
	"eth_syncing":             syncing,
	"eth_capabilities":        capabilities,
	"net_version":             netVersion,
	"web3_clientVersion":      clientVersion,
}

// Has implements jsonrpc.Handler.
func (a *API) Has(name []byte) bool { return methods[string(name)] != nil }

// Begin implements jsonrpc.Handler: it takes the snapshot that the whole
// request is answered from.
func (a *API) Begin(context.Context, jsonrpc.Header) jsonrpc.Session {
	s := a.sessions.Get().(*session)
	s.Snapshot = a.config.Acquire()
	return s
}

// A session answers one request.
type session struct {
	Snapshot
	api  *API
	args arguments // here and not in Call, where passing its address on would allocate it
}

// Call implements jsonrpc.Session.
func (s *session) Call(_ context.Context, dst []byte, name []byte, params jsonrpc.Values) ([]byte, *jsonrpc.Error) {
	run := methods[string(name)]
	if run == nil {
		return dst, jsonrpc.MethodNotFound(name)
	}
	s.args = arguments{rest: params}
	out, err := run(s, dst, &s.args)
	if err != nil {
		return dst, s.api.wireError(string(name), err)
	}
	return out, nil
}

// End implements jsonrpc.Session.
func (s *session) End() {
	s.Release()
	s.Snapshot, s.args = nil, arguments{}
	s.api.sessions.Put(s)
}
