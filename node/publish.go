// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"glimpse/archive"
	"glimpse/chain"
	"glimpse/ethapi"
	"glimpse/ops"
	"glimpse/pending"
	"glimpse/replica"
	"glimpse/replica/embedded"
	"glimpse/replica/stream"
)

// Embedded is what Publish.To says for a NATS server in this process.
const Embedded = "embedded"

// A Publish says how a node tells replicas what happens to its chain. The zero
// value tells nobody.
type Publish struct {
	To          string   // URLs of NATS servers with commas between, Embedded, or empty for nobody
	Listen      Endpoint // of the embedded server
	Credentials string   // file; empty for none
	Authorities string   // file of certificates; empty for those that the machine trusts

	Stream   string        // name; empty means glimpse
	Copies   int           // how many servers keep it; 0 means 1
	MaxAge   time.Duration // how long it keeps messages; 0 means 24 h
	MaxBytes int64         // how much it keeps; 0 means 4 GiB

	SnapshotEvery time.Duration // 0 for never
	SnapshotsKeep int           // at least 2
}

func (c *Publish) settings() stream.Settings {
	return stream.Settings{Name: c.Stream, Replicas: c.Copies, MaxAge: c.MaxAge, MaxBytes: c.MaxBytes}
}

// place returns where a store is that is published: on disk in any case, because
// replicas begin with a copy of it. Remove is called at the end.
func (c *Publish) place(s Store) (at Store, remove func() error, err error) {
	if c.To == "" || s.Datadir != "" {
		return s, func() error { return nil }, nil
	}
	dir, err := os.MkdirTemp("", "glimpse-")
	if err != nil {
		return s, nil, err
	}
	s.Datadir = filepath.Join(dir, "store")
	return s, func() error { return os.RemoveAll(dir) }, nil
}

// publishing tells replicas what this node's readers see. Its methods may be called
// on nil, for a node without replicas, and never wait for NATS.
type publishing struct {
	config    *Publish
	settings  stream.Settings
	log       *slog.Logger
	server    *embedded.Server // nil where it is elsewhere
	conn      *stream.Conn
	journal   journal
	publisher *stream.Publisher
	snapshots *snapshotting // nil where none are made
}

