// SPDX-License-Identifier: Apache-2.0

package head_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"glimpse/chain"
	"glimpse/head"
)

func progress(t testing.TB, text string) chain.Progress {
	t.Helper()
	p, err := chain.ParseProgress(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestStamp(t *testing.T) {
	state := newState(0xab, 3, 9)
	hash := "0xab" + strings.Repeat("00", 30) + "09"
	tests := []struct {
		name    string
		overlay head.Overlay
		want    string
	}{
		{"nothing pre-confirmed", nil, "9:" + hash + ";pending=latest"},
		{"a flashblock", &fakeOverlay{parent: state.Head(), index: 12}, "9:" + hash + ";pending=10.12"},
		{"a flashblock on another block", &fakeOverlay{parent: state.ref(8)}, "9:" + hash + ";pending=latest"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var p head.Publisher
			p.Publish(newState(0xab, 3, 9), tt.overlay, time.Time{})
			defer p.Close()
			l := p.Acquire()
			defer l.Release()
			if got := string(l.Stamp()); got != tt.want {
				t.Errorf("Stamp = %s, want %s", got, tt.want)
			}
		})
	}
}

// P3: what is out of date is not read, though nobody withdrew it, and a Lease
// that was taken in time keeps what it began with (P1).
func TestOverlayGoesOutOfDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := newState(1, 0, 9)
		var p head.Publisher
		p.Publish(state, &fakeOverlay{parent: state.Head()}, time.Now().Add(time.Second))
		defer p.Close()
		check := func(l *head.Lease, want bool) {
			t.Helper()
			stamp := "pending=latest"
			value := state.ref(9).Hash
			if want {
				stamp, value = "pending=10.3", changedValue
			}
			if _, ok := l.Pending(); ok != want {
				t.Errorf("something is pre-confirmed: %v, want %v", ok, want)
			}
			if _, _, ok := l.PendingTransaction(preconfirmedTx); ok != want {
				t.Errorf("the transaction is pre-confirmed: %v, want %v", ok, want)
			}
			if _, ok := l.PendingDiff(); ok != want {
				t.Errorf("there is a pre-confirmed diff: %v, want %v", ok, want)
			}
			if !strings.HasSuffix(string(l.Stamp()), stamp) {
				t.Errorf("the stamp is %s, want %s", l.Stamp(), stamp)
			}
			v, err := l.View(chain.Pending)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := v.Slot(changedAddress, changedSlot); err != nil || got != value {
				t.Errorf("the slot on pending is %s, %v, want %s", got, err, value)
			}
		}
		pass := func(d time.Duration) { <-time.After(d) }

		early := p.Acquire()
		pass(time.Second - time.Nanosecond)
		last := p.Acquire()
		pass(time.Nanosecond)
		late := p.Acquire()
		check(early, true)
		check(last, true)
		check(late, false)
		if late.Latest() != early.Latest() {
			t.Errorf("latest is %v, want %v", late.Latest(), early.Latest())
		}
		miss := new(chain.Miss)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.AcquireAtLeast(ctx, progress(t, "10.3")); !errors.As(err, &miss) {
			t.Errorf("waiting for what is out of date gives %v, want a miss", err)
		}
		for _, l := range []*head.Lease{early, last, late} {
			l.Release()
		}
	})
}

func TestClockOfThePublisher(t *testing.T) {
	state, now := newState(1, 0, 9), time.Unix(1000, 0)
	p := head.Publisher{Now: func() time.Time { return now }}
	p.Publish(state, &fakeOverlay{parent: state.Head()}, now.Add(time.Second))
	defer p.Close()
	for _, want := range []bool{true, false} {
		l := p.Acquire()
		if _, ok := l.Pending(); ok != want {
			t.Errorf("at %v something is pre-confirmed: %v, want %v", now, ok, want)
		}
		l.Release()
		now = now.Add(time.Second)
	}
}

// A waiter is one AcquireAtLeast.
type waiter struct {
	lease *head.Lease
	err   error
	took  time.Duration
	done  chan struct{}
}

func wait(t *testing.T, p *head.Publisher, text string, most time.Duration) *waiter {
	w := &waiter{done: make(chan struct{})}
	want := progress(t, text)
	go func() {
		defer close(w.done)
		ctx, cancel := context.WithTimeout(t.Context(), most)
		defer cancel()
		start := time.Now()
		w.lease, w.err = p.AcquireAtLeast(ctx, want)
		w.took = time.Since(start)
	}()
	return w
}

func TestWaiting(t *testing.T) {
	tests := []struct {
		name  string
		want  string
		after time.Duration
		latest,
		index int
	}{
		{"reached already", "5", 0, 5, 0},
		{"an older one", "4", 0, 5, 0},
		{"the next flashblock", "6.4", time.Second, 5, 4},
		{"the flashblock after", "6.5", 2 * time.Second, 5, 5},
		{"the next block", "6", 3 * time.Second, 6, 0},
		{"a flashblock that never came, of a block that did", "6.9", 3 * time.Second, 6, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var p head.Publisher
				publish := func(latest chain.Number, index uint64) {
					s := newState(1, 0, latest)
					var o head.Overlay
					if index > 0 {
						o = &fakeOverlay{parent: s.Head(), index: index}
					}
					p.Publish(s, o, time.Time{})
				}
				publish(5, 0)
				w := wait(t, &p, tt.want, time.Minute)
				for i, step := range [][2]uint64{{5, 4}, {5, 5}, {6, 0}} {
					<-time.After(time.Second)
					publish(chain.Number(step[0]), step[1])
					synctest.Wait()
					if tt.after > time.Duration(i+1)*time.Second && w.lease != nil {
						t.Fatalf("it did not wait: %s", w.lease.Stamp())
					}
				}
				<-w.done
				if w.err != nil || w.took != tt.after {
					t.Fatalf("it took %v and ended with %v, want %v", w.took, w.err, tt.after)
				}
				b, ok := w.lease.Pending()
				if w.lease.Latest().Number != chain.Number(tt.latest) || ok != (tt.index > 0) || ok && b.Index != uint64(tt.index) {
					t.Errorf("the snapshot is %s, want %d and index %d", w.lease.Stamp(), tt.latest, tt.index)
				}
				w.lease.Release()
				p.Close()
			})
		})
	}
}

func TestWaitingInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p head.Publisher
		p.Publish(newState(1, 2, 5), nil, time.Time{})
		w := wait(t, &p, "7", 3*time.Second)
		<-time.After(time.Second)
		second := newState(1, 3, 6)
		p.Publish(second, nil, time.Time{})
		<-w.done
		var miss *chain.Miss
		if !errors.As(w.err, &miss) || *miss != (chain.Miss{Reason: chain.NotYet, Oldest: 3, Latest: 6}) || w.took != 3*time.Second {
			t.Errorf("after %v: %v (%+v), want not-yet after 3 s", w.took, w.err, miss)
		}
		if n := second.refs.Load(); n != 1 {
			t.Errorf("the state has %d references, want the publisher's alone", n)
		}
		p.Close()
	})
}

// Who waits pins no snapshot.
func TestWaiterHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p head.Publisher
		state := newState(1, 0, 5)
		p.Publish(state, nil, time.Time{})
		w := wait(t, &p, "7", time.Minute)
		synctest.Wait()
		if n := state.refs.Load(); n != 1 {
			t.Errorf("the state has %d references, want the publisher's alone", n)
		}
		p.Publish(newState(1, 0, 7), nil, time.Time{})
		<-w.done
		if w.err != nil {
			t.Fatal(w.err)
		}
		w.lease.Release()
		p.Close()
	})
}

func TestCloseEndsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p head.Publisher
		p.Publish(newState(1, 0, 5), nil, time.Time{})
		var waiters []*waiter
		for range 10 {
			waiters = append(waiters, wait(t, &p, "7", time.Minute))
		}
		l := p.Acquire()
		synctest.Wait()
		p.Close()
		for _, w := range waiters {
			<-w.done
			if !errors.Is(w.err, head.ErrClosed) || w.took != 0 {
				t.Errorf("after %v: %v, want ErrClosed at once", w.took, w.err)
			}
		}
		<-l.Superseded()
		l.Release()
		if _, err := p.AcquireAtLeast(t.Context(), progress(t, "0")); !errors.Is(err, head.ErrClosed) {
			t.Errorf("waiting after Close gives %v, want ErrClosed", err)
		}
	})
}

func TestSuperseded(t *testing.T) {
	var p head.Publisher
	defer p.Close()
	p.Publish(newState(1, 0, 5), nil, time.Time{})
	l := p.Acquire()
	select {
	case <-l.Superseded():
		t.Error("superseded by nothing")
	default:
	}
	p.Publish(newState(1, 0, 6), nil, time.Time{})
	<-l.Superseded()
	next := p.Acquire()
	defer next.Release()
	l.Release()
	select {
	case <-next.Superseded():
		t.Error("the newest is superseded")
	default:
	}
}

// Through a storm of publications every Lease is of one moment: what its stamp
// says, its reads say, and nobody is left waiting for what was published.
func TestReadersAndWaitersInAStorm(t *testing.T) {
	const readers, last = 64, 2000
	var p head.Publisher
	publish := func(n int) {
		s := newState(byte(n), 0, chain.Number(n))
		p.Publish(s, &fakeOverlay{parent: s.Head(), index: uint64(n)}, time.Now().Add(time.Hour))
	}
	publish(1)
	var group sync.WaitGroup
	for range readers {
		group.Go(func() {
			for at := 1; at < last; at += 7 {
				l, err := p.AcquireAtLeast(t.Context(), progress(t, strconv.Itoa(at+1)+"."+strconv.Itoa(at)))
				if err != nil {
					t.Error(err)
					return
				}
				if err := consistent(l, chain.Number(at)); err != nil {
					t.Error(err)
				}
				l.Release()
			}
		})
	}
	for n := 2; n <= last; n++ {
		publish(n)
	}
	group.Wait()
	p.Close()
}

func consistent(l *head.Lease, least chain.Number) error {
	latest := l.Latest()
	b, ok := l.Pending()
	if !ok || latest.Number < least {
		return fmt.Errorf("latest is %v with pending %v, want at least %d with one", latest, ok, least)
	}
	want := fmt.Sprintf("%d:%s;pending=%d.%d", latest.Number, latest.Hash, latest.Number+1, latest.Number)
	if string(l.Stamp()) != want || b.Index != uint64(latest.Number) {
		return fmt.Errorf("the stamp is %s with index %d, want %s", l.Stamp(), b.Index, want)
	}
	v, err := l.View(chain.Latest)
	if err != nil {
		return err
	}
	if got, err := v.Slot(chain.Address{}, chain.Slot{}); err != nil || got != latest.Hash {
		return fmt.Errorf("the slot is %s, %v in %s", got, err, want)
	}
	return nil
}
