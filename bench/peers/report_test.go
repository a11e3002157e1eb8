// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"glimpse/bench/load"
	"glimpse/bench/workload"
	"glimpse/internal/chaingen"
)

// full is a report in which glimpse does twice what geth does, and half of what
// the floor does. anvil was not measured.
func full() *report {
	r := &report{
		config:  &config{peers: []string{gethName, floorName}, connections: []int{1, 32}, rounds: 3, seconds: time.Second, growth: []int{1000}, pin: "none"},
		chain:   workload.Description{Shape: chaingen.StorageOptions{Blocks: 100, Contracts: 10, Slots: 1000}, Gas: 5e6, Versions: 2000},
		imports: map[string]importResult{glimpseName: {Elapsed: time.Second, Disk: 1e6}, gethName: {Elapsed: 2 * time.Second, Disk: 2e6}},
		disk:    map[string]int64{glimpseName: 1e6, gethName: 4e6},
		memory:  map[string]int64{glimpseName: 64e6, gethName: 128e6, floorName: 20e6},
		figures: make(figures),
		growth: map[string][]growthPoint{"slots": {{
			chain: workload.Description{Shape: chaingen.StorageOptions{Blocks: 10, Slots: 1000}, Versions: 1000},
			costs: map[string]growthCost{glimpseName: {importResult{Elapsed: time.Second, Disk: 1e6}, 30 * time.Microsecond}},
		}}},
	}
	for _, c := range cases(r.config.connections) {
		r.figures[c] = make(map[string]*figure)
		for name, times := range map[string]float64{glimpseName: 2, gethName: 1, floorName: 4} {
			if c.kind.askable(name) {
				r.figures[c][name] = &figure{throughputs: []float64{10_000 * times}, p50: 100, p99: time.Duration(1e6 / times), p999: 2e6, cpu: 5000, busy: 0.5}
			}
		}
	}
	return r
}

func TestRequirementsAreJudgedByTheirRatios(t *testing.T) {
	got := make(map[string]requirement)
	for _, q := range full().requirements() {
		got[q.load+" / "+q.to] = q
	}
	for name, want := range map[string]struct {
		ratio   float64
		verdict string
	}{
		"eth_getStorageAt, latest / floor":                                       {0.5, "**no**"},
		"eth_getStorageAt, latest / geth":                                        {2, "**no**"},
		"eth_getStorageAt, latest / anvil":                                       {math.NaN(), "not measured"},
		"eth_getStorageAt, random block / our own latest":                        {1, "yes"},
		"eth_getStorageAt, absent slot / a present one, within 5 %":              {1, "yes"},
		"eth_getStorageValues, 100 absent / geth":                                {2, "yes"},
		"eth_getCode, 24 kB / geth":                                              {2, "yes"},
		"p99 of eth_getStorageAt, latest / geth":                                 {0.5, "**no**"},
		"import, blocks per second / geth":                                       {2, "yes"},
		"bytes on disk / geth":                                                   {0.25, "yes"},
		"batch of 100, reads per second / anvil":                                 {math.NaN(), "not measured"},
		"eth_getStorageAt, pending, live 200 ms feed / our own latest meanwhile": {1, "yes"},
	} {
		q, ok := got[name]
		if same := q.measured == want.ratio || math.IsNaN(q.measured) && math.IsNaN(want.ratio); !ok || !same || q.verdict() != want.verdict {
			t.Errorf("%s: got %v, %s; want %v, %s", name, q.measured, q.verdict(), want.ratio, want.verdict)
		}
	}
}

