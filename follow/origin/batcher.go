// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"glimpse/chain"
)

var (
	errClosed = errors.New("closed")
	errBusy   = errors.New("too many reads are waiting for the upstream")
)

// A batcher turns reads of single keys into few upstream calls. Its fetch sets
// the value or the error of every call that it is given.
type batcher[K comparable, V any] struct {
	options Options
	fetch   func(context.Context, []*call[K, V])
	life    context.Context // ends before close

	mu         sync.Mutex
	pending    map[K]*call[K, V] // queued or being fetched
	queue      []*call[K, V]     // bounded by MaxWaiting
	workers    int
	collecting bool // a worker is about to take the queue
	closed     bool
	full       chan struct{}
	running    sync.WaitGroup
}

// A call is one key that is being read, for all who wait for it.
type call[K comparable, V any] struct {
	key   K
	at    chain.Ref     // a block to ask at
	since time.Time     // when it was first asked for
	done  chan struct{} // closed when value and err are set
	value V
	err   error
}

func newBatcher[K comparable, V any](life context.Context, o Options, fetch func(context.Context, []*call[K, V])) *batcher[K, V] {
	return &batcher[K, V]{
		options: o,
		fetch:   fetch,
		life:    life,
		pending: make(map[K]*call[K, V]),
		// One word is enough: when it was not yet heard, it says the same.
		full: make(chan struct{}, 1),
	}
}

// get reads one key and waits for it as long as ctx and Timeout allow. Giving up
// does not end the read for others.
func (b *batcher[K, V]) get(ctx context.Context, key K, at chain.Ref) (V, error) {
	c, err := b.start(key, at)
	if err != nil {
		var none V
		return none, err
	}
	ctx, cancel := context.WithTimeout(ctx, b.options.Timeout)
	defer cancel()
	return c.wait(ctx)
}

func (c *call[K, V]) wait(ctx context.Context) (V, error) {
	select {
	case <-c.done:
		return c.value, c.err
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	}
}

// start joins the call for key, or makes one.
func (b *batcher[K, V]) start(key K, at chain.Ref) (*call[K, V], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.pending[key]; c != nil {
		return c, nil
	}
	switch {
	case b.closed:
		return nil, errClosed
	case len(b.pending) >= b.options.MaxWaiting:
		return nil, errBusy
	}
	c := &call[K, V]{key: key, at: at, since: time.Now(), done: make(chan struct{})}
	b.pending[key] = c
	b.queue = append(b.queue, c)
	b.ensureWorker()
	b.announce()
	return c, nil
}

// ensureWorker sees to it that somebody takes the queue, now or when a call
// ends. The caller holds mu.
func (b *batcher[K, V]) ensureWorker() {
	if len(b.queue) == 0 || b.collecting || b.workers >= b.options.MaxCalls {
		return
	}
	b.workers++
	b.collecting = true
	b.running.Go(b.work)
}

// announce says that a whole batch waits, where one does. The caller holds mu.
func (b *batcher[K, V]) announce() {
	if len(b.queue) >= b.options.BatchSize {
		select {
		case b.full <- struct{}{}:
		default:
		}
	}
}

// work fetches batches until nobody waits for one. It is the one who collects
// when it begins.
func (b *batcher[K, V]) work() {
	for collecting := true; collecting; collecting = b.again() {
		b.linger()
		b.run(b.take())
	}
}

// linger waits for the batch to fill, until its first read has waited long
// enough. There is one: only who collects takes from the queue.
func (b *batcher[K, V]) linger() {
	b.mu.Lock()
	rest := b.options.Linger - time.Since(b.queue[0].since)
	b.mu.Unlock()
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-b.full:
	case <-timer.C:
	case <-b.life.Done():
	}
}

// take ends the collecting.
func (b *batcher[K, V]) take() []*call[K, V] {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.queue), b.options.BatchSize)
	calls := slices.Clone(b.queue[:n])
	b.queue = slices.Delete(b.queue, 0, n)
	select {
	case <-b.full: // it was about the batch that is taken
	default:
	}
	b.announce()
	b.collecting = false
	b.ensureWorker()
	return calls
}

// again makes a worker that is done the one who collects, and reports false
// where it is needed no more.
func (b *batcher[K, V]) again() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 || b.collecting {
		b.workers--
		return false
	}
	b.collecting = true
	return true
}

func (b *batcher[K, V]) run(calls []*call[K, V]) {
	ctx, cancel := context.WithTimeout(b.life, b.options.Timeout)
	defer cancel()
	b.fetch(ctx, calls)
	b.mu.Lock()
	for _, c := range calls {
		delete(b.pending, c.key)
	}
	b.mu.Unlock()
	for _, c := range calls {
		close(c.done)
	}
}

// A wish is a key and a block to ask at.
type wish[K any] struct {
	key K
	at  chain.Ref
}

// getAll reads many keys, a bounded number at a time. The error is the first,
// after which no more are begun.
func (b *batcher[K, V]) getAll(ctx context.Context, wishes []wish[K]) (failed error) {
	for some := range slices.Chunk(wishes, b.options.BatchSize*b.options.MaxCalls) {
		var calls []*call[K, V]
		for _, w := range some {
			c, err := b.start(w.key, w.at)
			if err != nil {
				failed = err
				break
			}
			calls = append(calls, c)
		}
		for _, c := range calls {
			if _, err := c.wait(ctx); err != nil && failed == nil {
				failed = err
			}
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}

// ask reads keys at a block and sets the values of their calls.
func ask[K comparable, V any](calls []*call[K, V], get func(keys []K) ([]V, error)) error {
	keys := make([]K, len(calls))
	for i, c := range calls {
		keys[i] = c.key
	}
	values, err := get(keys)
	if err != nil {
		return err
	}
	if len(values) != len(keys) {
		return errWrongCount
	}
	for i, c := range calls {
		c.value, c.err = values[i], nil
	}
	return nil
}

var errWrongCount = errors.New("the upstream answered another number of values than it was asked for")

// byBlock splits calls by the block to ask at, in order of appearance.
func byBlock[K comparable, V any](calls []*call[K, V]) (groups [][]*call[K, V]) {
	place := make(map[chain.Ref]int)
	for _, c := range calls {
		i, ok := place[c.at]
		if !ok {
			i = len(groups)
			place[c.at] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], c)
	}
	return groups
}

func setErrors[K comparable, V any](calls []*call[K, V], err error) {
	for _, c := range calls {
		c.err = err
	}
}

// close takes no more reads and waits for those under way, which the end of life
// cuts short.
func (b *batcher[K, V]) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.running.Wait()
}
