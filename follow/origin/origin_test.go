// SPDX-License-Identifier: Apache-2.0

package origin_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"glimpse/chain"
	"glimpse/follow/origin"
)

// A bench is an Origin between a fake store and a fake upstream.
type bench struct {
	t      *testing.T
	source *fakeSource
	keeper *fakeKeeper
	origin *origin.Origin
	view   chain.View
}

// inBubble runs a test on a clock of its own.
func inBubble(t *testing.T, o origin.Options, test func(*bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, source: new(fakeSource), keeper: newKeeper()}
		b.origin = origin.New(first, b.source, b.keeper, o)
		b.view = b.origin.View(b.keeper)
		test(b)
		b.origin.Close()
	})
}

func key(n int) origin.Key {
	return origin.Key{Address: chain.Address{19: byte(n)}, Slot: chain.Slot{30: byte(n >> 8), 31: byte(n)}}
}

// read expects the value of the first block.
func (b *bench) read(k origin.Key) {
	b.t.Helper()
	got, err := b.view.Slot(k.Address, k.Slot)
	if want := valueOf(first, k); err != nil || got != want {
		b.t.Errorf("slot %v: got %s, %v, want %s", k, got, err, want)
	}
}

// together runs n readers at once and returns how long they took.
func (b *bench) together(n int, read func(i int)) time.Duration {
	began := time.Now()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { read(i) })
	}
	all.Wait()
	return time.Since(began)
}

func (b *bench) expectCalls(kind string, want int) {
	b.t.Helper()
	if got := b.source.count(kind); got != want {
		b.t.Errorf("calls for %s: got %d, want %d", kind, got, want)
	}
}

func TestMissesOfOneKeyMakeOneCall(t *testing.T) {
	inBubble(t, origin.Options{}, func(b *bench) {
		hold := make(chan struct{})
		b.source.hold = hold
		time.AfterFunc(time.Second, func() { close(hold) })
		b.together(50, func(i int) {
			if i >= 25 { // come while the call is under way
				<-time.After(100 * time.Millisecond)
			}
			b.read(key(1))
		})
		b.read(key(1))
		b.expectCalls("slots", 1)
		if got := b.source.sizes[0]; got != 1 {
			t.Errorf("keys in the call: got %d, want 1", got)
		}
	})
}

func TestMissesOfAMomentTravelTogether(t *testing.T) {
	inBubble(t, origin.Options{}, func(b *bench) {
		took := b.together(50, func(i int) { b.read(key(i)) })
		b.expectCalls("slots", 1)
		if took != time.Millisecond {
			t.Errorf("50 reads: got %v, want the millisecond that they wait for each other", took)
		}
	})
}

func TestFullBatchDoesNotWait(t *testing.T) {
	inBubble(t, origin.Options{Linger: time.Second, BatchSize: 10}, func(b *bench) {
		took := b.together(10, func(i int) { b.read(key(i)) })
		if took != 0 {
			t.Errorf("a full batch: got %v, want no wait", took)
		}
	})
}

func TestCallsAndTheirSizesAreBounded(t *testing.T) {
	inBubble(t, origin.Options{BatchSize: 7, MaxCalls: 2}, func(b *bench) {
		hold := make(chan struct{})
		b.source.hold = hold
		go func() {
			synctest.Wait()
			close(hold)
		}()
		b.together(100, func(i int) { b.read(key(i)) })
		if b.source.mostBusy != 2 {
			t.Errorf("calls at once: got %d, want the bound 2", b.source.mostBusy)
		}
		if got := slices.Max(b.source.sizes); got != 7 {
			t.Errorf("keys in a call: got %d, want the bound 7", got)
		}
		b.expectCalls("slots", 15)
	})
}

func TestFailedFetchIsAnErrorToAllAndIsNotRemembered(t *testing.T) {
	inBubble(t, origin.Options{}, func(b *bench) {
		b.source.down = errDown
		b.together(20, func(int) {
			if v, err := b.view.Slot(key(1).Address, key(1).Slot); !errors.Is(err, origin.ErrFetch) || !errors.Is(err, errDown) || v != (chain.Value{}) {
				t.Errorf("while the upstream is down: got %s, %v, want ErrFetch and its reason", v, err)
			}
		})
		if len(b.keeper.slots) != 0 {
			t.Errorf("kept after a failure: got %v, want nothing", b.keeper.slots)
		}
		b.source.set(func() { b.source.down = nil })
		b.read(key(1))
	})
}

func TestUpstreamThatHangsIsAnErrorInTime(t *testing.T) {
	inBubble(t, origin.Options{Timeout: 3 * time.Second}, func(b *bench) {
		b.source.hold = make(chan struct{})
		took := b.together(5, func(i int) {
			_, err := b.view.Slot(key(i).Address, key(i).Slot)
			if !errors.Is(err, origin.ErrFetch) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("read of an upstream that hangs: got %v, want ErrFetch and DeadlineExceeded", err)
			}
		})
		if took != 3*time.Second {
			t.Errorf("read of an upstream that hangs: got %v, want the timeout of 3s", took)
		}
		<-time.After(time.Second)
		b.source.set(func() { b.source.hold = nil }) // the first call would still hang
		b.read(key(0))
	})
}

func TestReadsBeyondTheBoundAreRefused(t *testing.T) {
	inBubble(t, origin.Options{MaxWaiting: 5}, func(b *bench) {
		hold := make(chan struct{})
		b.source.hold = hold
		go func() {
			synctest.Wait()
			began := time.Now()
			_, err := b.view.Slot(key(9).Address, key(9).Slot)
			if took := time.Since(began); !errors.Is(err, origin.ErrFetch) || took != 0 {
				t.Errorf("sixth read: got %v after %v, want ErrFetch at once", err, took)
			}
			close(hold)
		}()
		b.together(5, func(i int) { b.read(key(i)) })
		b.read(key(9))
	})
}

