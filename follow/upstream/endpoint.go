// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// An endpoint is one upstream.
type endpoint struct {
	name      string // for errors and Status: without credentials
	transport transport
	socket    *socketTransport // the transport, where it can subscribe
	options   *Options
	turns     chan struct{} // one for each exchange at a time; whoever finds it full waits
	ids       atomic.Uint64
	batchMost atomic.Int64 // entries that it takes in one batch; shrinks when it refuses

	mu    sync.Mutex
	state health
}

func newEndpoint(rawURL string, o *Options) (*endpoint, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("an upstream's URL cannot be read") // what it holds is not repeated
	}
	if u.Host == "" {
		return nil, errors.New("an upstream's URL has no host")
	}
	e := &endpoint{name: u.Scheme + "://" + u.Host, options: o, turns: make(chan struct{}, o.MaxConcurrent)}
	e.batchMost.Store(int64(o.BatchSize))
	client := &http.Client{Transport: o.roundTripper()}
	switch u.Scheme {
	case "http", "https":
		e.transport = &httpTransport{url: u, client: client, limit: o.MaxAnswer}
	case "ws", "wss":
		e.socket = &socketTransport{url: u, client: client, limit: o.MaxAnswer}
		e.transport = e.socket
	default:
		return nil, fmt.Errorf("upstream %s: want http, https, ws or wss", e.name)
	}
	return e, nil
}

// roundTripper returns the transport that was given, or one of the upstream's
// own, so that closing it closes nothing of anybody else's.
func (o *Options) roundTripper() http.RoundTripper {
	if o.RoundTripper != nil {
		return o.RoundTripper
	}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		MaxIdleConnsPerHost:   o.MaxConcurrent,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: o.SlowTimeout,
	}
}

// call asks one question and returns its result, which is not null.
func (e *endpoint) call(ctx context.Context, method string, params ...any) (json.RawMessage, error) {
	answers, err := e.exchange(ctx, []request{ask(method, params...)}, e.options.Timeout)
	if err != nil {
		return nil, e.fail(method, err)
	}
	if answers[0].err != nil {
		return nil, e.fail(method, answers[0].err)
	}
	return answers[0].result, nil
}

// slowCall is call for what takes long, such as tracing a block.
func (e *endpoint) slowCall(ctx context.Context, method string, params ...any) (json.RawMessage, error) {
	answers, err := e.exchange(ctx, []request{ask(method, params...)}, e.options.SlowTimeout)
	if err != nil {
		return nil, e.fail(method, err)
	}
	if answers[0].err != nil {
		return nil, e.fail(method, answers[0].err)
	}
	return answers[0].result, nil
}

func (e *endpoint) fail(method string, err error) error {
	return &CallError{Upstream: e.name, Method: method, Err: err}
}

// results asks many questions, all of which must be answered, and packs them in
// as few batches as the upstream takes.
func (e *endpoint) results(ctx context.Context, requests []request) ([]json.RawMessage, error) {
	answers, err := e.batch(ctx, requests)
	if err != nil {
		return nil, err
	}
	results := make([]json.RawMessage, len(answers))
	for i, a := range answers {
		if a.err != nil {
			return nil, e.fail(requests[i].method, a.err)
		}
		results[i] = a.result
	}
	return results, nil
}

// batch asks many questions; each has an answer of its own. An error means that
// the questions could not be asked.
func (e *endpoint) batch(ctx context.Context, requests []request) ([]answer, error) {
	answers := make([]answer, 0, len(requests))
	for len(requests) > 0 {
		n := min(len(requests), int(e.batchMost.Load()))
		some, err := e.exchange(ctx, requests[:n], e.options.Timeout)
		if n > 1 && (errors.Is(err, errBatchRefused) || errors.Is(err, errTooLarge)) {
			e.batchMost.CompareAndSwap(e.batchMost.Load(), int64(n/2))
			continue
		}
		if err != nil {
			return nil, e.fail(requests[0].method, err)
		}
		if tooMuch := slices.IndexFunc(some, wasTooMuch); n > 1 && tooMuch >= 0 {
			// The answers up to there are good. One that is too large by itself
			// gets its turn alone, and is an error then.
			if tooMuch == 0 {
				if some, err = e.exchange(ctx, requests[:1], e.options.Timeout); err != nil {
					return nil, e.fail(requests[0].method, err)
				}
				tooMuch = 1
			}
			some, n = some[:tooMuch], tooMuch
		}
		answers = append(answers, some...)
		requests = requests[n:]
	}
	return answers, nil
}

// wasTooMuch finds the entries that geth leaves out of a batch whose answers
// became too large together.
func wasTooMuch(a answer) bool {
	var rpc *RPCError
	return errors.As(a.err, &rpc) && rpc.Code == codeTooLarge
}

// exchange sends one body and reads the answers to it.
func (e *endpoint) exchange(ctx context.Context, requests []request, timeout time.Duration) ([]answer, error) {
	select {
	case e.turns <- struct{}{}:
		defer func() { <-e.turns }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	n := uint64(len(requests))
	first := e.ids.Add(n) - n + 1
	body, err := encodeRequests(requests, first)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	start := time.Now()
	data, err := e.transport.exchange(ctx, body, first, len(requests))
	if err != nil {
		return nil, err
	}
	e.measure(time.Since(start))
	return decodeAnswers(data, first, len(requests))
}
