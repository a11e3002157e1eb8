// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/params"

	"glimpse/archive"
	"glimpse/chain"
	"glimpse/ethapi"
	"glimpse/evm/opstack"
	"glimpse/follow"
	"glimpse/follow/origin"
	"glimpse/head"
	"glimpse/replica"
	"glimpse/replica/snapshot"
	"glimpse/replica/stream"
)

// ReplicaConfig is what Replica needs. Log and NATS are required.
type ReplicaConfig struct {
	Service Service
	Store   Store // its datadir holds the stores of a replica

	NATS        string // URLs with commas between
	Credentials string // file; empty for none
	Authorities string // file of certificates; empty for those that the machine trusts
	Stream      string // name; empty means glimpse

	// Writer is the URL of the writer's JSON-RPC, which transactions are sent on
	// to and which state is read through from that the store does not know; empty
	// for none.
	Writer string

	// MaxLag is how long the replica may be behind, or without an answer of NATS,
	// before it is unready; 0 means 5 s. MaxSilence is how long it may hear nothing
	// of the writer while NATS answers; 0 is for any time.
	MaxLag     time.Duration
	MaxSilence time.Duration

	Log *slog.Logger
}

const defaultMaxLag = 5 * time.Second

// Replica keeps a datadir in step with a writer's by what it publishes, and answers
// JSON-RPC from it, until ctx ends.
func Replica(ctx context.Context, c ReplicaConfig) (err error) {
	if c.NATS == "" {
		return errors.New("no NATS server given")
	}
	if c.Store.Datadir == "" {
		return errors.New("no datadir given")
	}
	if c.MaxLag == 0 {
		c.MaxLag = defaultMaxLag
	}
	n := &replicaNode{config: &c, dir: replicaDir(c.Store.Datadir), settings: stream.Settings{Name: c.Stream}, retired: make(chan *replicaStore, 4)}
	if err := n.settings.Validate(); err != nil {
		return err
	}
	if n.conn, err = (stream.Link{URLs: c.NATS, Credentials: c.Credentials, Authorities: c.Authorities}).Connect("glimpse replica"); err != nil {
		return err
	}
	defer n.conn.Close()
	defer func() { err = errors.Join(err, n.closeStores()) }()
	return n.observed(ctx, n.run)
}

// observed calls run while the operations port is open: there is something to see of
// a replica long before it can answer.
func (n *replicaNode) observed(ctx context.Context, run func(context.Context) error) (err error) {
	n.service, err = newService(&n.config.Service, nil, &n.published, expectations{replica: n.facts}, n.config.Log)
	if err != nil {
		return err
	}
	n.service.tailing = n.numbers
	var e endpoints
	if err := n.config.Service.Ops.listen(ctx, &e.ops); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := n.service.serveOps(e.ops, cancel)
	return errors.Join(run(ctx), stop())
}

// A replicaNode is the parts of a replica.
type replicaNode struct {
	config   *ReplicaConfig
	settings stream.Settings
	conn     *stream.Conn
	dir      replicaDir
	chain    replica.Identity // zero before the first store
	writer   *writerLink      // nil where no writer is given

	published head.Publisher
	service   *service

	// Of the goroutine that follows the stream.
	fed   *replicaStore // what events are applied to
	shown *replicaStore // what readers see; another one while a store is built anew

	retired    chan *replicaStore // stores to be deleted; what finds it full is deleted at the next start
	tail       atomic.Pointer[stream.Tail]
	current    atomic.Pointer[replicaStore]      // fed, for all goroutines; nil before the first
	fetching   atomic.Pointer[snapshot.Progress] // of a download; nil while there is none
	answered   atomic.Pointer[time.Time]         // when NATS last answered beside the tail; nil before
	rebuilding atomic.Bool
	rebuilds   atomic.Uint64

	mu   sync.Mutex
	open map[*replicaStore]bool // guarded by mu
}

func (n *replicaNode) name() string {
	if n.settings.Name == "" {
		return "glimpse"
	}
	return n.settings.Name
}

// begin opens the newest store there is, or makes one of a snapshot, and shows it:
// it answers from there while it catches up, and says that it is not ready. Before
// that nobody can connect: there is nothing that could be answered.
func (n *replicaNode) begin(ctx context.Context) error {
	if n.config.Writer != "" {
		n.writer = newWriterLink(n.config.Writer, n.config.Log)
	}
	s, err := n.first(ctx)
	if err != nil {
		return err
	}
	id, ok := s.db.Identity()
	if !ok {
		return archive.ErrEmpty
	}
	n.chain = identityOf(id)
	r, err := s.db.NewReader()
	if err != nil {
		return err
	}
	n.config.Log.Info("archive opened", "dir", s.dir, "chain", id.ChainID, "block", r.Head().Number, "hash", r.Head().Hash, "oldest", r.Oldest())
	s.show(r, nil, time.Time{})
	n.service.stored.Store(s.db)
	n.fed, n.shown = s, s
	n.current.Store(s)
	n.rebuilding.Store(false)
	return nil
}

// first returns the store to begin with. One that cannot be opened is for a person
// to look at.
func (n *replicaNode) first(ctx context.Context) (*replicaStore, error) {
	path, ok, err := n.dir.newest()
	if err != nil {
		return nil, err
	}
	if ok {
		return n.openStore(path)
	}
	// A port that is taken is told before the download, and not after it.
	e, err := n.service.listenForRequests(ctx)
	if err == nil {
		err = e.close()
	}
	if err != nil {
		return nil, err
	}
	n.rebuilding.Store(true)
	return n.fetch(ctx, 0)
}

