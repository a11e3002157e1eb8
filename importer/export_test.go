// SPDX-License-Identifier: Apache-2.0

package importer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/chain"
	"glimpse/evm"
	"glimpse/importer"
)

// A source has blocks in memory.
type source struct {
	headers, bodies [][]byte
}

func newSource(t *testing.T, blocks []*types.Block) *source {
	t.Helper()
	s := new(source)
	for _, b := range blocks {
		header, err := rlp.EncodeToBytes(b.Header())
		if err != nil {
			t.Fatal(err)
		}
		body, err := rlp.EncodeToBytes(b.Body())
		if err != nil {
			t.Fatal(err)
		}
		s.headers, s.bodies = append(s.headers, header), append(s.bodies, body)
	}
	return s
}

func (s *source) Header(n chain.Number) ([]byte, error) {
	if int(n) >= len(s.headers) {
		return nil, &chain.Miss{Reason: chain.Future}
	}
	return s.headers[n], nil
}

func (s *source) Body(n chain.Number) ([]byte, error) { return s.bodies[n], nil }

// withGenesis is a chain with block 0.
func withGenesis(t *testing.T, seed uint64, blocks int) []*types.Block {
	t.Helper()
	text, list := generated(seed, blocks)
	genesis, err := evm.ParseGenesis(text)
	if err != nil {
		t.Fatal(err)
	}
	return append([]*types.Block{genesis.Block}, list...)
}

func TestWriteBlocksIsTheirEncoding(t *testing.T) {
	blocks := withGenesis(t, 21, 12)
	for _, r := range []struct{ first, last chain.Number }{{0, 12}, {0, 0}, {3, 7}, {12, 12}} {
		t.Run(fmt.Sprintf("blocks %d to %d", r.first, r.last), func(t *testing.T) {
			var got bytes.Buffer
			if err := importer.WriteBlocks(t.Context(), &got, newSource(t, blocks), r.first, r.last); err != nil {
				t.Fatal(err)
			}
			if want := encode(t, blocks[r.first:r.last+1]...); !bytes.Equal(got.Bytes(), want) {
				t.Errorf("got %d bytes that are not the %d of the blocks", got.Len(), len(want))
			}
		})
	}
}

func TestWrittenBlocksAreImported(t *testing.T) {
	text, list := generated(22, 20)
	blocks := withGenesis(t, 22, 20)
	var file bytes.Buffer
	if err := importer.WriteBlocks(t.Context(), &file, newSource(t, blocks), 0, 20); err != nil {
		t.Fatal(err)
	}
	store, rules := newStore(t, text)
	err := importer.Run(t.Context(), store, rules, []string{writeFile(t, "export.rlp", file.Bytes())}, importer.Options{Roots: store.tries})
	if err != nil || store.head().Hash != list[19].Hash() {
		t.Errorf("got head %s, %v, want %s", store.head(), err, list[19].Hash())
	}
}

func TestWriteBlocksFails(t *testing.T) {
	blocks := withGenesis(t, 23, 3)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	damaged := newSource(t, blocks)
	damaged.bodies[2] = damaged.bodies[2][1:]
	full := errors.New("disk full")
	miss := new(chain.Miss)
	for _, tt := range []struct {
		name        string
		ctx         context.Context
		source      *source
		out         io.Writer
		first, last chain.Number
		is          func(error) bool
	}{
		{"when there is nothing to write", t.Context(), newSource(t, blocks), io.Discard, 3, 2, func(err error) bool { return err != nil }},
		{"past the end", t.Context(), newSource(t, blocks), io.Discard, 0, 4, func(err error) bool { return errors.As(err, &miss) }},
		{"when it is stopped", ended, newSource(t, blocks), io.Discard, 0, 3, func(err error) bool { return errors.Is(err, context.Canceled) }},
		{"over a damaged body", t.Context(), damaged, io.Discard, 0, 3, func(err error) bool { return errors.Is(err, chain.ErrCorrupt) }},
		{"on a full disk", t.Context(), newSource(t, blocks), failingWriter{full}, 0, 3, func(err error) bool { return errors.Is(err, full) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := importer.WriteBlocks(tt.ctx, tt.out, tt.source, tt.first, tt.last); !tt.is(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
