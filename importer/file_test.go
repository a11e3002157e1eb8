// SPDX-License-Identifier: Apache-2.0

package importer_test

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/evm"
	"glimpse/importer"
)

func readAll(data []byte) (blocks []*types.Block, err error) {
	r, err := importer.NewReader("test", bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	for {
		block, err := r.Next()
		if err != nil {
			if err == io.EOF { // a wrapped one would be a bug
				err = nil
			}
			return blocks, err
		}
		blocks = append(blocks, block)
	}
}

func TestDamagedFiles(t *testing.T) {
	_, blocks := generated(8, 3)
	first, all := encode(t, blocks[0]), encode(t, blocks...)
	offset := int64(len(first))
	tests := []struct {
		name   string
		data   []byte
		blocks int
		offset int64
		cause  error // nil where it does not matter
	}{
		{"cut in the second block", all[:len(first)+50], 1, offset, io.ErrUnexpectedEOF},
		{"cut in the second block's length", all[:len(first)+2], 1, offset, io.ErrUnexpectedEOF},
		{"garbage behind the first block", slices.Concat(first, []byte("garbage")), 1, offset, nil},
		{"garbage from the beginning", []byte("not a block file"), 0, 0, nil},
		{"a list that is no block", []byte{0xc2, 1, 2}, 0, 0, nil},
		{"an empty list", []byte{0xc0}, 0, 0, nil},
		{"a list that is too large", []byte{0xfb, 0xff, 0xff, 0xff, 0xff}, 0, 0, nil},
		{"a length that overflows", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 0, 0, nil},
		{"a promise that is not kept", []byte{0xfb, 0x03, 0xff, 0xff, 0xff}, 0, 0, io.ErrUnexpectedEOF},
		{"compressed and cut", compress(t, all)[:len(compress(t, all))/2], 0, 0, io.ErrUnexpectedEOF},
		{"only the magic of gzip", []byte{0x1f, 0x8b}, 0, 0, io.ErrUnexpectedEOF},
		{"a transaction of unknown type", unknownTransaction(t, blocks), 0, 0, evm.ErrUnsupported},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readAll(tt.data)
			at := new(importer.FileError)
			if !errors.As(err, &at) {
				t.Fatalf("got %v, want a FileError", err)
			}
			if tt.cause != nil && !errors.Is(err, tt.cause) {
				t.Errorf("got %v, want %v", err, tt.cause)
			}
			if tt.cause == io.ErrUnexpectedEOF && len(got) > 0 && tt.blocks == 0 {
				return // how far a cut compressed file can be read is not ours to say
			}
			if len(got) != tt.blocks || at.Index != tt.blocks || at.Offset != tt.offset || at.File != "test" {
				t.Errorf("got %d blocks, %v, want %d and offset %d", len(got), err, tt.blocks, tt.offset)
			}
		})
	}
}

// unknownTransaction is a block with a transaction of type 0x7d.
func unknownTransaction(t *testing.T, blocks []*types.Block) []byte {
	t.Helper()
	header, err := rlp.EncodeToBytes(blocks[0].Header())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := rlp.EncodeToBytes([]any{rlp.RawValue(header), [][]byte{{0x7d, 1, 2, 3}}, []*types.Header{}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// A header may promise much; memory is taken for what is there.
func TestPromisedSizeIsNotAllocated(t *testing.T) {
	data := []byte{0xfb, 0x03, 0xff, 0xff, 0xff, 1, 2, 3} // 64 MiB
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := readAll(data); err == nil {
		t.Error("got no error")
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
		t.Errorf("got %d bytes allocated for 8 bytes of input", used)
	}
}

// Whatever is in a file, the reader ends with blocks or an error that says
// where, and blocks that it returns encode to what was read.
func FuzzReader(f *testing.F) {
	_, blocks := generated(9, 2)
	all := encode(f, blocks...)
	f.Add(all)
	f.Add(compress(f, all))
	f.Add([]byte{0xc0})
	f.Add([]byte{0xf8, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		blocks, err := readAll(data)
		at := new(importer.FileError)
		if err != nil && !errors.As(err, &at) {
			t.Fatalf("got %v, want a FileError", err)
		}
		if again := encode(t, blocks...); !bytes.HasPrefix(data, again) && !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
			t.Errorf("got %d blocks that encode to something else", len(blocks))
		}
	})
}
