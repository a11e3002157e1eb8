// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/params"

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

	// Receipts returns the RLP list of a block's receipts, in the form of
	// types.ReceiptForStorage. Transaction returns which sealed block has a
	// transaction and its place there; ok is false where none has it.
	Receipts(chain.Number) ([]byte, error)
	Transaction(chain.Hash) (n chain.Number, index int, ok bool, err error)

	// Pending returns the newest pre-confirmed block, of which View(chain.Pending)
	// is the state; false where nothing is pre-confirmed. PendingTransaction
	// returns the one that has a transaction, and its index there.
	Pending() (*chain.Preconfirmed, bool)
	PendingTransaction(chain.Hash) (block *chain.Preconfirmed, index int, ok bool)

	Release()
}

// Config is what an API is made from. All of it is required but Sequencer, Dev
// and Feed, without which their methods do not exist.
type Config struct {
	ChainID uint64
	Chain   *params.ChainConfig // not modified
	EVM     EVM
	Version string // what web3_clientVersion answers
	Acquire func() Snapshot
	Log     *slog.Logger // of failures whose cause callers are not told

	Sequencer Sequencer
	Dev       Dev
	Feed      Feed // of Dev
}

// An API is the jsonrpc.Handler of the node.
type API struct {
	config   Config
	methods  map[string]method
	tip      atomic.Pointer[suggestedTip] // of the last head it was asked for
	sessions sync.Pool
}

// New returns an API.
func New(c Config) *API {
	a := &API{config: c, methods: maps.Clone(reading)}
	if c.Sequencer != nil {
		maps.Copy(a.methods, sequencing)
	}
	if c.Dev != nil {
		maps.Copy(a.methods, misbehaving)
	}
	a.sessions.New = func() any { return &session{api: a} }
	return a
}

// A method appends its result to dst.
type method func(s *session, dst []byte, args *arguments) ([]byte, error)

// reading are the methods that every API has.
var reading = map[string]method{
	"eth_getStorageAt":                        getStorageAt,
	"eth_getCode":                             getCode,
	"eth_getStorageValues":                    getStorageValues,
	"eth_getBalance":                          getBalance,
	"eth_getTransactionCount":                 getTransactionCount,
	"eth_getBlockByNumber":                    getBlockByNumber,
	"eth_getBlockByHash":                      getBlockByHash,
	"eth_getBlockReceipts":                    getBlockReceipts,
	"eth_getBlockTransactionCountByNumber":    getBlockTransactionCountByNumber,
	"eth_getBlockTransactionCountByHash":      getBlockTransactionCountByHash,
	"eth_getTransactionByHash":                getTransactionByHash,
	"eth_getTransactionReceipt":               getTransactionReceipt,
	"eth_getTransactionByBlockNumberAndIndex": getTransactionByBlockNumberAndIndex,
	"eth_getTransactionByBlockHashAndIndex":   getTransactionByBlockHashAndIndex,
	"eth_getLogs":                             getLogs,
	"eth_call":                                call,
	"eth_estimateGas":                         estimateGas,
	"eth_createAccessList":                    createAccessList,
	"eth_gasPrice":                            gasPrice,
	"eth_maxPriorityFeePerGas":                maxPriorityFeePerGas,
	"eth_feeHistory":                          feeHistory,
	"eth_baseFee":                             baseFee,
	"eth_blobBaseFee":                         blobBaseFee,
	"eth_config":                              forkConfig,
	"eth_blockNumber":                         blockNumber,
	"eth_chainId":                             chainID,
	"eth_syncing":                             syncing,
	"eth_capabilities":                        capabilities,
	"net_version":                             netVersion,
	"web3_clientVersion":                      clientVersion,
}

// Has implements jsonrpc.Handler.
func (a *API) Has(name []byte) bool { return a.methods[string(name)] != nil }

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
	ctx  context.Context // of the call under way
	args arguments       // here and not in Call, where passing its address on would allocate it
}

// Call implements jsonrpc.Session.
func (s *session) Call(ctx context.Context, dst []byte, name []byte, params jsonrpc.Values) ([]byte, *jsonrpc.Error) {
	run := s.api.methods[string(name)]
	if run == nil {
		return dst, jsonrpc.MethodNotFound(name)
	}
	s.ctx, s.args = ctx, arguments{rest: params}
	out, err := run(s, dst, &s.args)
	if err != nil {
		return dst, s.api.wireError(string(name), err)
	}
	return out, nil
}

// End implements jsonrpc.Session.
func (s *session) End() {
	s.Release()
	s.Snapshot, s.ctx, s.args = nil, nil, arguments{}
	s.api.sessions.Put(s)
}
