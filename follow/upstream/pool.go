// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"glimpse/chain"
)

// A Pool is the upstreams of one chain. It is safe for concurrent use.
//
// Without Run it knows what Open found out; with Run it follows the heads of
// its upstreams, finds those that come back and avoids those that fall behind.
type Pool struct {
	options   Options
	endpoints []*endpoint
	chainID   uint64
	genesis   chain.Hash

	mu     sync.Mutex
	leader *endpoint
	told   Head
	toldAt time.Time

	// heads holds at most the newest head: who does not take it sees the next
	// one in its place.
	heads chan Head
}

// Open probes all upstreams and fails where none answers, or none is of the
// wanted chain. Those that do not answer now may later, while Run runs. Whoever
// opens a Pool must Close it.
func Open(ctx context.Context, o Options) (*Pool, error) {
	if len(o.URLs) == 0 {
		return nil, errors.New("no upstream is given")
	}
	o = o.withDefaults()
	p := &Pool{options: o, chainID: o.ChainID, genesis: o.Genesis, heads: make(chan Head, 1)}
	for i, u := range o.URLs {
		e, err := newEndpoint(u, &p.options)
		if err != nil {
			return nil, fmt.Errorf("upstream %d: %w", i+1, err)
		}
		if slices.ContainsFunc(p.endpoints, func(other *endpoint) bool { return other.name == e.name }) {
			e.name = fmt.Sprintf("%s#%d", e.name, i+1)
		}
		p.endpoints = append(p.endpoints, e)
	}
	if err := p.probeAll(ctx); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// probeAll decides what chain this is, by the first upstream in order that
// answers.
func (p *Pool) probeAll(ctx context.Context) error {
	found := make([]*Capabilities, len(p.endpoints))
	failures := make([]error, len(p.endpoints))
	var probes sync.WaitGroup
	for i, e := range p.endpoints {
		probes.Go(func() { found[i], failures[i] = e.probe(ctx) })
	}
	probes.Wait()
	usable := false
	for i, e := range p.endpoints {
		if failures[i] == nil {
			orDefault(&p.chainID, found[i].ChainID)
			orDefault(&p.genesis, found[i].Genesis)
			failures[i] = p.admit(e, found[i])
		}
		if failures[i] != nil {
			e.failed(failures[i])
			continue
		}
		usable = true
	}
	if !usable {
		return errors.Join(failures...)
	}
	p.lead()
	return nil
}

// admit lets an endpoint be asked if it is of this chain.
func (p *Pool) admit(e *endpoint, can *Capabilities) error {
	var err error
	switch {
	case can.ChainID != p.chainID:
		err = fmt.Errorf("%s: %w: chain id %d, want %d", e.name, ErrWrongChain, can.ChainID, p.chainID)
	case can.Genesis != p.genesis:
		err = fmt.Errorf("%s: %w: genesis %s, want %s", e.name, ErrWrongChain, can.Genesis, p.genesis)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state.can = can
	if err != nil {
		e.state.can = nil
		return err
	}
	e.state.head = can.head
	return nil
}

// Close ends all connections. Calls that are on their way fail.
func (p *Pool) Close() {
	for _, e := range p.endpoints {
		e.transport.close()
	}
}

// ChainID returns the id of the chain that all upstreams must have.
func (p *Pool) ChainID() uint64 { return p.chainID }

// Genesis returns the hash of block 0.
func (p *Pool) Genesis() chain.Hash { return p.genesis }

// Status tells of each upstream, in the order of Options.URLs.
func (p *Pool) Status() []Status {
	p.mu.Lock()
	leader := p.leader
	p.mu.Unlock()
	now, best := time.Now(), p.highest()
	all := make([]Status, len(p.endpoints))
	for i, e := range p.endpoints {
		s := e.snapshot()
		all[i] = Status{
			Name:    e.name,
			Leads:   e == leader,
			Latest:  s.head.Latest,
			Lag:     s.lag(best),
			Latency: s.latency,
			Lies:    s.lies,
			Error:   s.last,
			Can:     s.can,
		}
		all[i].Healthy = s.fit(now, best, p.options.MaxLag)
	}
	return all
}

// Can tells what the upstream that leads can do. It must not be modified; nil
// where no upstream is of use.
func (p *Pool) Can() *Capabilities {
	p.mu.Lock()
	leader := p.leader
	p.mu.Unlock()
	if leader == nil {
		return nil
	}
	return leader.snapshot().can
}

func (s *health) lag(best chain.Number) chain.Number {
	return best - min(best, s.head.Latest.Number)
}

func (s *health) fit(now time.Time, best, maxLag chain.Number) bool {
	return s.can != nil && !now.Before(s.restsTo) && s.lag(best) <= maxLag
}

// highest is the best block of the upstreams that are not in trouble.
func (p *Pool) highest() (best chain.Number) {
	now := time.Now()
	for _, e := range p.endpoints {
		if s := e.snapshot(); s.can != nil && !now.Before(s.restsTo) {
			best = max(best, s.head.Latest.Number)
		}
	}
	return best
}

// candidates are the endpoints that can do something, in the order to ask
// them: the leader, others by their latency, then those that are behind or
// rest, which are better than nobody.
func (p *Pool) candidates(able func(*Capabilities) bool) (list []*endpoint, err error) {
	p.mu.Lock()
	leader := p.leader
	p.mu.Unlock()
	now, best := time.Now(), p.highest()
	type ranked struct {
		endpoint *endpoint
		rank     int
		latency  time.Duration
	}
	var all []ranked
	known := false
	for _, e := range p.endpoints {
		s := e.snapshot()
		if s.can == nil {
			continue
		}
		known = true
		if able != nil && !able(s.can) {
			continue
		}
		rank := 1
		switch {
		case !s.fit(now, best, p.options.MaxLag):
			rank = 2
		case e == leader:
			rank = 0
		}
		all = append(all, ranked{e, rank, s.latency})
	}
	switch {
	case !known:
		return nil, ErrUnavailable
	case len(all) == 0:
		return nil, ErrCannot
	}
	slices.SortStableFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.latency, b.latency))
	})
	for _, r := range all {
		list = append(list, r.endpoint)
	}
	return list, nil
}

