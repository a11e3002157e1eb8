// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"glimpse/watch"
)

func TestSubscriptionsThatEnd(t *testing.T) {
	long := strings.Repeat("x", 300)
	tests := []struct {
		name  string
		topic watch.Topic[*fakeSnapshot]
		steps []*fakeSnapshot
		want  string
	}{
		{"too many messages waiting", blob{messages: 4}, []*fakeSnapshot{{names: "gx"}, {names: "gxy"}, {names: "gxyx"}}, watch.ErrSlow.Error()},
		{"too many bytes waiting", blob{messages: 1, size: 600}, []*fakeSnapshot{{names: "gx"}, {names: "gxy"}}, watch.ErrSlow.Error()},
		{"too many messages in one step", blob{messages: 11}, []*fakeSnapshot{{names: "gx"}}, watch.ErrTooMuch.Error()},
		{"too many bytes in one step", blob{messages: 1, size: 1001}, []*fakeSnapshot{{names: "gx"}}, watch.ErrTooMuch.Error()},
		{"too many blocks in one step", blob{}, []*fakeSnapshot{{names: "g" + long}}, watch.ErrGap.Error()},
		{"a block whose changes are pruned", changes{}, []*fakeSnapshot{{names: "gx", pruned: true}}, watch.ErrGap.Error()},
		{"another chain", blob{}, []*fakeSnapshot{{names: "hx"}}, "corrupt store: two snapshots without a common block"},
		{"a read that fails", changes{}, []*fakeSnapshot{{names: "ga", broken: true}}, errDisk.Error()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := new(fakeNode)
				node.publish(&fakeSnapshot{names: "g", writes: blocks})
				w, stop := run(t, node, watch.Options{MaxMessages: 10, MaxBytes: 1000})
				defer stop()
				s, bystander := subscribe(t, w, tt.topic), subscribe(t, w, blob{messages: 1})
				for _, now := range tt.steps {
					now.writes = blocks
					node.publish(now)
					synctest.Wait()
				}
				got := next(t, s)
				for !strings.HasPrefix(got, "end: ") { // what came before the end is told
					got = next(t, s)
				}
				if !strings.HasSuffix(got, tt.want) {
					t.Errorf("got %q, want the end: %s", got, tt.want)
				}
				if len(tt.want) > 123 {
					t.Errorf("%q does not fit into a close frame", tt.want)
				}
				bystander.Close()
				synctest.Wait()
				if n := node.holding(); n != 0 || node.most > 2 {
					t.Errorf("%d snapshots held, and %d at most, want 0 and at most 2", n, node.most)
				}
			})
		})
	}
}

func TestOneThatDoesNotReadCostsTheOthersNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := new(fakeNode)
		node.publish(&fakeSnapshot{names: "g"})
		w, stop := run(t, node, watch.Options{MaxTotalBytes: 5000})
		defer stop()
		deaf, reader := subscribe(t, w, blob{messages: 1, size: 600}), subscribe(t, w, blob{messages: 1, size: 500})
		names := "g"
		for range 20 {
			names += "x"
			node.publish(&fakeSnapshot{names: names})
			if got := next(t, reader); len(got) != 501 {
				t.Fatalf("after %s: got %q", names, got)
			}
		}
		if got := next(t, deaf); got != "end: "+watch.ErrSlow.Error() {
			t.Errorf("got %.80q, want %v: together they had too much waiting", got, watch.ErrSlow)
		}
	})
}

func TestNobodySubscribesNothingIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := new(fakeNode)
		node.publish(&fakeSnapshot{names: "g"})
		w, stop := run(t, node, watch.Options{})
		defer stop()
		holds := func(when string, want int) {
			t.Helper()
			synctest.Wait()
			if got := node.holding(); got != want {
				t.Errorf("%s: %d snapshots held, want %d", when, got, want)
			}
		}
		holds("at first", 0)
		if _, err := w.Subscribe(t.Context(), blob{fail: errDisk}); !errors.Is(err, errDisk) {
			t.Errorf("got %v, want %v", err, errDisk)
		}
		holds("after one that could not begin", 0)
		a, b := subscribe(t, w, blob{}), subscribe(t, w, blob{})
		holds("while two subscribe", 1)
		node.publish(&fakeSnapshot{names: "gx"})
		holds("after a step", 1)
		a.Close()
		a.Close()
		holds("after one left", 1)
		b.Close()
		holds("after both left", 0)
		node.publish(&fakeSnapshot{names: "gxy"})
		holds("after a step that nobody asked for", 0)
		if got := next(t, a); got != "end: "+watch.ErrClosed.Error() {
			t.Errorf("got %q, want %v", got, watch.ErrClosed)
		}
	})
}

func TestSnapshotsMayBeSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := new(fakeNode)
		node.publish(&fakeSnapshot{names: "g", writes: blocks})
		w, stop := run(t, node, watch.Options{})
		defer stop()
		s := subscribe(t, w, changes{})
		next(t, s)
		node.publish(&fakeSnapshot{names: "gb", writes: blocks})
		node.publish(&fakeSnapshot{names: "gc", writes: blocks})
		node.publish(&fakeSnapshot{names: "ga", writes: blocks})
		got := next(t, s)
		for synctest.Wait(); !strings.Contains(got, "1=5 latest sealed a"); got = next(t, s) {
		}
	})
}

func TestTheEndOfAWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := new(fakeNode)
		node.publish(&fakeSnapshot{names: "g"})
		w, stop := run(t, node, watch.Options{MaxSubscriptions: 2})
		waiting, told := subscribe(t, w, blob{}), subscribe(t, w, blob{messages: 1})
		if _, err := w.Subscribe(t.Context(), blob{}); !errors.Is(err, watch.ErrBusy) {
			t.Errorf("a third of two: got %v, want %v", err, watch.ErrBusy)
		}
		node.publish(&fakeSnapshot{names: "gx"})
		synctest.Wait()
		done := make(chan string)
		go func() { done <- next(t, waiting) }()
		stop()
		if got := <-done; got != "end: "+watch.ErrStopped.Error() {
			t.Errorf("one that waits: got %q, want %v", got, watch.ErrStopped)
		}
		if got := next(t, told); got != "." {
			t.Errorf("got %q, want what was told before the end", got)
		}
		if got := next(t, told); got != "end: "+watch.ErrStopped.Error() {
			t.Errorf("then got %q, want %v", got, watch.ErrStopped)
		}
		if _, err := w.Subscribe(t.Context(), blob{}); !errors.Is(err, watch.ErrStopped) {
			t.Errorf("after the end: got %v, want %v", err, watch.ErrStopped)
		}
		if n := node.holding(); n != 0 {
			t.Errorf("%d snapshots held after the end, want none", n)
		}
	})
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	idle := watch.New(new(fakeNode).acquire, watch.Options{})
	if _, err := idle.Subscribe(ctx, blob{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Subscribe before Run: got %v, want that of the context", err)
	}
	node := new(fakeNode)
	node.publish(&fakeSnapshot{names: "g"})
	w, stop := run(t, node, watch.Options{})
	defer stop()
	if _, err := subscribe(t, w, blob{}).Next(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Next: got %v, want that of the context", err)
	}
}