// openStore opens a store, which closeStores closes at the latest.
func (n *replicaNode) openStore(dir string) (*replicaStore, error) {
	at := n.config.Store
	at.Datadir = dir
	db, err := at.open(n.config.Log, 0)
	if err != nil {
		return nil, err
	}
	s := &replicaStore{node: n, db: db, dir: dir, reading: asItIs{}}
	first, sparse, err := firstBlock(db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if sparse && n.writer != nil {
		s.origin = origin.New(first, n.writer, db, origin.Options{})
		s.reading = through{s.origin}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open == nil {
		n.open = make(map[*replicaStore]bool)
	}
	n.open[s] = true
	return s, nil
}

func firstBlock(db *archive.DB) (first chain.Ref, sparse bool, err error) {
	first, err = read(db, func(r *archive.Reader) (ref chain.Ref, err error) {
		ref.Number, sparse = r.First()
		ref.Hash, err = r.Hash(ref.Number)
		return ref, err
	})
	return first, sparse, err
}

// run answers and follows until ctx ends.
func (n *replicaNode) run(ctx context.Context) error {
	if err := n.begin(ctx); err != nil {
		return untilDone(ctx, err)
	}
	defer n.release()
	id, _ := n.shown.db.Identity() // begin saw that it has one
	_, sparse, err := firstBlock(n.shown.db)
	if err != nil {
		return err
	}
	endpoints, err := n.service.listenForRequests(ctx)
	if err != nil {
		return err
	}
	api := ethapi.Config{ChainID: id.ChainID, Status: n.status, Partial: sparse}
	api.Chain, api.EVM = rulesForCalls(id)
	parts := []func(context.Context) error{n.follow, n.deleteRetired, n.report}
	if n.writer != nil {
		api.Forwarder = sender{n.writer, sparse}
		parts = append(parts, n.writer.run)
	}
	return n.service.run(ctx, endpoints, api, parts...)
}

// rulesForCalls returns the rules of a chain as far as they are known here; without
// them nothing is executed.
func rulesForCalls(id archive.Identity) (*params.ChainConfig, ethapi.EVM) {
	if d, ok := follow.Known("", id.ChainID); ok && d.OP != nil {
		if rules, err := opstack.NewRules(*d.OP); err == nil {
			return rules.Calls().Config(), caller{rules.Calls()}
		}
	}
	rules, err := storedRules(id)
	if err != nil || rules.ChainID() != id.ChainID {
		return params.MergedTestChainConfig, nil
	}
	return rules.Config(), caller{rules}
}

// follow applies what the stream has, and builds the store anew where the stream
// does not lead on from it or contradicts it.
func (n *replicaNode) follow(ctx context.Context) error {
	for {
		tail, err := stream.NewTail(n.conn.Conn, n.settings, n.chain, replica.NewApplier(n.chain, n.fed, nil))
		if err != nil {
			return err
		}
		n.tail.Store(tail)
		err = tail.Run(ctx)
		n.noteAnswer(tail.Stats().Answered)
		var needed *stream.SnapshotNeeded
		reaches := chain.Number(0)
		switch {
		case err == nil:
			return nil
		case errors.As(err, &needed):
			reaches = needed.Missing.To
		case !errors.Is(err, replica.ErrMismatch):
			return fmt.Errorf("follow stream %s: %w", n.name(), err)
		}
		n.config.Log.Warn("the store is built anew from a snapshot; until then reads are answered from what is there", "why", err)
		n.rebuilding.Store(true)
		n.rebuilds.Add(1)
		if err := n.rebuild(ctx, reaches); err != nil {
			return untilDone(ctx, err)
		}
	}
}

// rebuild makes a store of a snapshot that events are applied to from now on.
// Readers see it when it has caught up.
func (n *replicaNode) rebuild(ctx context.Context, reaches chain.Number) error {
	if n.fed != n.shown { // one that did not lead on either
		n.retire(n.fed)
	}
	s, err := n.fetch(ctx, reaches)
	if err != nil {
		return err
	}
	n.fed = s
	n.current.Store(s)
	return nil
}

// replaced is called when readers see s for the first time, and whenever they see
// more of it.
func (n *replicaNode) replaced(s *replicaStore) {
	if n.shown == s {
		n.rebuilding.Store(false)
		return
	}
	old := n.shown
	n.shown = s
	n.service.stored.Store(s.db)
	n.rebuilding.Store(false)
	n.config.Log.Info("reads are answered from the store that was built anew", "dir", s.dir)
	n.retire(old)
}

// retire has a store deleted that is not used any more.
func (n *replicaNode) retire(s *replicaStore) {
	s.release()
	select {
	case n.retired <- s:
	default: // it is closed at the end of the process, and deleted at the next start
	}
}

// deleteRetired closes stores when the last request that reads them has ended, and
// deletes them.
func (n *replicaNode) deleteRetired(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case s := <-n.retired:
			if err := n.closeWhenFree(ctx, s); err != nil {
				return untilDone(ctx, err)
			}
			if err := os.RemoveAll(s.dir); err != nil {
				return err
			}
		}
	}
}

// closeRetry is how often it is tried to close a store that is being read.
const closeRetry = 50 * time.Millisecond

func (n *replicaNode) closeWhenFree(ctx context.Context, s *replicaStore) error {
	for {
		err := s.close()
		if err == nil {
			n.forget(s)
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(closeRetry):
		}
	}
}

func (n *replicaNode) forget(s *replicaStore) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.open, s)
}

// release lets go of all that readers were shown, when there are none any more.
func (n *replicaNode) release() {
	n.published.Close()
	n.shown.release()
	n.fed.release()
}

func (n *replicaNode) closeStores() (err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for s := range n.open {
		err = errors.Join(err, s.close())
	}
	return err
}