func TestTheReportHasEveryTable(t *testing.T) {
	text := full().markdown()
	for _, want := range []string{
		"| `eth_getStorageAt`, latest | 32 | 20,000 | 10,000 | 40,000 | 2.00 | 0.50 |\n",
		"| batch of 100 | 32 | 2,000,000 | 1,000,000 | 4,000,000 | 2.00 | 0.50 |\n",
		"| eth_getStorageValues, 100 absent | 32 | 2,000,000 | 1,000,000 | - | 2.00 | - |\n",
		"| `eth_getStorageAt`, pending | 1 | 0.1 µs / 500 µs / 2.0 ms | 0.1 µs / 1.0 ms / 2.0 ms | 0.1 µs / 250 µs / 2.0 ms |\n",
		"| eth_getCode, 24 kB | 32 | 5.0 µs, 50 % | 5.0 µs, 50 % | 5.0 µs, 50 % |\n",
		"| glimpse | 1.0 s | 100 | 5.0 | 0.0 µs | 1.0 MB | 1.0 MB | 64 MB |\n",
		"| floor | - | - | - | - | - | - | 20 MB |\n",
		"| 1,000 | 1,000 | 0 | 10 | 1.0 s | - | 1.0 MB | - | 30 µs | - |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no line %sin\n%s", want, text)
		}
	}
}

func TestTheReportGoesIntoTheDocumentation(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "performance.md")
	if err := os.WriteFile(path, []byte("# P\n"+beginMarker+"\nof yesterday\n"+endMarker+"\nrest\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// A second time finds the same markers.
	for range 2 {
		if err := full().write(dir); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(text); strings.Contains(s, "yesterday") || !strings.HasSuffix(s, endMarker+"\nrest\n") || strings.Count(s, "| holds |") != 1 {
		t.Errorf("got\n%s", s)
	}
	pictures, err := os.ReadDir(filepath.Join(dir, "img"))
	if err != nil || len(pictures) != 6 {
		t.Fatalf("got %d pictures (%v), want 6", len(pictures), err)
	}
	for _, p := range pictures {
		if !strings.Contains(string(text), "(img/"+p.Name()+")") {
			t.Errorf("%s is not shown", p.Name())
		}
		svg, err := os.Open(filepath.Join(dir, "img", p.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(svg); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", p.Name(), err)
			}
		}
		svg.Close()
	}
}

func TestADocumentWithoutMarkersIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "performance.md")
	if err := os.WriteFile(path, []byte("# P\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := full().write(dir); err == nil {
		t.Error("got no error")
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "# P\n" {
		t.Errorf("got %q (%v)", text, err)
	}
}

func TestMediansAreOverRounds(t *testing.T) {
	round := func(answers int, latency, cpu time.Duration, failures int) *load.Result {
		r := &load.Result{Answers: answers, Failures: failures, Elapsed: time.Second, Latency: new(load.Histogram), ServerCPU: cpu, OwnCPU: cpu / 2}
		r.Latency.Add(latency)
		return r
	}
	got := median([]*load.Result{round(100, 100, 1e9, 0), round(1000, 200, 1e9, 3), round(200, 9000, 1e9, 1)})
	if got.throughput() != 200 || got.p50 != 200 || got.cpu != 5*time.Millisecond || got.busy != 0.5 || got.failures != 4 {
		t.Errorf("got %+v", got)
	}
}

func TestRatiosAreOfTheSameRound(t *testing.T) {
	// The machine is slow in the second round, and a guest disturbs one figure of the third.
	ours := &figure{throughputs: []float64{100, 10, 90}}
	theirs := &figure{throughputs: []float64{50, 5, 9}}
	if got := ours.times(theirs); got != 2 {
		t.Errorf("got %v, want 2", got)
	}
	if got := ours.times(nil); !math.IsNaN(got) {
		t.Errorf("got %v beside nobody", got)
	}
}

func TestWhatIsComparedIsMeasuredTogether(t *testing.T) {
	turns := inTurn(cases([]int{1, 32, 128}))
	if len(turns) != len(cases([]int{1, 32, 128})) {
		t.Fatalf("got %d turns", len(turns))
	}
	at := func(k kind) int { return slices.Index(turns, loadCase{k, 32}) }
	if at(pending)+1 != at(latestLive) || at(latest)+1 != at(historical) || at(latest)+2 != at(absent) {
		t.Errorf("got %v", turns)
	}
}