// openPublishing connects to NATS, which may be away now. The store must have its
// first block; dir is where it is.
func openPublishing(c *Publish, dir string, db *archive.DB, log *slog.Logger) (_ *publishing, err error) {
	p := &publishing{config: c, settings: c.settings(), log: log}
	if err := p.settings.Validate(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	id, ok := db.Identity()
	if !ok {
		return nil, archive.ErrEmpty
	}
	if err := p.connect(dir); err != nil {
		return nil, err
	}
	p.publisher, err = stream.NewPublisher(p.conn.Conn, p.settings, identityOf(id), &p.journal)
	if err != nil {
		return nil, err
	}
	if c.SnapshotEvery > 0 {
		p.snapshots = &snapshotting{publishing: p, db: db, dir: filepath.Join(dir, "snapshot")}
	}
	return p, nil
}

func identityOf(id archive.Identity) replica.Identity {
	return replica.Identity{ChainID: id.ChainID, Genesis: id.Genesis}
}

func (p *publishing) connect(dir string) (err error) {
	link := stream.Link{URLs: p.config.To, Credentials: p.config.Credentials, Authorities: p.config.Authorities}
	if p.config.To == Embedded {
		p.server, err = embedded.Start(embedded.Options{
			Dir: filepath.Join(dir, "nats"), Addr: p.config.Listen.Addr, Port: p.config.Listen.Port, Logger: p.log,
		})
		if err != nil {
			return err
		}
		p.log.Info("nats listening", "url", p.server.ClientURL())
		link = stream.Link{InProcess: p.server}
	}
	p.conn, err = link.Connect("glimpse writer")
	return err
}

// show tells replicas what readers are shown.
func (p *publishing) show(r *archive.Reader, o *pending.Overlay, goodUntil time.Time, why replica.Reason) {
	if p == nil {
		return
	}
	if p.journal.show(r) {
		p.publisher.Wake()
	}
	p.publisher.Overlay(overlayForReplicas(r.Head(), o), goodUntil, why)
}

// overlayForReplicas is o as it is told.
func overlayForReplicas(latest chain.Ref, o *pending.Overlay) *replica.Overlay {
	told := &replica.Overlay{Parent: latest}
	if o == nil || o.Parent() != latest {
		return told
	}
	for _, part := range o.Parts() {
		b := replica.OverlayBlock{Block: part.Block, Layers: make([]replica.Layer, len(part.Layers))}
		for i, l := range part.Layers {
			b.Layers[i] = replica.Layer(l)
		}
		told.Blocks = append(told.Blocks, b)
	}
	return told
}

// facts tells replicas what a sparse store has learnt.
func (p *publishing) facts(f *chain.Facts) {
	if p != nil {
		p.publisher.Facts(f)
	}
}

// A tellingKeeper keeps what was read of the first block, and tells replicas.
type tellingKeeper struct {
	*archive.DB
	publishing *publishing
}

// KeepOrigin implements origin.Keeper. It tells before the blocks that are made of
// it can be committed.
func (k tellingKeeper) KeepOrigin(f *chain.Facts) error {
	err := k.DB.KeepOrigin(f)
	if err == nil {
		k.publishing.facts(f)
	}
	return err
}

// run publishes until ctx ends. It fails where another writer has the stream, and
// where the stream is another chain's.
func (p *publishing) run(ctx context.Context) error {
	parts := []func(context.Context) error{p.publisher.Run, p.report}
	if p.snapshots != nil {
		parts = append(parts, p.snapshots.run)
	}
	if err := runAll(ctx, parts...); err != nil {
		return fmt.Errorf("publish to replicas: %w", err)
	}
	return nil
}

// reportEvery is how often it is looked whether there is something to log.
const reportEvery = time.Second

// report logs when publishing begins and why it ends.
func (p *publishing) report(ctx context.Context) error {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	var inCharge bool
	var said string
	for {
		s := p.publisher.Stats()
		switch {
		case s.InCharge && !inCharge:
			p.log.Info("publishing to replicas", "stream", p.name(), "epoch", s.Epoch, "block", s.Published.Number)
			said = ""
		case !s.InCharge && s.LastError != nil && s.LastError.Error() != said:
			said = s.LastError.Error()
			p.log.Warn("not publishing to replicas now", "stream", p.name(), "err", s.LastError)
		}
		inCharge = s.InCharge
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (p *publishing) name() string {
	if p.settings.Name == "" {
		return "glimpse"
	}
	return p.settings.Name
}

// close disconnects, when run has returned.
func (p *publishing) close() {
	if p == nil {
		return
	}
	if p.conn != nil {
		p.conn.Close()
	}
	if p.server != nil {
		p.server.Close()
	}
	p.journal.close()
}

// status is what glimpse_status tells of it, nil where nobody is told.
func (p *publishing) status() *ethapi.PublishStatus {
	if p == nil {
		return nil
	}
	s := p.publisher.Stats()
	status := &ethapi.PublishStatus{Stream: p.name(), InCharge: s.InCharge, Published: s.Published.Number, Messages: s.Messages, Bytes: s.Bytes}
	if s.LastError != nil && !errors.Is(s.LastError, context.Canceled) {
		status.Error = s.LastError.Error()
	}
	return status
}

// numbers are its metrics.
func (p *publishing) numbers() ops.Publishing {
	s := p.publisher.Stats()
	n := ops.Publishing{
		InCharge: s.InCharge, Published: s.Published.Number,
		Events: s.Events, Messages: s.Messages, Bytes: s.Bytes, Retries: s.Retries,
		PendingWhole: s.PendingWhole, PendingParts: s.PendingEvents - s.PendingWhole,
		PendingBytes: s.PendingBytes, PendingLost: s.PendingLost, FactsDropped: s.FactsDropped,
	}
	if p.snapshots != nil {
		n.Snapshots = p.snapshots.numbers()
	}
	return n
}