func TestWhoGivesUpLeavesTheFetchToOthers(t *testing.T) {
	inBubble(t, origin.Options{}, func(b *bench) {
		hold := make(chan struct{})
		b.source.hold = hold
		ctx, cancel := context.WithTimeout(b.t.Context(), time.Second)
		defer cancel()
		go func() {
			err := b.origin.Prefetch(ctx, b.keeper, nil, []origin.Key{key(1)})
			if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, origin.ErrFetch) {
				t.Errorf("who gave up: got %v, want DeadlineExceeded", err)
			}
			time.AfterFunc(time.Second, func() { close(hold) })
		}()
		b.read(key(1))
		b.expectCalls("slots", 1)
	})
}

func TestFirstBlockIsLeftWhenTheUpstreamLosesIt(t *testing.T) {
	inBubble(t, origin.Options{}, func(b *bench) {
		expect := func(when string, want ...chain.Ref) {
			t.Helper()
			if got := b.source.asked(); !slices.Equal(got, want) {
				t.Errorf("%s: asked at %v, want %v", when, got, want)
			}
			b.source.at = nil
		}
		b.read(key(1))
		expect("while the upstream has it", first)
		b.source.lost = map[chain.Ref]error{first: errors.New("missing trie node")}
		b.read(key(2))
		expect("when it is gone", first, held)
		b.read(key(3))
		expect("when that is known", held)
		<-time.After(2 * time.Minute)
		b.source.lost = nil
		b.read(key(4))
		expect("after a while", first)
		b.source.lost = map[chain.Ref]error{first: errDown, held: &chain.Miss{Reason: chain.Pruned}}
		_, err := b.view.Slot(key(5).Address, key(5).Slot)
		if !errors.Is(err, origin.ErrFetch) || errors.As(err, new(*chain.Miss)) {
			t.Errorf("when both are gone: got %v, want ErrFetch without the upstream's range", err)
		}
	})
}

func TestCloseEndsWhatIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, keeper := &fakeSource{hold: make(chan struct{})}, newKeeper()
		o := origin.New(first, source, keeper, origin.Options{})
		done := make(chan error)
		go func() {
			_, err := o.Slot(keeper, chain.Address{}, chain.Slot{})
			done <- err
		}()
		synctest.Wait()
		o.Close()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("read during Close: got %v, want Canceled", err)
		}
		if _, err := o.Slot(keeper, chain.Address{}, chain.Slot{}); !errors.Is(err, origin.ErrFetch) {
			t.Errorf("read after Close: got %v, want ErrFetch", err)
		}
	})
}

func TestPrefetchUsesAllCalls(t *testing.T) {
	inBubble(t, origin.Options{BatchSize: 7, MaxCalls: 3}, func(b *bench) {
		hold := make(chan struct{})
		b.source.hold = hold
		go func() {
			synctest.Wait()
			<-time.After(time.Second)
			b.source.set(func() {
				if b.source.mostBusy != 3 {
					t.Errorf("calls at once: got %d, want 3", b.source.mostBusy)
				}
			})
			close(hold)
		}()
		var keys []origin.Key
		for i := range 21 {
			keys = append(keys, key(i))
		}
		if err := b.origin.Prefetch(b.t.Context(), b.keeper, nil, keys); err != nil {
			t.Error(err)
		}
		b.expectCalls("slots", 3)
	})
}

func TestAnswersOfAnotherNumberAreErrors(t *testing.T) {
	for _, extra := range []int{-1, 1} {
		inBubble(t, origin.Options{}, func(b *bench) {
			b.source.extra = extra
			b.together(3, func(i int) {
				if v, err := b.view.Slot(key(i).Address, key(i).Slot); !errors.Is(err, origin.ErrFetch) || v != (chain.Value{}) {
					t.Errorf("%d values too many: got %s, %v, want ErrFetch", extra, v, err)
				}
			})
			if len(b.keeper.slots) != 0 {
				t.Errorf("kept: got %v, want nothing", b.keeper.slots)
			}
		})
	}
}

func TestPrefetchReadsWhatIsUnknownInFewCalls(t *testing.T) {
	inBubble(t, origin.Options{}, func(b *bench) {
		var keys []origin.Key
		var addresses []chain.Address
		for i := range 1000 {
			keys = append(keys, key(i))
		}
		for i := range 200 {
			addresses = append(addresses, key(i).Address)
		}
		b.keeper.slots[key(5)] = chain.Value{1}
		if err := b.origin.Prefetch(b.t.Context(), b.keeper, addresses, keys); err != nil {
			b.t.Fatal(err)
		}
		b.expectCalls("slots", 10)
		b.expectCalls("accounts", 2)
		if len(b.keeper.slots) != 1000 || len(b.keeper.accounts) != 200 {
			t.Errorf("kept: got %d slots and %d accounts, want 1000 and 200", len(b.keeper.slots), len(b.keeper.accounts))
		}
		if b.keeper.slots[key(5)] != (chain.Value{1}) {
			t.Error("a slot that was known: got it replaced, want it left")
		}
		b.source.down = errDown
		if err := b.origin.Prefetch(b.t.Context(), b.keeper, nil, []origin.Key{{Slot: chain.Slot{1}}}); !errors.Is(err, errDown) {
			t.Errorf("while the upstream is down: got %v, want its error", err)
		}
	})
}
