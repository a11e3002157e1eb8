// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"slices"

	"glimpse/bench/load"
	"glimpse/bench/workload"
)

// A kind is what requests ask for.
type kind string

const (
	latest        kind = "latest"
	historical    kind = "random block"
	pending       kind = "pending"
	latestLive    kind = "latest, live feed"
	absent        kind = "absent slot"
	code          kind = "eth_getCode, 24 kB"
	batch         kind = "batch of 100"
	valuesPresent kind = "eth_getStorageValues, 100 present"
	valuesAbsent  kind = "eth_getStorageValues, 100 absent"
)

// singles are those that are measured with every number of connections.
var singles = []kind{latest, historical, absent, pending}

// manyConnections is the number of connections that most is compared with.
const manyConnections = 32

const readsPerRequest = 100 // of batches and eth_getStorageValues

// reads is how many slots or codes one request asks for.
func (k kind) reads() float64 {
	if k == batch || k == valuesPresent || k == valuesAbsent {
		return readsPerRequest
	}
	return 1
}

// live reports whether glimpse is to have a feed for it.
func (k kind) live() bool { return k == pending || k == latestLive }

// askable reports whether a peer knows what is asked for.
func (k kind) askable(peer string) bool {
	switch k {
	case valuesPresent, valuesAbsent:
		return peer == glimpseName || peer == gethName
	case latestLive:
		return peer == glimpseName
	}
	return true
}

func (k kind) draw(d *workload.Drawer, oldest uint64) []byte {
	switch k {
	case historical:
		return d.Historical(max(oldest, 1))
	case pending:
		return d.Present(workload.Pending)
	case absent:
		return d.Absent(workload.Latest)
	case code:
		return d.Code(workload.Latest)
	case batch:
		return d.Batch(readsPerRequest, workload.Latest)
	case valuesPresent:
		return d.PresentValues(readsPerRequest, workload.Latest)
	case valuesAbsent:
		return d.AbsentValues(readsPerRequest, workload.Latest)
	default:
		return d.Present(workload.Latest)
	}
}

// A loadCase is a kind of request over a number of connections.
type loadCase struct {
	kind        kind
	connections int
}

// cases returns what is measured, in the order of the tables.
func cases(connections []int) (all []loadCase) {
	for _, k := range singles {
		for _, n := range connections {
			all = append(all, loadCase{k, n})
		}
	}
	many := reference(connections)
	for _, k := range []kind{latestLive, code, batch, valuesPresent, valuesAbsent} {
		all = append(all, loadCase{k, many})
	}
	return all
}

// inTurn returns cases as they are measured: what is compared with our own latest is
// measured soon after it, and pending beside latest meanwhile.
func inTurn(all []loadCase) []loadCase {
	return slices.SortedStableFunc(slices.Values(all), func(a, b loadCase) int { return a.connections - b.connections })
}

// reference is the number of connections that requirements are about, or the
// greatest there is.
func reference(connections []int) int {
	if slices.Contains(connections, manyConnections) {
		return manyConnections
	}
	return slices.Max(connections)
}

const (
	poolSize      = 50_000
	largePoolSize = 500 // of requests for many slots
)

// A poolKey is what decides which requests there are.
type poolKey struct {
	kind   kind
	oldest uint64
}

// pools makes each pool once.
type pools struct {
	chain *workload.Chain
	seed  uint64
	made  map[poolKey]*load.Pool
	// samples are some of the bodies of each pool.
	samples map[poolKey][][]byte
}

func newPools(chain *workload.Chain, seed uint64) *pools {
	return &pools{chain: chain, seed: seed, made: make(map[poolKey]*load.Pool), samples: make(map[poolKey][][]byte)}
}

// keyFor returns which pool a peer is asked from: only history differs.
func keyFor(k kind, p *peer) poolKey {
	if k == historical {
		return poolKey{k, p.oldest}
	}
	return poolKey{kind: k}
}

func (p *pools) pool(key poolKey) *load.Pool {
	if made, ok := p.made[key]; ok {
		return made
	}
	size := poolSize
	if key.kind.reads() > 1 {
		size = largePoolSize
	}
	samples := 50
	if key.kind.reads() > 1 || key.kind == code {
		samples = 5
	}
	made, d := new(load.Pool), p.chain.NewDrawer(p.seed)
	for i := range size {
		body := key.kind.draw(d, key.oldest)
		made.Add(body)
		if i < samples {
			p.samples[key] = append(p.samples[key], body)
		}
	}
	p.made[key] = made
	return made
}

// sample returns some requests of a pool.
func (p *pools) sample(key poolKey) [][]byte {
	p.pool(key)
	return p.samples[key]
}