// on lets one upstream after the other do f until one can, around all of them
// several times where they are in trouble. able says which ones are asked, nil
// all.
func (p *Pool) on(ctx context.Context, able func(*Capabilities) bool, f func(context.Context, *endpoint) error) error {
	for round := 1; ; round++ {
		err, again := p.around(ctx, able, f)
		if err == nil || !again || round >= p.options.Rounds || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(backoff(p.options.MinBackoff, p.options.MaxBackoff, round)):
		case <-ctx.Done():
			return err
		}
	}
}

// around asks each candidate once. Another time may help where one of them was
// in trouble.
func (p *Pool) around(ctx context.Context, able func(*Capabilities) bool, f func(context.Context, *endpoint) error) (_ error, again bool) {
	list, err := p.candidates(able)
	if err != nil {
		return err, errors.Is(err, ErrUnavailable)
	}
	var unknowing, troubled []error
	for _, e := range list {
		err := f(ctx, e)
		if err == nil {
			return nil, false
		}
		if ctx.Err() != nil {
			return err, false
		}
		switch judge(err) {
		case definite:
			return err, false
		case elsewhere:
			unknowing = append(unknowing, err)
		case faulty:
			e.failed(err)
			p.lead()
			troubled = append(troubled, err)
		}
	}
	// That one upstream does not know a block is no answer while another one
	// could not be asked.
	if len(troubled) > 0 {
		return errors.Join(troubled...), true
	}
	return errors.Join(unknowing...), false
}

// Call asks for anything, and returns a result that is not null. The method is
// passed on as it is: whoever calls decides what may be asked.
func (p *Pool) Call(ctx context.Context, method string, params ...any) (result json.RawMessage, err error) {
	err = p.on(ctx, nil, func(ctx context.Context, e *endpoint) (err error) {
		result, err = e.call(ctx, method, params...)
		return err
	})
	return result, err
}
