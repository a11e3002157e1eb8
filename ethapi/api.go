// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/params"

	"glimpse/chain"
	"glimpse/jsonrpc"
)

// A Snapshot is what one request is answered from. It never changes.
type Snapshot interface {
	// Stamp is the name of the snapshot, for the header of the response (P7). It
	// is good for ever.
	Stamp() []byte

	Latest() chain.Ref
	Oldest() chain.Number // the lowest block with state

	// Safe and Finalized report false while no such block is known.
	Safe() (chain.Ref, bool)
	Finalized() (chain.Ref, bool)

	// View returns the state of a block, Locate its height. Where there is no
	// such block they return a *chain.Miss, or chain.ErrNoTag for a tag that no
	// block has yet.
	View(chain.Selector) (chain.View, error)
	Locate(chain.Selector) (chain.Number, error)

	// Hash returns the hash of a block that Locate found, Header and Body its RLP.
	Hash(chain.Number) (chain.Hash, error)
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

	Histories
	Release()
}

// Histories are how state changed, and what there is of it. Where there is no
// state of a block they return a *chain.Miss.
type Histories interface {
	// Diff returns what a sealed block changed, PendingDiff all that is
	// pre-confirmed on the latest one; false where nothing is.
	Diff(chain.Number) (*chain.Diff, error)
	PendingDiff() (*chain.Diff, bool)

	// SlotHistory and CodeHistory return up to limit values from one sealed
	// block to another, oldest first. The first is the one in force at from, and
	// each other one differs from the one before it. More says that there are
	// later ones, which a call from the block of the last continues with.
	SlotHistory(a chain.Address, k chain.Slot, from, to chain.Number, limit int) (versions []chain.SlotVersion, more bool, err error)
	CodeHistory(a chain.Address, from, to chain.Number, limit int) (versions []chain.CodeVersion, more bool, err error)

	// Slots returns up to limit slots that are not zero, in order, beginning
	// after the slot after where that is not nil.
	Slots(sel chain.Selector, a chain.Address, after *chain.Slot, limit int) (slots []chain.SlotDiff, more bool, err error)
}

// Config is what an API is made from. Of its first part all is required but the
// EVM, without which nothing can be executed.
type Config struct {
	ChainID uint64
	Chain   *params.ChainConfig // not modified
	EVM     EVM
	Version string // what web3_clientVersion answers
	Acquire func() Snapshot
	Log     *slog.Logger // of failures whose cause callers are not told

	// AcquireAtLeast is Acquire of a snapshot that has reached progress, or a
	// *chain.Miss when ctx ends before there is one. Nil means that nobody waits:
	// a caller that wants a newer snapshot than the current is told not-yet.
	AcquireAtLeast func(ctx context.Context, progress chain.Progress) (Snapshot, error)
	MaxWait        time.Duration // for a request; 0 means 5 s, less that nobody waits
	MaxWaiting     int           // requests at once; 0 means 1024, and those over it do not wait

	// Status tells what glimpse_status says beside what is in the snapshot. Nil
	// is a node of which nothing more is known.
	Status func() NodeStatus

	// Observer counts calls; nil means that nobody does. Calls that take Slow or
	// longer are logged; 0 means none.
	Observer Observer
	Slow     time.Duration

	Timeout  time.Duration // of all calls of a request; 0 means 30 s
	MaxCalls int           // that execute or search at once; 0 means all cores but one

	// Partial says that there are blocks, bodies and transactions of the chain
	// that are not here: what is not found is then not known to be absent.
	Partial bool

	// Forwarder is asked for methods that are not served here, and where Partial
	// for what is not found; nil means that nobody is.
	Forwarder Forwarder

	// Without these their methods do not exist.
	Sequencer Sequencer
	Dev       Dev
	Feed      Feed // of Dev
}

// An API is the jsonrpc.Handler of the node.
type API struct {
	config   Config
	methods  map[string]*namedMethod
	unknown  *namedMethod                 // for all that do not exist; it cannot be run
	sentOn   *namedMethod                 // for all that the Forwarder is asked for
	calls    chan struct{}                // holds one for each costly call that runs
	queued   atomic.Int64                 // costly calls that wait for their turn
	tip      atomic.Pointer[suggestedTip] // of the last head it was asked for
	sessions sync.Pool
	waiting  atomic.Int64 // requests that wait for a snapshot
}

