// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/archive"
	"glimpse/chain"
	"glimpse/ethapi"
	"glimpse/evm/opstack"
	"glimpse/flashblock/feed"
	"glimpse/follow"
	"glimpse/follow/origin"
	"glimpse/follow/upstream"
	"glimpse/head"
	"glimpse/pending"
)

// FollowConfig is what Follow needs. Log is required, and one upstream.
type FollowConfig struct {
	Service Service
	Store   Store
	Publish Publish

	Upstreams []string // URLs
	Feeds     []string // WebSocket URLs

	Chain  string // auto, a name, or a file
	Engine string // auto, execute, access-list or trace

	VerifyProofs bool // take no state without a proof
	Forward      bool // ask the upstream for methods that are not served here

	// PendingMaxAge is how long pre-confirmed state is good without another
	// flashblock; 0 means two blocks.
	PendingMaxAge time.Duration

	Log *slog.Logger
}

// Follow keeps a datadir in step with a chain that others have, and answers
// JSON-RPC from it, until ctx ends.
func Follow(ctx context.Context, c FollowConfig) error {
	if len(c.Upstreams) == 0 {
		return errors.New("no upstream given")
	}
	described, err := c.probe(ctx)
	if err != nil {
		return err
	}
	pool, err := upstream.Open(ctx, upstream.Options{
		URLs: c.Upstreams, ChainID: described.id, Genesis: described.genesis, PollEvery: max(described.blockTime/2, fastestPoll),
	})
	if err != nil {
		return err
	}
	defer pool.Close()
	db, err := c.Store.open(c.Log, 0)
	if err != nil {
		return err
	}
	return errors.Join(c.run(ctx, db, pool, described), db.Close())
}

// fastestPoll is how often an upstream is asked for its head at most.
const fastestPoll = 100 * time.Millisecond

// probe asks the upstreams which chain they have and what they can do. How often
// they are asked later depends on the answer.
func (c *FollowConfig) probe(ctx context.Context) (*followedChain, error) {
	pool, err := upstream.Open(ctx, upstream.Options{URLs: c.Upstreams})
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	for _, s := range pool.Status() {
		c.logUpstream(s)
	}
	return c.describe(pool)
}

// logUpstream says plainly what an upstream can do and what not.
func (c *FollowConfig) logUpstream(s upstream.Status) {
	if s.Can == nil {
		c.Log.Warn("upstream cannot be used now", "upstream", s.Name, "err", s.Error)
		return
	}
	depth := "all blocks"
	if s.Can.State != upstream.StateAll {
		depth = fmt.Sprintf("%d blocks", s.Can.State)
	}
	c.Log.Info("upstream", "name", s.Name, "client", s.Can.Client, "chain", s.Can.ChainID, "block", s.Latest.Number,
		"state", depth, "traces", s.Can.Traces(), "proofs", s.Can.Proofs, "receipts", s.Can.Receipts,
		"access-lists", s.Can.AccessLists, "subscriptions", s.Can.Subscriptions)
}

// A followNode is the parts of a node that follows a chain.
type followNode struct {
	config    *FollowConfig
	described *followedChain
	pool      *upstream.Pool
	origin    *origin.Origin
	past      *origin.Past
	ahead     *ahead
	feed      *feed.Client // nil without feeds

	published        head.Publisher
	service          *service
	preconfirmations *preconfirmations
	follower         *follow.Follower
}

func (c *FollowConfig) run(ctx context.Context, db *archive.DB, pool *upstream.Pool, described *followedChain) error {
	first, err := c.begin(ctx, db, pool, described)
	if err != nil {
		return err
	}
	n := &followNode{config: c, described: described, pool: pool}
	if n.service, err = newService(&c.Service, db, &n.published, n.expectations(), c.Log); err != nil {
		return err
	}
	if err := n.service.publishTo(&c.Publish, c.Store.Datadir, db); err != nil {
		return err
	}
	defer n.service.close()
	source := stateSource{pool, c.VerifyProofs}
	n.origin = origin.New(first, source, tellingKeeper{db, n.service.publishing}, origin.Options{})
	defer n.origin.Close()
	n.past = origin.NewPast(source, func() (chain.Ref, bool) { return finalized(db) }, origin.Options{})
	defer n.past.Close()
	n.published.Past = n.past.View
	if err := n.build(db, first); err != nil {
		return err
	}
	defer n.published.Close()
	defer n.preconfirmations.close()
	return n.run(ctx)
}

