// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// errSilent is of an object that stopped arriving.
var errSilent = errors.New("nothing of it arrives")

// Get implements Objects. The error wraps ErrDamaged where the object store
// itself knows that the object is not whole.
func (b *Bucket) Get(ctx context.Context, name string, limit int64) ([]byte, error) {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	f := &fetch{moved: make(chan struct{}, 1)}
	// The library's reader sees that its context has ended when a time of its own is
	// over, seconds later. Nobody waits for that.
	ended := make(chan error, 1) // never full: it is sent to once
	go func() { ended <- f.run(reading, b.objects, name, limit) }()
	silence := time.NewTimer(b.timeout)
	defer silence.Stop()
	for {
		select {
		case err := <-ended:
			switch {
			case err == nil:
				return f.data.Bytes(), nil
			case ctx.Err() != nil: // the library says it in words of its own
				return nil, ctx.Err()
			case errors.Is(err, jetstream.ErrDigestMismatch):
				return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
			}
			return nil, bucketError(err)
		case <-f.moved:
			silence.Reset(b.timeout)
		case <-silence.C:
			if info := f.info.Load(); info != nil {
				return nil, errors.Join(errSilent, b.countMessages(ctx, info))
			}
			return nil, errSilent
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// A fetch is one object that is read.
type fetch struct {
	info  atomic.Pointer[jetstream.ObjectInfo] // nil before it is known
	moved chan struct{}                        // holds one signal that something arrived; a second would say the same
	data  bytes.Buffer                         // of run, until it returns
}

func (f *fetch) run(ctx context.Context, from jetstream.ObjectStore, name string, limit int64) (err error) {
	object, err := from.Get(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, object.Close()) }()
	info, err := object.Info()
	if err != nil {
		return err
	}
	f.info.Store(info)
	if info.Size <= uint64(limit) {
		f.data.Grow(int(info.Size) + bytes.MinRead)
	}
	_, err = io.Copy(&f.data, io.TeeReader(io.LimitReader(object, limit+1), f))
	return err
}

// Write signals that something arrived.
func (f *fetch) Write(b []byte) (int, error) {
	select {
	case f.moved <- struct{}{}:
	default:
	}
	return len(b), nil
}
