// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/evm"
)

// maxBlockBytes bounds the encoding of one block, and so what a file can make
// the reader hold in memory. Ethereum allows 8 MiB since Osaka.
const maxBlockBytes = 64 << 20

// A FileError says where in which file reading failed.
type FileError struct {
	File   string
	Index  int   // of the block in the file, from 0
	Offset int64 // where the block begins, after decompression
	Err    error
}

func (e *FileError) Error() string {
	return fmt.Sprintf("%s: block at index %d, offset %d: %v", e.File, e.Index, e.Offset, e.Err)
}

func (e *FileError) Unwrap() error { return e.Err }

// A Reader reads the blocks of one file. It belongs to one goroutine.
type Reader struct {
	name   string
	in     *bufio.Reader
	index  int
	offset int64
	start  int64 // of the block that is being read
}

// gzipMagic cannot begin a file of blocks: each begins with the RLP header of a
// list.
var gzipMagic = []byte{0x1f, 0x8b}

// NewReader returns a reader of the blocks in file, which may be compressed.
// The name is for errors.
func NewReader(name string, file io.Reader) (*Reader, error) {
	in := bufio.NewReaderSize(file, 1<<16)
	r := &Reader{name: name, in: in}
	magic, err := in.Peek(len(gzipMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, r.fail(err)
	}
	if bytes.Equal(magic, gzipMagic) {
		plain, err := gzip.NewReader(in)
		if err != nil {
			return nil, r.fail(err)
		}
		r.in = bufio.NewReaderSize(plain, 1<<16)
	}
	return r, nil
}

// Next returns the next block, or io.EOF after the last. Any other error is a
// *FileError. A transaction of unknown type gives evm.ErrUnsupported.
func (r *Reader) Next() (*types.Block, error) {
	r.start = r.offset
	raw, err := r.nextList()
	if errors.Is(err, io.EOF) && r.offset == r.start {
		return nil, io.EOF
	}
	if err != nil {
		return nil, r.fail(err)
	}
	block := new(types.Block)
	if err := rlp.DecodeBytes(raw, block); err != nil {
		if errors.Is(err, types.ErrTxTypeNotSupported) {
			err = fmt.Errorf("%w: %w", evm.ErrUnsupported, err)
		}
		return nil, r.fail(err)
	}
	r.index++
	return block, nil
}

// fail never wraps io.EOF: that is how a file ends well.
func (r *Reader) fail(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &FileError{File: r.name, Index: r.index, Offset: r.start, Err: err}
}

// RLP writes a list as one byte that says how long it is, or how many bytes
// after it say so.
const (
	shortList = 0xc0
	longList  = 0xf7
)

// nextList reads one RLP list with its header.
func (r *Reader) nextList() ([]byte, error) {
	head, err := r.in.ReadByte()
	if err != nil {
		return nil, err
	}
	r.offset++
	if head < shortList {
		return nil, fmt.Errorf("byte %#x does not begin a block", head)
	}
	raw := []byte{head}
	size := uint64(head - shortList)
	if head > longList {
		size = 0
		for range head - longList {
			b, err := r.in.ReadByte()
			if err != nil {
				return nil, err
			}
			r.offset++
			raw = append(raw, b)
			size = size<<8 | uint64(b)
		}
	}
	if size > maxBlockBytes {
		return nil, fmt.Errorf("block of %d bytes, more than %d", size, maxBlockBytes)
	}
	return r.payload(raw, int64(size))
}

// payload appends size bytes to raw. The buffer grows with what is really
// there, not with what the header promises.
func (r *Reader) payload(raw []byte, size int64) ([]byte, error) {
	buffer := bytes.NewBuffer(raw)
	buffer.Grow(int(min(size, 1<<16)))
	n, err := io.CopyN(buffer, r.in, size)
	r.offset += n
	return buffer.Bytes(), err
}
