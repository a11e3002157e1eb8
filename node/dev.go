// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/archive"
	"glimpse/devchain"
	"glimpse/ethapi"
	"glimpse/evm"
	"glimpse/flashblock/feed"
	"glimpse/head"
	"glimpse/merkle"
	"glimpse/pending"
)

// DevConfig is what Dev needs. Log and Out are required.
type DevConfig struct {
	Service Service
	Store   Store // in memory where it has no datadir
	Publish Publish
	Genesis string // file; empty means the built-in one

	// PendingMaxAge is how long pre-confirmed state is good without another
	// flashblock; 0 means two blocks.
	PendingMaxAge time.Duration

	BlockTime, FlashblockTime time.Duration
	SafeLag, FinalizedLag     uint64 // in blocks

	FeedAddr        string
	FeedPort        int
	FeedCompression string // none or brotli

	Log *slog.Logger
	Out io.Writer // for the banner and a line for each block
}

// Dev runs the embedded chain and answers JSON-RPC from it until ctx ends.
func Dev(ctx context.Context, c DevConfig) error {
	if c.FeedCompression != "none" && c.FeedCompression != "brotli" {
		return fmt.Errorf("feed compression %q: want none or brotli", c.FeedCompression)
	}
	genesis, err := c.genesis()
	if err != nil {
		return err
	}
	var remove func() error
	if c.Store, remove, err = c.Publish.place(c.Store); err != nil {
		return err
	}
	trieBytes := c.Store.bytes() / 4
	db, err := c.Store.open(c.Log, trieBytes)
	if err != nil {
		return errors.Join(err, remove())
	}
	return errors.Join(c.run(ctx, db, genesis, int(trieBytes)), db.Close(), remove())
}

func (c *DevConfig) genesis() (*evm.Genesis, error) {
	if c.Genesis == "" {
		return evm.ParseGenesis(devchain.Genesis())
	}
	text, err := os.ReadFile(c.Genesis)
	if err != nil {
		return nil, err
	}
	genesis, err := evm.ParseGenesis(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Genesis, err)
	}
	return genesis, nil
}

func (c *DevConfig) run(ctx context.Context, db *archive.DB, genesis *evm.Genesis, trieBytes int) error {
	if err := initialize(db, genesis, true); err != nil {
		return err
	}
	tries, err := openTries(db, trieBytes, c.Log)
	if err != nil {
		return err
	}
	d, err := c.build(db, tries, genesis.Rules)
	if err != nil {
		return err
	}
	defer d.close()
	return d.run(ctx)
}

// A devNode is the parts of a node with an embedded chain.
type devNode struct {
	config           *DevConfig
	rules            *evm.Rules
	service          *service
	published        head.Publisher
	preconfirmations *preconfirmations
	feed             *feed.Publisher
	sequencer        *devchain.Sequencer
	promised         knownTransactions
}

func (c *DevConfig) build(db *archive.DB, tries *merkle.State, rules *evm.Rules) (*devNode, error) {
	d := &devNode{config: c, rules: rules, feed: feed.NewPublisher(feed.Options{Brotli: c.FeedCompression == "brotli"})}
	var err error
	if d.service, err = newService(&c.Service, db, &d.published, c.expectations(), c.Log); err != nil {
		return nil, err
	}
	if err := d.service.publishTo(&c.Publish, c.Store.Datadir, db); err != nil {
		return nil, err
	}
	options := pending.Options{MaxAge: c.maxPendingAge()}
	if d.preconfirmations, err = newPreconfirmations(db, asItIs{}, executor{rules: rules, known: &d.promised}, options, d.service); err != nil {
		d.service.close()
		return nil, err
	}
	d.sequencer, err = devchain.New(devchain.Options{
		Rules: rules, Store: newDevStore(db, tries), Roots: tries,
		BlockTime: c.BlockTime, FlashblockTime: c.FlashblockTime,
		SafeLag: c.SafeLag, FinalizedLag: c.FinalizedLag, Listener: d,
	})
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *devNode) close() {
	d.preconfirmations.close()
	d.published.Close()
	d.service.close()
}

// maxPendingAge is after how much silence the feed is dead: two blocks, unless
// somebody knows better.
func (c *DevConfig) maxPendingAge() time.Duration {
	if c.PendingMaxAge > 0 {
		return c.PendingMaxAge
	}
	return max(2*c.BlockTime, time.Second)
}

// expectations are what a chain of this pace gives a reason for.
func (c *DevConfig) expectations() expectations {
	e := expectations{blocks: max(5*c.BlockTime, 10*time.Second)}
	if c.FlashblockTime > 0 {
		e.feed = c.maxPendingAge()
	}
	return e
}

// run starts the parts; the first to end ends all.
func (d *devNode) run(ctx context.Context) error {
	rpc, err := d.service.listen(ctx)
	if err != nil {
		return err
	}
	subscribers, err := listen(ctx, Endpoint{d.config.FeedAddr, d.config.FeedPort})
	if err != nil {
		return errors.Join(err, rpc.close())
	}
	d.banner(rpc, subscribers.Addr())
	sequencer := newDevSequencer(d.sequencer, types.LatestSigner(d.rules.Config()))
	// The chain begins when the node follows it: a feed that is joined in the
	// middle of a block says nothing until the next one.
	following := make(chan struct{})
	subscribed := sync.OnceFunc(func() { close(following) })
	return d.service.run(ctx, rpc,
		ethapi.Config{
			ChainID: d.rules.ChainID(), Chain: d.rules.Config(), EVM: caller{d.rules}, Status: d.status,
			Sequencer: sequencer, Dev: sequencer, Feed: d.feed,
		},
		func(ctx context.Context) error { return untilDone(ctx, d.feed.Run(ctx)) },
		func(ctx context.Context) error { return serveFeed(ctx, subscribers, d.feed) },
		func(ctx context.Context) error { return d.preconfirmations.follow(ctx, d.feed, subscribed) },
		d.preconfirmations.run,
		func(ctx context.Context) error {
			select {
			case <-following:
			case <-ctx.Done():
			}
			return d.sequencer.Run(ctx)
		},
	)
}

// status is what glimpse_status tells beside what is in the snapshot.
func (d *devNode) status() ethapi.NodeStatus {
	s := ethapi.NodeStatus{Source: "dev", Retention: "all", Publish: d.service.publishing.status()}
	if d.config.FlashblockTime > 0 {
		feed := d.service.health.Facts().Feed
		s.Feed = &ethapi.FeedStatus{Connected: true, Last: feed.Last, MaxAge: d.config.maxPendingAge()}
	}
	return s
}

// feedHeaderTimeout is how long a subscriber has to ask.
const feedHeaderTimeout = 10 * time.Second

// serveFeed lets WebSocket clients subscribe until ctx ends.
func serveFeed(ctx context.Context, l net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: feedHeaderTimeout}
	stop := context.AfterFunc(ctx, func() {
		_ = server.Close() // its connections belong to the feed by now
	})
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("feed: %w", err)
	}
	return nil
}

// DevGenesis returns the built-in genesis, in go-ethereum's format.
func DevGenesis() []byte { return devchain.Genesis() }
