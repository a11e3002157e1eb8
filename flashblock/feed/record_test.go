// SPDX-License-Identifier: Apache-2.0

package feed_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"glimpse/flashblock"
	"glimpse/flashblock/feed"
	"glimpse/internal/fixture"
)

// writes keeps each call of Write.
type writes struct {
	all  []string
	most int // then it fails
}

func (w *writes) Write(p []byte) (int, error) {
	if len(w.all) == w.most {
		return 0, errors.New("disk full")
	}
	w.all = append(w.all, string(p))
	return len(p), nil
}

// A recording that is played has the messages of the feed, with members that
// nobody here knows, and their times.
func TestRecordingIsPlayedAsItWas(t *testing.T) {
	const strange = `{"target_index": 9,
		"payload_id":"0x0307000000000000","index":2,"diff":{"gas_used":"0x5"},"metadata":{"block_number":7,"new":[1,2]}}`
	synctest.Test(t, func(t *testing.T) {
		p := start(t, feed.Options{Brotli: true})
		c, _ := follow(t, newNetwork(t, map[string]http.Handler{"a": p}), feed.ClientOptions{KeepText: true}, "a")
		synctest.Wait()
		w := &writes{most: 100}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			n, err := feed.Record(ctx, c, w)
			if n != 3 {
				t.Errorf("%d flashblocks were recorded, want 3", n)
			}
			done <- err
		}()
		until(t, time.Second)
		publishTo(t, p, of(7, 1))
		until(t, 250*time.Millisecond)
		if err := p.PublishText(t.Context(), []byte(strange)); err != nil {
			t.Fatal(err)
		}
		until(t, time.Second)
		publishTo(t, p, of(7, 3))
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Record = %v", err)
		}
		want := []string{
			`{"t":0,"m":` + string(encode(t, of(7, 1))) + "}\n",
			`{"t":250,"m":{"target_index":9,"payload_id":"0x0307000000000000","index":2,"diff":{"gas_used":"0x5"},"metadata":{"block_number":7,"new":[1,2]}}}` + "\n",
			`{"t":1250,"m":` + string(encode(t, of(7, 3))) + "}\n",
		}
		if strings.Join(w.all, "") != strings.Join(want, "") || len(w.all) != 3 {
			t.Fatalf("recorded\n%s\nwant\n%s", strings.Join(w.all, ""), strings.Join(want, ""))
		}

		again := start(t, feed.Options{})
		sub := subscribe(t, again)
		begin := time.Now()
		go func() {
			n, err := feed.Replay(t.Context(), strings.NewReader(strings.Join(want, "")), again, feed.ReplayOptions{Speed: 2})
			if n != 3 {
				t.Errorf("%d flashblocks were played, want 3", n)
			}
			done <- err
		}()
		for i, after := range []time.Duration{0, 125 * time.Millisecond, 625 * time.Millisecond} {
			m, err := sub.Next(t.Context())
			if err != nil || m.Index != uint64(i+1) || time.Since(begin) != after {
				t.Errorf("played %v, %v after %v, want index %d after %v", m, err, time.Since(begin), i+1, after)
			}
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		sub.Close()
	})
}

func TestRecordStopsWhereItCannotWrite(t *testing.T) {
	p := start(t, feed.Options{})
	sub := subscribe(t, p)
	publish(t, p, 0, 1)
	if err := p.PublishText(t.Context(), []byte("{}")); err != nil { // which is skipped
		t.Fatal(err)
	}
	publish(t, p, 1, 3)
	n, err := feed.Record(t.Context(), sub, &writes{most: 2})
	if n != 2 || err == nil || !strings.Contains(err.Error(), "disk full") || !strings.Contains(err.Error(), "7.3") {
		t.Errorf("Record = %d, %v, want 2 and what the disk says", n, err)
	}
	sub.Close()
}

// All forms of recordings there are can be played.
func TestCapturesArePlayed(t *testing.T) {
	dir := fixture.Flashblocks(t)
	names, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(names) < 6 {
		t.Fatalf("captures are %v, %v", names, err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				p := start(t, feed.Options{})
				sub := subscribe(t, p)
				begin := time.Now()
				n, err := feed.Replay(t.Context(), bytes.NewReader(data), p, feed.ReplayOptions{})
				if err != nil || n != bytes.Count(data, []byte{'\n'}) {
					t.Fatalf("Replay = %d, %v, want %d", n, err, bytes.Count(data, []byte{'\n'}))
				}
				if took := time.Since(begin); took != time.Duration(n-1)*200*time.Millisecond {
					t.Errorf("%d messages without times took %v", n, took)
				}
				for range n {
					if _, err := sub.Next(t.Context()); err != nil {
						t.Error(err)
					}
				}
				sub.Close()
			})
		})
	}
}

func TestReplayNamesTheLine(t *testing.T) {
	good := string(encode(t, of(7, 1)))
	tests := []struct {
		name      string
		recording string
		line      int
	}{
		{"no JSON", good + "\nhello\n", 2},
		{"not a flashblock", good + "\n\n{}\n", 3},
		{"a line that was cut", good + "\n" + good[:40], 2},
		{"a bad message in a good line", good + "\n" + `{"t":5,"m":{"index":1}}`, 2},
		{"a message that is null", good + "\n" + `{"t":5,"m":null}`, 2},
		{"a time before the first", good + "\n" + `{"t":-5,"m":` + good + `}`, 2},
		{"a time that nobody waits for", good + "\n" + `{"t":1e300,"m":` + good + `}`, 2},
		{"no base64", good + "\n" + `{"brotli_base64":"!"}`, 2},
		{"no Brotli", good + "\n" + `{"brotli_base64":"aGVsbG8="}`, 2},
		{"a line that is too long", good + "\n" + strings.Repeat(" ", flashblock.MaxSize+1<<20), 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := start(t, feed.Options{})
				n, err := feed.Replay(t.Context(), strings.NewReader(tt.recording), p, feed.ReplayOptions{})
				if n != 1 || err == nil || !strings.Contains(err.Error(), fmt.Sprintf("line %d:", tt.line)) || len(err.Error()) > 400 {
					t.Errorf("Replay = %d, %v, want 1 and an error about line %d", n, err, tt.line)
				}
			})
		})
	}
}

func TestReplayStopsWhenAsked(t *testing.T) {
	good := string(encode(t, of(7, 1))) + "\n"
	synctest.Test(t, func(t *testing.T) {
		p := start(t, feed.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		n, err := feed.Replay(ctx, strings.NewReader(strings.Repeat(good, 10)), p, feed.ReplayOptions{})
		if n != 3 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Replay = %d, %v, want 3 and the end of the context", n, err)
		}
		for _, o := range []feed.ReplayOptions{{Speed: -1}, {Speed: 1e-9}, {Interval: -1}} {
			if _, err := feed.Replay(t.Context(), strings.NewReader(good), p, o); err == nil {
				t.Errorf("Replay with %+v was tried", o)
			}
		}
		// A clock that went back in the recording is no reason to wait.
		back := `{"t":60000,"m":` + strings.TrimSpace(good) + "}\n" + `{"t":10,"m":` + strings.TrimSpace(good) + "}\n"
		begin := time.Now()
		if n, err := feed.Replay(t.Context(), strings.NewReader(back), p, feed.ReplayOptions{}); n != 2 || err != nil || time.Since(begin) != 0 {
			t.Errorf("Replay = %d, %v after %v", n, err, time.Since(begin))
		}
	})
}
