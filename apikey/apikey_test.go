// SPDX-License-Identifier: Apache-2.0

package apikey_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"glimpse/apikey"
)

const (
	keyA = "aaaaaaaaaaaaaaaa-A_1"
	keyB = "bbbbbbbbbbbbbbbb-B_2"
)

func parse(t testing.TB, text string) *apikey.Keys {
	t.Helper()
	k, err := apikey.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestParse(t *testing.T) {
	tests := []struct {
		name, file string
		keys       int
		err        string // part of it, empty for none
	}{
		{"a key without a rate", "alice " + keyA, 1, ""},
		{"comments, empty lines, tabs and carriage returns", "# who\r\n\n \talice\t" + keyA + " 10\r\n  # no\nbob " + keyB + "\n", 2, ""},
		{"the shortest and the longest key", "a " + strings.Repeat("x", 16) + "\nb " + strings.Repeat("x", 128), 2, ""},
		{"the longest name", strings.Repeat("a", 32) + " " + keyA, 1, ""},
		{"the highest rate", "alice " + keyA + " 1000000", 1, ""},
		{"a name that is too long", strings.Repeat("a", 33) + " " + keyA, 0, "line 1: a name is"},
		{"a name in upper case", "Alice " + keyA, 0, "line 1: a name is"},
		{"a key that is too short", "\nalice " + strings.Repeat("x", 15), 0, "line 2: a key is"},
		{"a key that is too long", "alice " + strings.Repeat("x", 129), 0, "line 1: a key is"},
		{"a key with a slash", "alice " + keyA + "/", 0, "line 1: a key is"},
		{"a key only", keyA, 0, "line 1: has 1 words"},
		{"four words", "alice " + keyA + " 1 2", 0, "line 1: has 4 words"},
		{"a rate of zero", "alice " + keyA + " 0", 0, "line 1: a rate is"},
		{"a rate that is too high", "alice " + keyA + " 1000001", 0, "line 1: a rate is"},
		{"a rate that is a key", "alice " + keyA + " " + keyB, 0, "line 1: a rate is"},
		{"two of a name", "alice " + keyA + "\nalice " + keyB, 0, "line 2: the name alice is that of line 1"},
		{"two of a key", "alice " + keyA + "\n#\nbob " + keyA, 0, "line 3: the key is that of line 1"},
		{"no key", "# nobody\n", 0, "holds no key"},
		{"an endless line", "#\n" + strings.Repeat("x", 5000), 0, "line 2: longer than"},
		{"an endless file", strings.Repeat("#\n", apikey.MaxBytes/2+1), 0, "more than 16777216 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k, err := apikey.Parse(strings.NewReader(tt.file))
			if tt.err == "" {
				if err != nil || k.Len() != tt.keys {
					t.Fatalf("got %v, %v, want %d keys", k, err, tt.keys)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("got %v, want an error with %q", err, tt.err)
			}
			if strings.Contains(err.Error(), keyA[:8]) || strings.Contains(err.Error(), keyB[:8]) {
				t.Errorf("the error shows a key: %v", err)
			}
		})
	}
}

func TestTooManyKeys(t *testing.T) {
	var file strings.Builder
	for i := range apikey.MaxKeys + 1 {
		fmt.Fprintf(&file, "k%d %016d\n", i, i)
	}
	if _, err := apikey.Parse(strings.NewReader(file.String())); err == nil || !strings.Contains(err.Error(), "more than 100000 keys") {
		t.Errorf("got %v, want too many keys", err)
	}
}

func TestAdmit(t *testing.T) {
	r := apikey.NewRing(parse(t, "alice "+keyA+" 5\nbob "+keyB))
	for key, want := range map[string]string{keyA: "alice", keyB: "bob", "": "", keyA[1:]: "", keyA + "x": "", "alice": "", strings.Repeat("x", 100000): ""} {
		ticket, ok := r.Admit([]byte(key))
		if ok != (want != "") || ok && ticket.Name() != want {
			t.Errorf("Admit(%.30q) = %v, %v, want %q", key, ticket, ok, want)
		}
	}
}

func TestAdmitAndTakeMakeNoGarbage(t *testing.T) {
	r := apikey.NewRing(parse(t, "alice "+keyA+" 1000000"))
	key := []byte(keyA)
	if got := testing.AllocsPerRun(1000, func() {
		ticket, _ := r.Admit(key)
		ticket.Take(1)
	}); got != 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
}

func TestReplace(t *testing.T) {
	r := apikey.NewRing(parse(t, "alice "+keyA+" 2\nbob "+keyB))
	alice, _ := r.Admit([]byte(keyA))
	bob, _ := r.Admit([]byte(keyB))
	alice.Take(2)

	r.Replace(parse(t, "alice "+keyA+" 2"))
	again, ok := r.Admit([]byte(keyA))
	if !ok || again != alice || alice.Withdrawn() {
		t.Error("a key that stays did not keep its ticket")
	}
	if _, ok := again.Take(1); ok {
		t.Error("reloading gave a key calls that it had used up")
	}
	if _, ok := r.Admit([]byte(keyB)); ok || !bob.Withdrawn() {
		t.Error("a key that is gone is still in force")
	}

	r.Replace(parse(t, "carol "+keyA+" 2"))
	renamed, _ := r.Admit([]byte(keyA))
	if _, ok := renamed.Take(1); !ok || renamed == alice || !alice.Withdrawn() {
		t.Error("a key under another name is not another key")
	}
	r.Replace(parse(t, "carol "+keyA))
	if _, ok := renamed.Take(1e9); !ok {
		t.Error("a limit that was taken away still holds")
	}
}

func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := apikey.NewRing(parse(t, "alice "+keyA+" 10\nbob "+keyB))
		alice, _ := r.Admit([]byte(keyA))
		bob, _ := r.Admit([]byte(keyB))
		take := func(n int, wantWait time.Duration) {
			t.Helper()
			if wait, ok := alice.Take(n); wait != wantWait || ok != (wantWait == 0) {
				t.Errorf("Take(%d) = %v, %v, want %v", n, wait, ok, wantWait)
			}
		}
		for range 10 {
			take(1, 0) // a second's worth at once
		}
		take(1, 100*time.Millisecond)
		take(4, 400*time.Millisecond)
		<-time.After(100 * time.Millisecond)
		take(1, 0)
		take(1, 100*time.Millisecond) // a refusal cost nothing
		<-time.After(time.Hour)
		take(10, 0) // an hour of silence is worth no more than a second
		take(1, 100*time.Millisecond)
		<-time.After(time.Second)
		take(50, 0) // more than a second's worth when nothing is owed
		take(1, 4100*time.Millisecond)
		<-time.After(4 * time.Second)
		take(1, 100*time.Millisecond)
		take(50, 5*time.Second-4*time.Second)
		if _, ok := bob.Take(1e9); !ok {
			t.Error("a key without a rate is limited")
		}
	})
}

func TestRateHoldsForManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := apikey.NewRing(parse(t, "alice "+keyA+" 100"))
		var admitted atomic.Int64
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				for range 100 {
					alice, _ := r.Admit([]byte(keyA))
					if _, ok := alice.Take(1); ok {
						admitted.Add(1)
					}
				}
			})
		}
		all.Wait()
		if got := admitted.Load(); got != 100 {
			t.Errorf("got %d calls in no time, want 100", got)
		}
	})
}

// What Parse accepts can be written and read again.
func FuzzParse(f *testing.F) {
	f.Add("alice " + keyA + " 10\n# comment\nbob " + keyB + "\n")
	f.Add("alice " + keyA + " 0")
	f.Add("\xff\x00 x\n\r")
	f.Fuzz(func(t *testing.T, file string) {
		k, err := apikey.Parse(strings.NewReader(file))
		if err != nil {
			return
		}
		var again strings.Builder
		for line := range strings.Lines(file) {
			if words := strings.Fields(line); len(words) > 0 && words[0][0] != '#' {
				fmt.Fprintln(&again, strings.Join(words, " "))
			}
		}
		second, err := apikey.Parse(strings.NewReader(again.String()))
		if err != nil || second.Len() != k.Len() {
			t.Fatalf("%q was accepted, but %q gives %v", file, again.String(), err)
		}
		first, other := apikey.NewRing(k), apikey.NewRing(second)
		for line := range strings.Lines(again.String()) {
			words := strings.Fields(line)
			a, ok := first.Admit([]byte(words[1]))
			b, ok2 := other.Admit([]byte(words[1]))
			if !ok || !ok2 || a.Name() != words[0] || b.Name() != words[0] {
				t.Fatalf("the key of %q is not admitted", words[0])
			}
		}
	})
}

func BenchmarkAdmit(b *testing.B) {
	r := apikey.NewRing(parse(b, "alice "+keyA+" 1000000"))
	key := []byte(keyA)
	b.ReportAllocs()
	for b.Loop() {
		ticket, _ := r.Admit(key)
		ticket.Take(1)
	}
}