// begin makes an empty store one that begins at the upstream's newest block, and
// returns the first block of the store.
func (c *FollowConfig) begin(ctx context.Context, db *archive.DB, pool *upstream.Pool, described *followedChain) (chain.Ref, error) {
	id := archive.Identity{ChainID: pool.ChainID(), Genesis: pool.Genesis(), Config: described.config}
	if stored, ok := db.Identity(); ok {
		id.Config = stored.Config // what was known of the forks then may be less
	}
	latest, err := leading(pool)
	if err != nil {
		return chain.Ref{}, err
	}
	block, err := pool.BlockByHash(ctx, latest.Hash)
	if err != nil {
		return chain.Ref{}, fmt.Errorf("block %s: %w", latest, err)
	}
	header, err := rlp.EncodeToBytes(block.Header)
	if err != nil {
		return chain.Ref{}, err
	}
	err = db.InitAt(id, archive.Block{Ref: block.Ref, Parent: block.Header.ParentHash, Header: header})
	if err != nil {
		return chain.Ref{}, err
	}
	return read(db, func(r *archive.Reader) (chain.Ref, error) {
		n, _ := r.First()
		hash, err := r.Hash(n)
		return chain.Ref{Number: n, Hash: hash}, err
	})
}

func leading(pool *upstream.Pool) (chain.Ref, error) {
	for _, s := range pool.Status() {
		if s.Leads {
			return s.Latest, nil
		}
	}
	return chain.Ref{}, upstream.ErrUnavailable
}

func finalized(db *archive.DB) (ref chain.Ref, ok bool) {
	ref, err := read(db, func(r *archive.Reader) (chain.Ref, error) {
		ref, known := r.Finalized()
		ok = known
		return ref, nil
	})
	return ref, ok && err == nil
}

func (n *followNode) build(db *archive.DB, first chain.Ref) (err error) {
	c, how := n.config, through{n.origin}
	n.ahead = newAhead(db, n.origin, c.Log)
	producer, executor := n.engine(newAncestors(db, n.pool, first))
	n.preconfirmations, err = newPreconfirmations(db, how, executor, pending.Options{MaxAge: n.maxPendingAge()}, n.service)
	if err != nil {
		return err
	}
	n.follower = follow.New(follow.Options{
		Source: blockSource{n.pool}, Producer: producer, Listener: n,
		Store: &followStore{db: db, reading: how, first: first.Number},
	})
	if len(c.Feeds) > 0 {
		options := feed.ClientOptions{OnEvent: n.feedEvent}
		for _, url := range c.Feeds {
			options.Feeds = append(options.Feeds, feed.Endpoint{URL: url})
		}
		n.feed, err = feed.NewClient(options)
	}
	return err
}

// engine returns what finds out about sealed blocks, and about flashblocks.
func (n *followNode) engine(before *ancestors) (follow.Producer, pending.Executor) {
	switch n.described.engine {
	case follow.Trace:
		return tracing{n.pool, n.described.traceRules()}, listed{}
	case follow.AccessList:
		return listing{n.pool}, listed{}
	}
	if op := n.described.op; op != nil {
		return opExecuting{op, before, n.ahead}, opExecutor{op, n.ahead}
	}
	rules := n.described.rules
	return executing{rules, before, n.ahead}, executor{rules: rules, ahead: n.ahead}
}

func (n *followNode) maxPendingAge() time.Duration {
	if n.config.PendingMaxAge > 0 {
		return n.config.PendingMaxAge
	}
	return max(2*n.described.blockTime, time.Second)
}

func (n *followNode) expectations() expectations {
	e := expectations{blocks: max(5*n.described.blockTime, 30*time.Second)}
	if len(n.config.Feeds) > 0 {
		e.feed = max(n.maxPendingAge(), 10*time.Second)
	}
	return e
}