// New returns an API.
func New(c Config) *API {
	c = c.withDefaults()
	a := &API{config: c, methods: make(map[string]*namedMethod), calls: make(chan struct{}, c.MaxCalls)}
	a.unknown = &namedMethod{name: "unknown", observer: c.Observer.Method("")}
	a.sentOn = &namedMethod{name: "forwarded", run: forward, observer: c.Observer.Method("forwarded")}
	a.add(reading)
	if c.EVM == nil {
		for name := range executing {
			delete(a.methods, name)
		}
	}
	if c.Sequencer != nil {
		a.add(sequencing)
	}
	if c.Dev != nil {
		a.add(misbehaving)
	}
	a.sessions.New = func() any { return &session{api: a} }
	return a
}

func (c Config) withDefaults() Config {
	c.MaxWait = cmp.Or(c.MaxWait, 5*time.Second)
	c.MaxWaiting = cmp.Or(c.MaxWaiting, 1024)
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.MaxCalls = cmp.Or(c.MaxCalls, defaultCalls())
	if c.Observer == nil {
		c.Observer = blind{}
	}
	return c
}

func (a *API) add(methods map[string]method) {
	for name, run := range methods {
		a.methods[name] = &namedMethod{name: name, run: run, observer: a.config.Observer.Method(name)}
	}
}

// Waiting returns how many requests wait for a snapshot.
func (a *API) Waiting() int { return int(a.waiting.Load()) }

// A method appends its result to dst.
type method func(s *session, dst []byte, args *arguments) ([]byte, error)

// A namedMethod is a method and who counts its calls.
type namedMethod struct {
	name     string
	run      method
	observer CallObserver
}

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
	"glimpse_getStorageHistory":               bounded(getStorageHistory),
	"glimpse_getCodeHistory":                  bounded(getCodeHistory),
	"glimpse_listStorage":                     bounded(listStorage),
	"glimpse_getStateDiff":                    bounded(getStateDiff),
	"glimpse_status":                          status,
	"debug_getRawHeader":                      getRawHeader,
	"debug_getRawBlock":                       getRawBlock,
	"debug_getRawReceipts":                    getRawReceipts,
	"debug_getRawTransaction":                 getRawTransaction,
}

// executing are those that need an EVM.
var executing = map[string]bool{"eth_call": true, "eth_estimateGas": true, "eth_createAccessList": true, "eth_config": true}

// Has implements jsonrpc.Handler.
func (a *API) Has(name []byte) bool {
	return a.methods[string(name)] != nil || a.config.Forwarder != nil && forwarded(name)
}

// Begin implements jsonrpc.Handler: it takes the snapshot that the whole
// request is answered from, and waits for it where the header asks for that. Its
// time begins when it has it.
func (a *API) Begin(ctx context.Context, header jsonrpc.Header) jsonrpc.Session {
	s := a.sessions.Get().(*session)
	s.Snapshot, s.fault = a.acquire(ctx, header)
	s.clock = time.Now()
	s.yielded = s.clock
	s.deadline = s.clock.Add(a.config.Timeout)
	return s
}

// A session answers one request.
type session struct {
	Snapshot // nil where fault says that there is none
	api      *API
	fault    error           // why no call of this request can be answered
	clock    time.Time       // when the call under way began
	yielded  time.Time       // when other requests could last go first
	deadline time.Time       // of the request
	ctx      context.Context // of the call under way
	sentOn   []byte          // the method that the Forwarder is asked for
	args     arguments       // here and not in Call, where passing its address on would allocate it
}

// Call implements jsonrpc.Session.
func (s *session) Call(ctx context.Context, dst []byte, name []byte, params jsonrpc.Values) ([]byte, *jsonrpc.Error) {
	m := s.api.methods[string(name)]
	s.ctx, s.args = ctx, arguments{rest: params}
	if m == nil && s.api.config.Forwarder != nil && forwarded(name) {
		m, s.sentOn = s.api.sentOn, name
	}
	if m == nil {
		failed := jsonrpc.MethodNotFound(name)
		s.observe(s.api.unknown, failed)
		return dst, failed
	}
	out, err := s.run(m, dst)
	if err != nil && s.api.config.Forwarder != nil && isElsewhere(err) && forwarded(name) {
		s.sentOn, s.args.rest = name, params
		out, err = forward(s, dst, &s.args)
	}
	if err != nil {
		failed := s.api.wireError(m.name, err)
		s.observe(m, failed)
		return dst, failed
	}
	s.observe(m, nil)
	return out, nil
}

// run answers a call, unless none of the request can be answered any more.
func (s *session) run(m *namedMethod, dst []byte) ([]byte, error) {
	switch {
	case s.fault != nil:
		return nil, s.fault
	case !s.clock.Before(s.deadline):
		return nil, errLate
	}
	return m.run(s, dst, &s.args)
}

// End implements jsonrpc.Session.
func (s *session) End() {
	if s.Snapshot != nil {
		s.Release()
	}
	*s = session{api: s.api}
	s.api.sessions.Put(s)
}
