// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"glimpse/chain"
)

// ErrManifest refuses a manifest that could not have been written here.
var ErrManifest = errors.New("malformed manifest")

// Bounds of what a manifest may ask for (S2).
const (
	maxManifest  = 64 << 20 // bytes
	maxFiles     = 1 << 20
	maxChunk     = 16 << 20
	maxName      = 200
	manifestForm = 1
)

// A Manifest describes one snapshot. Upload fills in Files and Time.
type Manifest struct {
	Format int `json:"format"`

	// ChainID and Genesis say which chain the store belongs to.
	ChainID uint64     `json:"chainId"`
	Genesis chain.Hash `json:"genesis"`

	// Head is the block that the store is at, Digest the store's digest there.
	Head   chain.Ref `json:"head"`
	Digest Sum       `json:"digest"`

	// Position is the place in the stream of events that the store is at. It
	// means nothing here.
	Position uint64 `json:"position"`

	Time  time.Time `json:"time"`
	Files []File    `json:"files"`
}

// A File is one file of a snapshot.
type File struct {
	Name   string  `json:"name"`
	Size   int64   `json:"size"`
	Chunks []Chunk `json:"chunks"`
}

// A Chunk is a part of a file, stored under the hash of its content.
type Chunk struct {
	Sum  Sum   `json:"sum"`
	Size int64 `json:"size"`
}

// A Sum is a SHA-256, in hex where it is text.
type Sum [32]byte

// String returns the sum in hex.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// MarshalText implements encoding.TextMarshaler.
func (s Sum) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Sum) UnmarshalText(text []byte) error {
	if len(text) != 2*len(s) {
		return fmt.Errorf("sum of %d characters", len(text))
	}
	_, err := hex.Decode(s[:], text)
	return err
}

// Bytes returns how big all files are together.
func (m *Manifest) Bytes() (total int64) {
	for i := range m.Files {
		total += m.Files[i].Size
	}
	return total
}

func (m *Manifest) encode() ([]byte, error) {
	if err := m.validate(); err != nil {
		return nil, err
	}
	data, err := json.Marshal(m)
	if err == nil && len(data) > maxManifest {
		err = fmt.Errorf("%w: %d bytes", ErrManifest, len(data))
	}
	return data, err
}

func decodeManifest(data []byte) (*Manifest, error) {
	m := new(Manifest)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	return m, m.validate()
}

// validate refuses what could lead outside of a directory, or to more memory or
// disk than the manifest itself says (S2).
func (m *Manifest) validate() error {
	if m.Format != manifestForm {
		return fmt.Errorf("%w: format %d, want %d", ErrManifest, m.Format, manifestForm)
	}
	if len(m.Files) == 0 || len(m.Files) > maxFiles {
		return fmt.Errorf("%w: %d files", ErrManifest, len(m.Files))
	}
	for i := range m.Files {
		f := &m.Files[i]
		if !validName(f.Name) {
			return fmt.Errorf("%w: file name %.40q", ErrManifest, f.Name)
		}
		if i > 0 && m.Files[i-1].Name >= f.Name {
			return fmt.Errorf("%w: files out of order at %q", ErrManifest, f.Name)
		}
		if err := f.validate(); err != nil {
			return fmt.Errorf("%w: file %q: %w", ErrManifest, f.Name, err)
		}
	}
	return nil
}

func (f *File) validate() error {
	var total int64
	for _, c := range f.Chunks {
		if c.Size <= 0 || c.Size > maxChunk {
			return fmt.Errorf("chunk of %d bytes", c.Size)
		}
		total += c.Size
	}
	if total != f.Size {
		return fmt.Errorf("chunks of %d bytes, want %d", total, f.Size)
	}
	return nil
}

// validName accepts what Pebble calls its files, and nothing that means
// something to a file system: no separators, no dots in front, no control
// characters.
func validName(name string) bool {
	if len(name) == 0 || len(name) > maxName || name[0] == '.' {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}
