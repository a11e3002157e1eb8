// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"io"
	"os"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/evm"
)

// A batch is what is decoded at a time. With one being executed, one waiting and
// one being filled there are three in memory.
const (
	batchBytes  = 4 << 20
	batchBlocks = 256
)

type batch struct {
	blocks []*types.Block
	read   int64 // bytes read from all files by now
	err    error // what follows the blocks; io.EOF at the end of the last file
}

// decodeAhead reads all files and sends their blocks in batches, until the last
// one, which carries an error, or until ctx ends. Senders are recovered where a
// block is above known.
func decodeAhead(ctx context.Context, files []string, rules *evm.Rules, known chain.Number, out chan<- batch) {
	d := &decoder{files: files}
	defer d.close()
	for {
		b := d.fill()
		fresh := b.blocks
		for len(fresh) > 0 && fresh[0].NumberU64() <= uint64(known) {
			fresh = fresh[1:]
		}
		rules.RecoverSenders(fresh)
		select {
		case out <- b:
		case <-ctx.Done():
			return
		}
		if b.err != nil {
			return
		}
	}
}

// A decoder reads one file after the other.
type decoder struct {
	files []string
	read  atomic.Int64

	file   *os.File // nil between files
	reader *Reader
}

func (d *decoder) fill() (b batch) {
	for size := uint64(0); size < batchBytes && len(b.blocks) < batchBlocks; {
		block, err := d.next()
		if err != nil {
			b.err = err
			break
		}
		size += block.Size()
		b.blocks = append(b.blocks, block)
	}
	b.read = d.read.Load()
	return b
}

func (d *decoder) next() (*types.Block, error) {
	for {
		if d.file == nil {
			if len(d.files) == 0 {
				return nil, io.EOF
			}
			if err := d.open(d.files[0]); err != nil {
				return nil, err
			}
			d.files = d.files[1:]
		}
		block, err := d.reader.Next()
		if !errors.Is(err, io.EOF) {
			return block, err
		}
		d.close()
	}
}

func (d *decoder) open(path string) (err error) {
	if d.file, err = os.Open(path); err != nil {
		return err
	}
	d.reader, err = NewReader(path, &countingReader{d.file, &d.read})
	return err
}

func (d *decoder) close() {
	if d.file != nil {
		_ = d.file.Close() // it was only read
		d.file = nil
	}
}

type countingReader struct {
	in   io.Reader
	read *atomic.Int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.read.Add(int64(n))
	return n, err
}
