// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/ethereum/go-ethereum/rlp"

	"glimpse/chain"
)

// A Source has blocks that can be written to a file: their headers and bodies in
// RLP, as they were stored.
type Source interface {
	Header(n chain.Number) ([]byte, error)
	Body(n chain.Number) ([]byte, error)
}

// WriteBlocks writes the blocks from first to last, both included, in the form
// that "geth export" writes and Run reads: their RLP, one after the other. With
// first 0 the file begins with the genesis block, as geth's does; importers
// compare it and go on. WriteBlocks returns ctx's error when ctx ends, between
// two blocks; what is written then ends with a whole block.
func WriteBlocks(ctx context.Context, out io.Writer, source Source, first, last chain.Number) error {
	if first > last {
		return fmt.Errorf("blocks from %d to %d: none", first, last)
	}
	w := bufio.NewWriterSize(out, 1<<16)
	err := writeBlocks(ctx, w, source, first, last)
	if flushed := w.Flush(); err == nil {
		err = flushed
	}
	return err
}

func writeBlocks(ctx context.Context, w *bufio.Writer, source Source, first, last chain.Number) error {
	var block []byte
	for n := first; ; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if block, err = appendBlock(block[:0], source, n); err != nil {
			return fmt.Errorf("export block %d: %w", n, err)
		}
		if _, err := w.Write(block); err != nil {
			return err
		}
		if n == last {
			return nil
		}
	}
}

// appendBlock appends the RLP of a block: the list of its header and of what is
// in the list that is its body. Nothing is decoded, so nothing can change.
func appendBlock(dst []byte, source Source, n chain.Number) ([]byte, error) {
	header, err := source.Header(n)
	if err != nil {
		return nil, err
	}
	body, err := source.Body(n)
	if err != nil {
		return nil, err
	}
	if _, rest, err := rlp.SplitList(header); err != nil || len(rest) > 0 {
		return nil, fmt.Errorf("%w: the header is not one RLP list", chain.ErrCorrupt)
	}
	lists, rest, err := rlp.SplitList(body)
	if err != nil || len(rest) > 0 {
		return nil, fmt.Errorf("%w: the body is not one RLP list", chain.ErrCorrupt)
	}
	dst = appendListHeader(dst, uint64(len(header)+len(lists)))
	dst = append(dst, header...)
	return append(dst, lists...), nil
}

// appendListHeader appends what RLP puts before a list of size bytes.
func appendListHeader(dst []byte, size uint64) []byte {
	const longestShort = 55
	if size <= longestShort {
		return append(dst, shortList+byte(size))
	}
	bytes := 0
	for rest := size; rest > 0; rest >>= 8 {
		bytes++
	}
	dst = append(dst, longList+byte(bytes))
	for i := bytes - 1; i >= 0; i-- {
		dst = append(dst, byte(size>>(8*i)))
	}
	return dst
}