// run starts the parts; the first to end ends all.
func (n *followNode) run(ctx context.Context) error {
	endpoints, err := n.service.listen(ctx)
	if err != nil {
		return err
	}
	parts := []func(context.Context) error{
		func(ctx context.Context) error { return untilDone(ctx, n.pool.Run(ctx)) },
		n.follower.Run,
		n.preconfirmations.run,
		n.ahead.run,
	}
	if n.feed != nil {
		parts = append(parts,
			func(ctx context.Context) error { return untilDone(ctx, n.feed.Run(ctx)) },
			func(ctx context.Context) error { return untilDone(ctx, n.preconfirmations.receive(ctx, n.feed)) },
		)
	}
	api := ethapi.Config{
		ChainID: n.pool.ChainID(), Chain: n.described.ethereum(), EVM: n.caller(), Status: n.status, Partial: true,
	}
	if n.config.Forward {
		api.Forwarder = forwarder{n.pool}
	}
	return n.service.run(ctx, endpoints, api, parts...)
}

// caller executes calls, where the rules are known.
func (n *followNode) caller() ethapi.EVM {
	if n.described.rules == nil {
		return nil
	}
	return caller{n.described.rules}
}

var _ follow.Listener = (*followNode)(nil)

// Promised implements follow.Listener.
func (n *followNode) Promised(h *types.Header) (*follow.Block, *follow.Result, bool) {
	done, ok := n.preconfirmations.promised(h)
	if !ok {
		return nil, nil, false
	}
	b := &follow.Block{
		Ref: chain.Ref{Number: chain.Number(h.Number.Uint64()), Hash: h.Hash()}, Header: h,
		Transactions: make([]upstream.Transaction, len(done.Raw)), Withdrawals: done.Withdrawals,
	}
	if h.WithdrawalsHash != nil && b.Withdrawals == nil {
		b.Withdrawals = types.Withdrawals{} // no withdrawals are something else than no list of them
	}
	for i, raw := range done.Raw {
		b.Transactions[i] = upstream.Transaction{Raw: raw, Hash: done.Hashes[i]}
		if done.Transactions != nil {
			b.Transactions[i].Known = done.Transactions[i]
		}
	}
	return b, &follow.Result{Diff: done.Diff, Receipts: done.Receipts}, true
}

// Announce implements follow.Listener.
func (n *followNode) Announce(b *follow.Block, removed int) error {
	if removed > 0 {
		n.config.Log.Info("reorganisation", "removed", removed, "block", b.Number, "hash", b.Hash)
	}
	sealed := pending.SealedBlock{Hash: b.Hash, Header: b.Header, Withdrawals: b.Withdrawals}
	for _, tx := range b.Transactions {
		sealed.Transactions = append(sealed.Transactions, tx.Hash)
		sealed.PostExecution = tx.Raw[0] == opstack.PostExecutionType
	}
	n.ahead.after(b.Header)
	return n.preconfirmations.seal(&sealed, removed)
}

// status is what glimpse_status tells beside what is in the snapshot.
func (n *followNode) status() ethapi.NodeStatus {
	s := ethapi.NodeStatus{
		Source: "follow", Engine: string(n.described.engine), Retention: "all since the first block", Publish: n.service.publishing.status(),
	}
	for _, u := range n.pool.Status() {
		text := ""
		if u.Error != nil && !u.Healthy {
			text = u.Error.Error()
		}
		s.Upstreams = append(s.Upstreams, ethapi.UpstreamStatus{
			Name: u.Name, Leads: u.Leads, Healthy: u.Healthy, Latest: u.Latest.Number, Lag: u.Lag, Error: text,
		})
	}
	if n.feed != nil {
		f := n.feed.Stats()
		s.Feed = &ethapi.FeedStatus{Connected: f.Connected > 0, Last: f.LastMessage, MaxAge: n.maxPendingAge()}
	}
	return s
}

// Trouble implements follow.Listener.
func (n *followNode) Trouble(err error) {
	n.config.Log.Warn("not in step with the upstream", "err", err)
}

// feedEvent logs what happens to a feed.
func (n *followNode) feedEvent(e feed.Event) {
	n.config.Log.Info("feed of pre-confirmations", "what", e.What, "feed", e.Feed, "flashblock", e.Position, "count", e.Count, "err", e.Err)
}
