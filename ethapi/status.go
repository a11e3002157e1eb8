// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"glimpse/chain"
)

// NodeStatus is what a node knows of itself beside its snapshots, for
// glimpse_status.
type NodeStatus struct {
	// Source is where blocks come from, such as "dev" or "import"; empty where
	// that is not known.
	Source string

	// Engine is where what a block changed comes from, such as "execute"; empty
	// where nothing is followed.
	Engine string

	// Upstreams are the nodes that are followed.
	Upstreams []UpstreamStatus

	// Retention says in words which state is kept, such as "all"; empty where
	// that is not known.
	Retention string

	// Feed is nil where the node follows no feed of pre-confirmations.
	Feed *FeedStatus

	// Publish is nil where the node tells no replicas, Replica where it is none.
	Publish *PublishStatus
	Replica *ReplicaStatus
}

// PublishStatus is how a writer is doing that tells replicas.
type PublishStatus struct {
	Stream    string       `json:"stream"`
	InCharge  bool         `json:"inCharge"`  // it publishes, and no other writer does
	Published chain.Number `json:"published"` // the newest block in the stream
	Messages  uint64       `json:"messages"`
	Bytes     uint64       `json:"bytes"`
	Error     string       `json:"error,omitempty"`
}

// ReplicaStatus is how a replica is doing. Times are in milliseconds.
type ReplicaStatus struct {
	Stream     string       `json:"stream"`
	Connected  bool         `json:"connected"`
	CaughtUp   bool         `json:"caughtUp"`   // readers see all that the stream has
	Rebuilding bool         `json:"rebuilding"` // from a snapshot, while the store from before answers
	Writer     chain.Number `json:"writer"`     // its newest block, as far as was heard

	// SnapshotFetched bytes of SnapshotBytes are here; nil while none is downloaded.
	SnapshotFetched *int64 `json:"snapshotFetched,omitempty"`
	SnapshotBytes   *int64 `json:"snapshotBytes,omitempty"`

	LagBlocks uint64 `json:"lagBlocks"`
	LagMs     int64  `json:"lagMs"`   // for how long it has been behind; 0 while it is not
	HeardMs   *int64 `json:"heardMs"` // since the writer was last heard of; null before
	Error     string `json:"error,omitempty"`
}

// UpstreamStatus is how a node is doing that is followed.
type UpstreamStatus struct {
	Name    string       `json:"name"`
	Leads   bool         `json:"leads"` // it is asked first
	Healthy bool         `json:"healthy"`
	Latest  chain.Number `json:"latest"`
	Lag     chain.Number `json:"lag"` // in blocks, behind the best one
	Error   string       `json:"error,omitempty"`
}

// FeedStatus is how the feed of pre-confirmations is doing.
type FeedStatus struct {
	Connected bool
	Last      time.Time     // when its last message came; zero where none did
	MaxAge    time.Duration // after which pre-confirmed state is dropped; 0 where that is not known
}

// statusJSON is the answer to glimpse_status. Pointers are null where there is
// nothing to tell.
type statusJSON struct {
	Version   string             `json:"version"`
	ChainID   hexutil.Uint64     `json:"chainId"`
	Source    *string            `json:"source"`
	Engine    *string            `json:"engine,omitempty"`
	Upstreams []UpstreamStatus   `json:"upstreams,omitempty"`
	Latest    headJSON           `json:"latest"`
	Safe      *refJSON           `json:"safe"`
	Finalized *refJSON           `json:"finalized"`
	Pending   *pendingStatusJSON `json:"pending"`
	Feed      *feedStatusJSON    `json:"feed"`
	Publish   *PublishStatus     `json:"publish,omitempty"`
	Replica   *ReplicaStatus     `json:"replica,omitempty"`
	Retention retentionJSON      `json:"retention"`
	Snapshot  string             `json:"snapshot"`
}

type refJSON struct {
	Number hexutil.Uint64 `json:"number"`
	Hash   chain.Hash     `json:"hash"`
}

type headJSON struct {
	refJSON
	Timestamp hexutil.Uint64 `json:"timestamp"`
}

// Milliseconds are JSON numbers, not quantities, as in the header fields.
type pendingStatusJSON struct {
	Number hexutil.Uint64 `json:"number"`
	Index  hexutil.Uint64 `json:"index"`
	AgeMs  *int64         `json:"ageMs"` // since the last message of the feed
}

type feedStatusJSON struct {
	Connected bool   `json:"connected"`
	AgeMs     *int64 `json:"ageMs"`
	MaxAgeMs  *int64 `json:"maxAgeMs"`
}

type retentionJSON struct {
	OldestState hexutil.Uint64 `json:"oldestState"`
	Policy      *string        `json:"policy"`
}

func status(s *session, dst []byte, args *arguments) ([]byte, error) {
	if err := args.done(); err != nil {
		return nil, err
	}
	latest, err := s.blockOf(chain.Latest)
	if err != nil {
		return nil, err
	}
	var node NodeStatus
	if s.api.config.Status != nil {
		node = s.api.config.Status()
	}
	out := statusJSON{
		Version:   s.api.config.Version,
		ChainID:   hexutil.Uint64(s.api.config.ChainID),
		Source:    known(node.Source),
		Engine:    known(node.Engine),
		Upstreams: node.Upstreams,
		Latest:    headJSON{*newRefJSON(s.Latest(), true), hexutil.Uint64(latest.header.Time)},
		Safe:      newRefJSON(s.Safe()),
		Finalized: newRefJSON(s.Finalized()),
		Feed:      newFeedStatusJSON(node.Feed),
		Publish:   node.Publish,
		Replica:   node.Replica,
		Retention: retentionJSON{hexutil.Uint64(s.Oldest()), known(node.Retention)},
		Snapshot:  string(s.Snapshot.Stamp()),
	}
	if p, ok := s.Pending(); ok {
		out.Pending = &pendingStatusJSON{Number: hexutil.Uint64(p.Header.Number.Uint64()), Index: hexutil.Uint64(p.Index)}
		if out.Feed != nil {
			out.Pending.AgeMs = out.Feed.AgeMs
		}
	}
	return appendJSON(dst, out)
}

func newRefJSON(r chain.Ref, ok bool) *refJSON {
	if !ok {
		return nil
	}
	return &refJSON{hexutil.Uint64(r.Number), r.Hash}
}

func newFeedStatusJSON(f *FeedStatus) *feedStatusJSON {
	if f == nil {
		return nil
	}
	out := &feedStatusJSON{Connected: f.Connected}
	if !f.Last.IsZero() {
		age := max(time.Since(f.Last), 0).Milliseconds()
		out.AgeMs = &age
	}
	if f.MaxAge > 0 {
		most := f.MaxAge.Milliseconds()
		out.MaxAgeMs = &most
	}
	return out
}

// known is nil for an empty text.
func known(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
