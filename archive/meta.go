// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"glimpse/chain"
)

// An Identity says which chain a store belongs to.
type Identity struct {
	ChainID uint64
	Genesis chain.Hash

	// Config is the chain's configuration in the caller's encoding; the archive
	// does not look into it.
	Config []byte
}

// heads is a store's metadata as one value.
type heads struct {
	identity        Identity
	head            chain.Ref
	first           chain.Number // that the store begins with; 0 unless sparse
	sparse          bool         // the state of first is not here
	oldest          chain.Number
	safe, finalized tag
	digest          Digest // that of the head
	branch          uint64 // how often blocks were unwound since the store was opened; not stored
}

// A tag is a block that may not be known.
type tag struct {
	ref   chain.Ref
	known bool
}

func (t tag) get() (chain.Ref, bool) { return t.ref, t.known }

// upTo forgets a block that is above n.
func (t tag) upTo(n chain.Number) tag {
	if t.ref.Number > n {
		return tag{}
	}
	return t
}

// format is the version of everything that the comparer's name does not cover:
// keys, values and what they mean. A store with another one is refused.
//
// A sparse store has a number of its own, because a program that does not know
// of sparse stores would take what is unknown for zero.
const (
	format       = 7
	formatSparse = 8
)

// The names in the metadata space.
const (
	metaFormat    = "format"
	metaIdentity  = "identity"
	metaFirst     = "first"
	metaHead      = "head"
	metaOldest    = "oldest"
	metaSafe      = "safe"
	metaFinalized = "finalized"
)

func metaKey(name string) []byte {
	return append([]byte{spaceMeta}, name...)
}

func appendIdentity(dst []byte, id Identity) []byte {
	dst = binary.BigEndian.AppendUint64(dst, id.ChainID)
	dst = append(dst, id.Genesis[:]...)
	return append(dst, id.Config...)
}

func decodeIdentity(data []byte) (Identity, error) {
	if len(data) < 8+hashSize {
		return Identity{}, fmt.Errorf("%w: identity of %d bytes", chain.ErrCorrupt, len(data))
	}
	return Identity{
		ChainID: binary.BigEndian.Uint64(data),
		Genesis: chain.Hash(data[8 : 8+hashSize]),
		Config:  slices.Clone(data[8+hashSize:]),
	}, nil
}

// setHeads is in every batch that moves one of them, so that a marker and what
// it marks cannot part (A1).
func (c *changes) setHeads(h heads) {
	c.set(metaKey(metaHead), appendRef(nil, h.head))
	c.set(metaKey(metaOldest), appendNumber(nil, h.oldest))
	c.setTag(metaSafe, h.safe)
	c.setTag(metaFinalized, h.finalized)
}

func (c *changes) setTag(name string, t tag) {
	if t.known {
		c.set(metaKey(name), appendRef(nil, t.ref))
	} else {
		c.delete(metaKey(name))
	}
}

// loadHeads reads the metadata, without the digest of the head; found is false
// in a store before Init.
func loadHeads(p *pebble.DB) (h heads, found bool, err error) {
	m := metaReader{pebble: p}
	if identity, found := m.find(metaIdentity); found {
		h.identity = decodeMeta(&m, decodeIdentity, identity)
		h.head = decodeMeta(&m, decodeRef, m.need(metaHead))
		h.oldest = decodeMeta(&m, decodeNumber, m.need(metaOldest))
		version := decodeMeta(&m, decodeNumber, m.need(metaFormat))
		if h.sparse = version == formatSparse; h.sparse {
			h.first = decodeMeta(&m, decodeNumber, m.need(metaFirst))
		}
		h.safe = m.tag(metaSafe)
		h.finalized = m.tag(metaFinalized)
		return h, m.err == nil, m.err
	}
	return heads{}, false, m.err
}

// A metaReader reads values by name and keeps the first error, after which all
// it returns is zero.
type metaReader struct {
	pebble *pebble.DB
	err    error
}

func decodeMeta[T any](m *metaReader, decode func([]byte) (T, error), data []byte) (v T) {
	if m.err == nil {
		v, m.err = decode(data)
	}
	return v
}

func (m *metaReader) tag(name string) tag {
	if value, found := m.find(name); found {
		return tag{decodeMeta(m, decodeRef, value), true}
	}
	return tag{}
}

func (m *metaReader) need(name string) []byte {
	value, found := m.find(name)
	if !found && m.err == nil {
		m.err = missing(metaKey(name))
	}
	return value
}

func (m *metaReader) find(name string) (value []byte, found bool) {
	if m.err != nil {
		return nil, false
	}
	shared, closer, err := m.pebble.Get(metaKey(name))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false
	}
	if err != nil {
		m.err = fmt.Errorf("read %s: %w", name, storeError(err))
		return nil, false
	}
	value = slices.Clone(shared)
	m.err = closer.Close()
	return value, m.err == nil
}
