// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"strings"
	"testing"

	"glimpse/chain"
	"glimpse/watch"
)

func puts(pairs ...byte) write {
	w := write{slots: map[byte]byte{}}
	for i := 0; i < len(pairs); i += 2 {
		w.slots[pairs[i]] = pairs[i+1]
	}
	return w
}

func wipes(pairs ...byte) write {
	w := puts(pairs...)
	w.wiped = true
	return w
}

func pointer(w write) *write { return &w }

// The blocks that the tests are about: each name is one block.
var blocks = map[byte]write{
	'g': puts(1, 1, 2, 2), // genesis
	'a': puts(1, 5),
	'b': puts(1, 6, 3, 7),
	'c': puts(2, 0),
	'd': puts(1, 5), // another block that writes what a does
	'w': wipes(4, 4),
	'x': puts(),
	'y': puts(),
}

func TestChangesOfAStep(t *testing.T) {
	tests := []struct {
		name       string
		old        string
		oldPending *write
		now        string
		nowPending *write
		want       string
	}{
		{"nothing", "gx", nil, "gx", nil, ""},
		{"an empty block", "g", nil, "gx", nil, ""},
		{"sealed without a promise", "g", nil, "ga", nil, "1=5 latest sealed a; 1=5 pending sealed a;"},
		{"promised", "g", nil, "g", pointer(puts(1, 9)), "1=9 pending preconfirmed 1.3;"},
		{"promised again, otherwise", "g", pointer(puts(1, 9)), "g", pointer(puts(1, 8)), "1=8 pending preconfirmed 1.3;"},
		{"promised what it was", "g", nil, "g", pointer(puts(1, 1)), ""},
		{"a promise that stays is not told again", "g", pointer(puts(1, 9)), "g", pointer(puts(1, 9, 5, 5)), "5=5 pending preconfirmed 1.3;"},
		{"sealed as promised", "g", pointer(puts(1, 5)), "ga", nil, "1=5 latest sealed a;"},
		{"sealed as promised, with the next promise", "g", pointer(puts(1, 5)), "ga", pointer(puts(1, 6)),
			"1=5 latest sealed a; 1=6 pending preconfirmed 2.3;"},
		{"sealed otherwise than promised", "g", pointer(puts(1, 9)), "ga", nil, "1=5 latest sealed a; 1=5 pending sealed a;"},
		{"revoked", "g", pointer(puts(1, 9)), "g", nil, "1=1 pending revoked g;"},
		{"revoked by an empty block", "g", pointer(puts(1, 9)), "gx", nil, "1=1 pending revoked x;"},
		{"revoked, and the next promise is about another slot", "g", pointer(puts(1, 9)), "gx", pointer(puts(2, 3)),
			"1=1 pending revoked x; 2=3 pending preconfirmed 2.3;"},
		{"the newest of several blocks that wrote it", "g", nil, "gab", nil,
			"1=6 latest sealed b; 1=6 pending sealed b; 3=7 latest sealed b; 3=7 pending sealed b;"},
		{"cleared", "g", nil, "gc", nil, "2=0 latest sealed c; 2=0 pending sealed c;"},
		{"reorg that takes a value back", "ga", nil, "gx", nil, "1=1 latest revoked g; 1=1 pending revoked x;"},
		{"reorg to fewer blocks", "gxab", nil, "gx", nil,
			"1=1 latest revoked x; 1=1 pending revoked x; 3=0 latest revoked x; 3=0 pending revoked x;"},
		{"reorg that writes the same", "ga", nil, "gd", nil, ""},
		{"reorg that writes another value", "ga", nil, "gxb", nil,
			"1=6 latest sealed b; 1=6 pending sealed b; 3=7 latest sealed b; 3=7 pending sealed b;"},
		{"reorg behind a promise that says the same", "ga", pointer(puts(1, 5)), "gx", pointer(puts(1, 5)), "1=1 latest revoked g;"},
		{"wiped", "ga", nil, "gaw", nil, "1=0 latest sealed w; 1=0 pending sealed w; 2=0 latest sealed w; 2=0 pending sealed w; " +
			"4=4 latest sealed w; 4=4 pending sealed w;"},
		{"reorg that takes a wipe back", "gw", nil, "gx", nil, "1=1 latest revoked g; 1=1 pending revoked x; " +
			"2=2 latest revoked g; 2=2 pending revoked x; 4=0 latest revoked g; 4=0 pending revoked x;"},
		{"promised to be wiped", "g", nil, "g", pointer(wipes(2, 2)), "1=0 pending preconfirmed 1.3;"},
		{"a wipe that was promised is revoked", "g", pointer(wipes()), "gx", nil, "1=1 pending revoked x; 2=2 pending revoked x;"},
		{"a wipe is sealed as promised", "g", pointer(wipes(4, 4)), "gw", nil, "1=0 latest sealed w; 2=0 latest sealed w; 4=4 latest sealed w;"},
		{"a wipe and then a write", "g", nil, "gwa", nil, "1=5 latest sealed a; 1=5 pending sealed a; 2=0 latest sealed w; " +
			"2=0 pending sealed w; 4=4 latest sealed w; 4=4 pending sealed w;"},
	}
	every := []chain.Slot{slot(1), slot(2), slot(3), slot(4), slot(5)}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			node := new(fakeNode)
			node.publish(&fakeSnapshot{names: tt.old, writes: blocks, pending: tt.oldPending})
			w, stop := run(t, node, watch.Options{})
			defer stop()
			whole, named := subscribe(t, w, changes{}), subscribe(t, w, changes{every})
			other := subscribe(t, w, changes{[]chain.Slot{slot(77)}})
			next(t, whole)
			next(t, named)
			next(t, other)
			node.publish(&fakeSnapshot{names: tt.now, writes: blocks, pending: tt.nowPending})
			if got := strings.TrimSpace(next(t, whole)); got != tt.want {
				t.Errorf("whole contract\n got %s\nwant %s", got, tt.want)
			}
			if got := strings.TrimSpace(next(t, named)); got != tt.want {
				t.Errorf("named slots\n got %s\nwant %s", got, tt.want)
			}
			if got := next(t, other); got != "" {
				t.Errorf("slot that nobody writes: got %s, want nothing", got)
			}
		})
	}
}

