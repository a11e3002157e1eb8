// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"glimpse/chain"
	"glimpse/ethapi"
	"glimpse/follow/origin"
	"glimpse/follow/upstream"
	"glimpse/jsonrpc"
)

// A writerLink asks the writer for what only it can do. The writer may be away, when
// the replica starts too: then who asks is told so.
type writerLink struct {
	url  string
	log  *slog.Logger
	pool atomic.Pointer[upstream.Pool] // nil before it was reached
}

var _ origin.Source = (*writerLink)(nil)

func newWriterLink(url string, log *slog.Logger) *writerLink { return &writerLink{url: url, log: log} }

const (
	writerRetry = 2 * time.Second
	writerPoll  = 2 * time.Second // its head is of no interest; this is how a writer that came back is noticed
)

// run keeps the link until ctx ends.
func (w *writerLink) run(ctx context.Context) error {
	said := ""
	for {
		pool, err := upstream.Open(ctx, upstream.Options{URLs: []string{w.url}, PollEvery: writerPoll})
		if err == nil {
			defer pool.Close()
			w.pool.Store(pool)
			w.log.Info("writer reached", "chain", pool.ChainID())
			return untilDone(ctx, pool.Run(ctx))
		}
		if ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			w.log.Warn("writer cannot be reached, transactions are refused until it can", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(writerRetry):
		}
	}
}

func (w *writerLink) source() (stateSource, error) {
	pool := w.pool.Load()
	if pool == nil {
		return stateSource{}, fmt.Errorf("%w: the writer was not reached yet", chain.ErrUnavailable)
	}
	return stateSource{Pool: pool}, nil
}

// Slots implements origin.Source.
func (w *writerLink) Slots(ctx context.Context, at chain.Ref, keys []origin.Key) ([]chain.Value, error) {
	s, err := w.source()
	if err != nil {
		return nil, err
	}
	return s.Slots(ctx, at, keys)
}

// Accounts implements origin.Source.
func (w *writerLink) Accounts(ctx context.Context, at chain.Ref, addresses []chain.Address) ([]origin.Account, error) {
	s, err := w.source()
	if err != nil {
		return nil, err
	}
	return s.Accounts(ctx, at, addresses)
}

// Codes implements origin.Source.
func (w *writerLink) Codes(ctx context.Context, at chain.Ref, keys []origin.CodeKey) ([][]byte, error) {
	s, err := w.source()
	if err != nil {
		return nil, err
	}
	return s.Codes(ctx, at, keys)
}

// A sender lets ethapi send transactions on to the writer. Of a sparse store it also
// asks for what is not found.
type sender struct {
	writer *writerLink
	sparse bool
}

var _ ethapi.Forwarder = sender{}

// Forward implements ethapi.Forwarder.
func (s sender) Forward(ctx context.Context, method string, params []byte) ([]byte, error) {
	switch method {
	case "eth_sendRawTransaction", "eth_sendRawTransactionSync":
	default:
		if !s.sparse {
			return nil, jsonrpc.MethodNotFound([]byte(method))
		}
	}
	from, err := s.writer.source()
	if err != nil {
		return nil, err
	}
	return forwarder{from.Pool}.Forward(ctx, method, params)
}
