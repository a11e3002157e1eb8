// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
)

// A Head is what an upstream says is the end of its chain. That it is the end
// is its word: it says what to fetch.
type Head struct {
	Latest chain.Ref
	Parent chain.Hash // of Latest
	Time   uint64     // of Latest

	// Header is that of Latest, nil where the upstream did not tell all of it:
	// it has the hash that Latest says.
	Header *types.Header

	// Safe and Finalized have the zero hash while the upstream knows of none.
	Safe, Finalized chain.Ref

	Upstream string // which one says so
}

func decodeHead(raw json.RawMessage) (Head, error) {
	var h struct {
		Number *hexutil.Uint64 `json:"number"`
		Hash   *chain.Hash     `json:"hash"`
		Parent *chain.Hash     `json:"parentHash"`
		Time   *hexutil.Uint64 `json:"timestamp"`
	}
	if err := json.Unmarshal(raw, &h); err != nil {
		return Head{}, fmt.Errorf("%w: header: %w", errMalformed, err)
	}
	if h.Number == nil || h.Hash == nil || h.Parent == nil || h.Time == nil || *h.Hash == (chain.Hash{}) {
		return Head{}, fmt.Errorf("%w: header without number, hash, parent or time", errMalformed)
	}
	return Head{
		Latest: chain.Ref{Number: chain.Number(*h.Number), Hash: *h.Hash},
		Parent: *h.Parent,
		Time:   uint64(*h.Time),
	}, nil
}

// withHeader reads the whole header too. A field that is missing, or of a fork
// that is not known here, makes another hash.
func withHeader(head Head, raw json.RawMessage) Head {
	header := new(types.Header)
	if err := json.Unmarshal(raw, header); err == nil && header.Hash() == head.Latest.Hash {
		head.Header = header
	}
	return head
}

// Heads delivers the head of the upstream that leads, whenever it changed,
// while Run runs. A lower one than before is a reorganisation: where the lead only
// went to an upstream that is a little behind, that has SilentAfter to catch up.
// The channel has room for the newest only: a slow consumer
// sees that one, never a backlog. It is never closed and is for one consumer.
func (p *Pool) Heads() <-chan Head { return p.heads }

// Head returns the head that Heads told of last.
func (p *Pool) Head() Head {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.told
}

// Run follows the heads of all upstreams until ctx ends, and returns its error.
// That upstreams are away is a state, not a failure; Status tells of it.
func (p *Pool) Run(ctx context.Context) error {
	var watchers sync.WaitGroup
	for _, e := range p.endpoints {
		watchers.Go(func() { p.watch(ctx, e) })
	}
	watchers.Wait()
	return ctx.Err()
}