func TestWhereASubscriberBegins(t *testing.T) {
	tests := []struct {
		name    string
		pending *write
		slots   []chain.Slot
		want    string
	}{
		{"named slots, nothing promised", nil, []chain.Slot{slot(1), slot(9)},
			"1=5 latest sealed a; 1=5 pending sealed a; 9=0 latest sealed a; 9=0 pending sealed a;"},
		{"named slots, one promised", pointer(puts(1, 8)), []chain.Slot{slot(1), slot(2)},
			"1=5 latest sealed a; 1=8 pending preconfirmed 2.3; 2=2 latest sealed a; 2=2 pending sealed a;"},
		{"named slots, all promised to be wiped", pointer(wipes(1, 8)), []chain.Slot{slot(1), slot(2)},
			"1=5 latest sealed a; 1=8 pending preconfirmed 2.3; 2=2 latest sealed a; 2=0 pending preconfirmed 2.3;"},
		{"all slots, nothing promised", nil, nil, ""},
		{"all slots, one promised", pointer(puts(1, 8, 2, 2)), nil, "1=8 pending preconfirmed 2.3;"},
		{"all slots, all promised to be wiped", pointer(wipes(1, 8)), nil, "1=8 pending preconfirmed 2.3; 2=0 pending preconfirmed 2.3;"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			node := new(fakeNode)
			node.publish(&fakeSnapshot{names: "ga", writes: blocks, pending: tt.pending})
			w, stop := run(t, node, watch.Options{})
			defer stop()
			if got := strings.TrimSpace(next(t, subscribe(t, w, changes{tt.slots}))); got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}
