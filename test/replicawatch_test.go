// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// observations are what was seen of the replicas while one thing went wrong.
type observations struct {
	mu      sync.Mutex
	wrong   []string          // answers that were, and replicas that said what was not true of them
	sealed  map[uint64]string // by block, what was read and from which hash
	reads   int
	refused int
	asked   int            // whether a replica is ready
	ready   int            // how often it was
	reasons map[string]int // why it was not
}

// observe begins new observations.
func (w *replicaWorld) observe() *observations {
	o := &observations{sealed: make(map[uint64]string), reasons: make(map[string]int)}
	w.seen.Store(o)
	return o
}

func (o *observations) note(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
}

func (o *observations) complain(format string, args ...any) {
	o.note(func() { o.wrong = append(o.wrong, fmt.Sprintf(format, args...)) })
}

func (o *observations) enough(reads int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reads >= reads && o.asked > 0
}

// judge fails t for all that was wrong, for reasons to be unready that there were
// none of, and for those that must have been given and were not.
func (o *observations) judge(t *testing.T, must string, may ...string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, text := range o.wrong {
		t.Error(text)
	}
	for reason := range o.reasons {
		if reason != must && !slices.Contains(may, reason) {
			t.Errorf("a replica was unready with %q, which it had no reason for", reason)
		}
	}
	if must != "" && o.reasons[must] == 0 {
		t.Errorf("no replica said %q, of %v", must, o.reasons)
	}
	t.Logf("%d reads from snapshots of %d blocks, %d refused; asked %d times whether ready, %d times it was, unready with %v",
		o.reads, len(o.sealed), o.refused, o.asked, o.ready, o.reasons)
}

// confirm compares all that was read of sealed blocks with what the writer says.
func (w *replicaWorld) confirm(t *testing.T, o *observations) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	url := w.writer.Load().url()
	for n, seen := range o.sealed {
		want := fmt.Sprintf("%d from %s", slotAt(t, url, w.cell, fmt.Sprintf("%#x", n)), hashOf(t, url, n))
		if seen != want {
			t.Errorf("at block %d replicas said %s, the writer says %s", n, seen, want)
		}
	}
}

// read reads from the replicas in turn until ctx ends, each time from a snapshot at
// least as new as the last one, and sees that neither block nor value goes back.
func (w *replicaWorld) read(ctx context.Context, t *testing.T) {
	var block, value uint64
	for i := 0; ctx.Err() == nil; i++ {
		seen := w.seen.Load()
		tag := [...]string{"latest", "latest", "pending"}[i%3]
		url := w.replicas[i/3%len(w.replicas)].Load().url()
		answer, err := rpc(ctx, url, map[string]string{"Glimpse-At-Least": strconv.FormatUint(block, 10), "Glimpse-Wait": "500"},
			"eth_getStorageAt", w.cell, "0x0", tag)
		if err != nil {
			if ctx.Err() == nil {
				seen.note(func() { seen.refused++ }) // it is behind, or down: the next one is asked
				pause(t, time.Millisecond)
			}
			continue
		}
		sealed, _, _ := strings.Cut(answer.snapshot, ";")
		number, hash, _ := strings.Cut(sealed, ":")
		at, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			seen.complain("snapshot %q: %v", answer.snapshot, err)
			return
		}
		got := slotValue(t, answer.Result)
		if at < block || got < value || got > w.highest.Load() {
			seen.complain("read %d on %s after block %d: block %d, value %d after %d", i, tag, block, at, got, value)
		}
		seen.note(func() { seen.reads++ })
		block = at
		if tag == "latest" {
			value = got
			seen.latest(at, fmt.Sprintf("%d from %s", got, hash))
		}
		pause(t, 2*time.Millisecond)
	}
}

func (o *observations) latest(at uint64, read string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if before, ok := o.sealed[at]; ok && before != read {
		o.wrong = append(o.wrong, fmt.Sprintf("block %d has %s, and had %s", at, read, before))
	}
	o.sealed[at] = read
}

// watchReadiness sees until ctx ends that a replica that says that it is ready is not
// far behind the writer.
func (w *replicaWorld) watchReadiness(ctx context.Context, t *testing.T) {
	type moment struct {
		time   time.Time
		height uint64
	}
	var past []moment
	heightOf := func(s *server) (uint64, bool) {
		answer, err := rpc(ctx, s.url(), nil, "eth_blockNumber")
		var n hexutil.Uint64
		return uint64(n), err == nil && json.Unmarshal(answer.Result, &n) == nil
	}
	// What was there longer ago than the lag that is allowed, and the time that it
	// takes to notice, must be here.
	const noticed = 2*worldMaxLag + 2*time.Second
	for ; ctx.Err() == nil; pause(t, 50*time.Millisecond) {
		seen := w.seen.Load()
		if n, ok := heightOf(w.writer.Load()); ok {
			past = append(past, moment{time.Now(), n})
		}
		must := uint64(0)
		for len(past) > 1 && time.Since(past[1].time) > noticed {
			past = past[1:]
		}
		if len(past) > 0 && time.Since(past[0].time) > noticed {
			must = past[0].height
		}
		for i := range w.replicas {
			s := w.replicas[i].Load()
			r, err := s.askReadiness(ctx, "")
			if err != nil {
				continue
			}
			n, ok := heightOf(s)
			seen.note(func() {
				seen.asked++
				for _, reason := range r.reasons {
					seen.reasons[reason]++
				}
			})
			if r.status != http.StatusOK || !ok {
				continue
			}
			seen.note(func() { seen.ready++ })
			if n < must {
				seen.complain("replica %d says that it is ready at block %d, the writer was at %d for %v", i, n, must, noticed)
			}
		}
	}
}