// watch keeps the health of one endpoint.
func (p *Pool) watch(ctx context.Context, e *endpoint) {
	for ctx.Err() == nil {
		err := p.watchOnce(ctx, e)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			e.failed(err)
			p.lead()
		}
		wait := time.Until(e.snapshot().restsTo)
		if errors.Is(err, ErrWrongChain) {
			wait = p.options.MaxBackoff
		}
		if err == nil {
			wait = p.pace(e)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// pace is how long to wait between polls. Those that do not lead are asked less
// often: it is enough to know that they are there.
func (p *Pool) pace(e *endpoint) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e == p.leader || p.leader == nil {
		return p.options.PollEvery
	}
	return 4 * p.options.PollEvery
}

// watchOnce probes the endpoint where that has not succeeded yet, then listens
// for as long as its subscription goes well, or polls once.
func (p *Pool) watchOnce(ctx context.Context, e *endpoint) error {
	can := e.snapshot().can
	if can == nil {
		var err error
		if can, err = e.probe(ctx); err == nil {
			err = p.admit(e, can)
		}
		if err != nil {
			return err
		}
	}
	if can.Subscriptions {
		return p.listen(ctx, e)
	}
	_, err := p.poll(ctx, e)
	return err
}

// poll asks for the head with safe and finalized, and reports whether the head
// is another than was known.
func (p *Pool) poll(ctx context.Context, e *endpoint) (news bool, err error) {
	answers, err := e.batch(ctx, []request{
		ask("eth_getBlockByNumber", "latest", false),
		ask("eth_getBlockByNumber", "safe", false),
		ask("eth_getBlockByNumber", "finalized", false),
	})
	if err != nil {
		return false, err
	}
	if err := answers[0].err; err != nil {
		return false, e.fail("eth_getBlockByNumber", err)
	}
	head, err := decodeHead(answers[0].result)
	if err != nil {
		return false, e.fail("eth_getBlockByNumber", err)
	}
	head = withHeader(head, answers[0].result)
	for i, field := range []*chain.Ref{&head.Safe, &head.Finalized} {
		// A node that knows of no such block says so with null or an error.
		if a := answers[i+1]; a.err == nil {
			tagged, err := decodeHead(a.result)
			if err != nil {
				return false, e.fail("eth_getBlockByNumber", err)
			}
			*field = tagged.Latest
		}
	}
	head.Upstream = e.name
	return p.advance(e, head), nil
}

// listen follows a subscription until it fails. Safe and finalized are polled
// for, half as often as the head of an upstream without subscriptions would be;
// that poll also finds the heads that a silent subscription did not tell of.
func (p *Pool) listen(ctx context.Context, e *endpoint) error {
	heads := make(chan json.RawMessage, 1) // what finds it full is dropped: the next poll finds the latest
	subscribing, cancel := context.WithTimeout(ctx, p.options.Timeout)
	done, end, err := e.socket.subscribe(subscribing, e.ids.Add(1), heads)
	cancel()
	if err != nil {
		return e.fail("eth_subscribe", err)
	}
	defer end() // also of calls that share it: where a subscription fails, they will
	if _, err := p.poll(ctx, e); err != nil {
		return err
	}
	heard := time.Now()
	tick := time.NewTicker(2 * p.options.PollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-done:
			return e.fail("eth_subscribe", errDisconnected)
		case raw := <-heads:
			heard = time.Now()
			head, err := decodeHead(raw)
			if err != nil {
				return e.fail("eth_subscribe", err)
			}
			head = withHeader(head, raw)
			known := e.snapshot().head
			head.Safe, head.Finalized, head.Upstream = known.Safe, known.Finalized, e.name
			p.advance(e, head)
		case <-tick.C:
			news, err := p.poll(ctx, e)
			if err != nil {
				return err
			}
			// Silent, and yet there was something to tell: the subscription is
			// dead. A chain that stands still is not its fault.
			if news && time.Since(heard) >= p.options.SilentAfter {
				return e.fail("eth_subscribe", errSilent)
			}
		}
	}
}

var errSilent = errors.New("the subscription is silent though there are new heads")

// advance notes an endpoint's head and reports whether its latest block is
// another one.
func (p *Pool) advance(e *endpoint, head Head) (news bool) {
	e.mu.Lock()
	news = e.state.head.Latest != head.Latest
	e.state.head = head
	e.mu.Unlock()
	p.lead()
	return news
}

// lead chooses who leads and tells of its head where that is news. The leader
// stays while it is fit, so that two equal upstreams do not take turns.
func (p *Pool) lead() {
	now, best := time.Now(), p.highest()
	p.mu.Lock()
	defer p.mu.Unlock()
	fit := func(e *endpoint) bool {
		s := e.snapshot()
		return s.fit(now, best, p.options.MaxLag)
	}
	if p.leader == nil || !fit(p.leader) {
		for _, e := range p.endpoints {
			if fit(e) {
				p.leader = e
				break
			}
		}
	}
	if p.leader == nil {
		return
	}
	head := p.leader.snapshot().head
	if head.Latest == p.told.Latest && head.Safe == p.told.Safe && head.Finalized == p.told.Finalized {
		return
	}
	// A new leader that is a little behind the old one is no reorganisation; one
	// that stays behind is.
	behind := head.Upstream != p.told.Upstream && head.Latest.Number < p.told.Latest.Number
	if behind && now.Sub(p.toldAt) < p.options.SilentAfter {
		return
	}
	p.told, p.toldAt = head, now
	select {
	case <-p.heads: // nobody took it
	default:
	}
	p.heads <- head // has room: all who send hold the mutex
}
