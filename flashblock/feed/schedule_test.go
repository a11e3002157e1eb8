// SPDX-License-Identifier: Apache-2.0

package feed_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"glimpse/flashblock/feed"
)

func TestSchedule(t *testing.T) {
	tests := []struct {
		name  string
		order func(*feed.Schedule)
		want  string // of the messages a to f, those that each lets go
	}{
		{"no orders", func(*feed.Schedule) {}, "a|b|c|d|e|f"},
		{"drop", func(s *feed.Schedule) { s.Drop(2) }, "||c|d|e|f"},
		{"duplicate", func(s *feed.Schedule) { s.Duplicate(2) }, "aa|bb|c|d|e|f"},
		{"delay", func(s *feed.Schedule) { s.Delay(1, time.Second) }, "a1s|b|c|d|e|f"},
		{"reorder", func(s *feed.Schedule) { s.Reorder(3) }, "||cba|d|e|f"},
		{"reorder one", func(s *feed.Schedule) { s.Reorder(1) }, "a|b|c|d|e|f"},
		{"one after the other", func(s *feed.Schedule) { s.Drop(1); s.Reorder(2); s.Duplicate(1) }, "||cb|dd|e|f"},
		{"orders for nothing", func(s *feed.Schedule) { s.Drop(0); s.Duplicate(-1) }, "a|b|c|d|e|f"},
		{"stall", func(s *feed.Schedule) { s.Stall() }, "|||||"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s feed.Schedule
			tt.order(&s)
			var got []string
			for _, c := range "abcdef" {
				got = append(got, text(s.Next([]byte(string(c)))))
			}
			if got := strings.Join(got, "|"); got != tt.want {
				t.Errorf("sent %q, want %q", got, tt.want)
			}
		})
	}
}

func TestResumeSendsWhatWasHeldBack(t *testing.T) {
	var s feed.Schedule
	if got := text(s.Resume()); got != "" {
		t.Errorf("resuming what was not stalled sends %q", got)
	}
	s.Stall()
	s.Next([]byte("a"))
	s.Next([]byte("b"))
	if got := text(s.Resume()); got != "ab" {
		t.Errorf("resuming sends %q, want ab", got)
	}
	if got := text(s.Next([]byte("c"))); got != "c" {
		t.Errorf("after that %q is sent, want c", got)
	}
}

func TestScheduleIsBounded(t *testing.T) {
	var s feed.Schedule
	s.Stall()
	for i := range 5000 {
		s.Next(fmt.Appendf(nil, "%d ", i))
	}
	held := s.Resume()
	if len(held) != 1024 || string(held[1023].Data) != "4999 " {
		t.Errorf("%d messages were held, want the newest 1024", len(held))
	}
}

func text(out []feed.Outgoing) string {
	var all string
	for _, o := range out {
		all += string(o.Data)
		if o.After > 0 {
			all += o.After.String()
		}
	}
	return all
}
