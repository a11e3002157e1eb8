// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// The histogram of durations: each bound is twice the one before, so that the
// bucket of a duration is the length of a number and not a search.
const (
	firstBound = 50 * time.Microsecond
	bounds     = 19 // up to 13.1 s
)

const (
	unknownMethod = "unknown"
	maxMethods    = 256 // far more than there are
	maxStripes    = 16
)

// calls counts the calls of all methods.
//
// A counter that two cores add to is passed from the cache of one to that of
// the other each time. So each counter is kept in stripes that are added up when
// somebody looks, and every processor has a stripe of its own, as long as it
// finds in the pool what it put there: sync.Pool keeps what is put per
// processor. Where it does not (after a garbage collection), two may share a
// stripe, which is slower and still right.
type calls struct {
	stripes int
	mine    sync.Pool // of *stripe
	next    atomic.Uint32

	mu      sync.Mutex
	methods map[string]*MethodMetrics // guarded by mu
	unknown *MethodMetrics
}

// A stripe is the right to use one stripe of every counter.
type stripe struct{ index int }

func newCalls() *calls {
	c := &calls{
		stripes: min(runtime.GOMAXPROCS(0), maxStripes),
		methods: make(map[string]*MethodMetrics),
	}
	all := make([]stripe, c.stripes)
	for i := range all {
		all[i].index = i
	}
	c.mine.New = func() any { return &all[int(c.next.Add(1))%len(all)] }
	c.unknown = &MethodMetrics{calls: c, name: unknownMethod}
	c.methods[unknownMethod] = c.unknown
	return c
}

// method returns the counters of one method, and makes them if there are none
// and there is room.
func (c *calls) method(name string) *MethodMetrics {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.methods[name]
	switch {
	case m != nil:
		return m
	case name == "" || len(c.methods) >= maxMethods || !utf8.ValidString(name):
		return c.unknown
	}
	m = &MethodMetrics{calls: c, name: name}
	c.methods[name] = m
	return m
}

// MethodMetrics counts the calls of one method.
type MethodMetrics struct {
	calls *calls
	name  string

	// byTag has an entry for each class that was seen; most methods see one.
	byTag [tagClasses]atomic.Pointer[series]
}

// Observe counts one call: which class of block it asked for, the code of its
// error or 0, and how long it took. It takes no lock and allocates nothing,
// except for the first call of a class.
func (m *MethodMetrics) Observe(tag TagClass, code int, d time.Duration) {
	s := m.byTag[tag.index()].Load()
	if s == nil {
		s = m.begin(tag)
	}
	mine := m.calls.mine.Get().(*stripe)
	s.stripes[mine.index].add(code, d)
	m.calls.mine.Put(mine)
}

func (m *MethodMetrics) begin(tag TagClass) *series {
	slot := &m.byTag[tag.index()]
	slot.CompareAndSwap(nil, &series{stripes: make([]counters, m.calls.stripes)})
	return slot.Load()
}

// A series is the calls of one method and class.
type series struct{ stripes []counters }

// A stripe is filled up to whole cache lines, so that no two share one.
const (
	countersSize = 8 * (len(codeNames) + bounds + 2)
	cacheLine    = 64
)

// counters is one stripe of a series.
type counters struct {
	codes   [len(codeNames)]atomic.Uint64
	buckets [bounds + 1]atomic.Uint64 // the last is for what exceeds all bounds
	nanos   atomic.Uint64             // the sum of all durations
	_       [(cacheLine - countersSize%cacheLine) % cacheLine]byte
}

func (c *counters) add(code int, d time.Duration) {
	// A clock that was set back must not take anything off the sum.
	d = max(d, 0)
	c.codes[codeIndex(code)].Add(1)
	c.buckets[bucket(d)].Add(1)
	c.nanos.Add(uint64(d))
}

// bucket returns the first bucket whose bound is not less than d.
func bucket(d time.Duration) int {
	if d <= firstBound {
		return 0
	}
	return min(bits.Len64(uint64(d-1)/uint64(firstBound)), bounds)
}

// totals is a series with its stripes added up.
type totals struct {
	codes   [len(codeNames)]uint64
	buckets [bounds + 1]uint64
	sum     time.Duration
}

func (s *series) totals() (t totals) {
	for i := range s.stripes {
		c := &s.stripes[i]
		for k := range c.codes {
			t.codes[k] += c.codes[k].Load()
		}
		for k := range c.buckets {
			t.buckets[k] += c.buckets[k].Load()
		}
		t.sum += time.Duration(c.nanos.Load())
	}
	return t
}
