// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"glimpse/bench/table"
	"glimpse/bench/workload"
)

// A report is all that was measured.
type report struct {
	config   *config
	chain    workload.Description
	compared int // requests that all answered alike
	imports  map[string]importResult
	disk     map[string]int64 // after all servers were stopped
	memory   map[string]int64 // the most under load
	figures  figures
	growth   map[string][]growthPoint
}

// peers are all that were measured, in the order of tables.
func (r *report) peers() []string {
	all := []string{glimpseName}
	for _, name := range []string{gethName, anvilName, floorName} {
		if slices.Contains(r.config.peers, name) {
			all = append(all, name)
		}
	}
	return all
}

// markdown is the whole report without plots.
func (r *report) markdown() string {
	sections := []string{
		r.introduction(),
		"What is wanted, and what this run shows:\n\n" + r.requirementTable(),
		"Requests per second (reads per second for batches and `eth_getStorageValues`), and how many times as many glimpse answers:\n\n" + r.throughputTable(),
		"Latency, p50 / p99 / p99.9:\n\n" + r.latencyTable(),
		"Processor time of the server for each request, and how much of its processor the generator of the load took; near 100 % it is the generator that sets the pace:\n\n" + r.cpuTable(),
		"The chain itself:\n\n" + r.storeTable(),
	}
	for _, what := range r.grown() {
		sections = append(sections, "Growth with the number of "+what+", reads at random blocks over one connection:\n\n"+r.growthTable(what))
	}
	return strings.Join(sections, "\n")
}

func (r *report) introduction() string {
	c, d := r.config, r.chain
	pinned := map[string]string{
		"none":      "neither the generator of the load nor the servers keep to a processor",
		"generator": "the generator of the load keeps to one processor, servers take what is left of all",
		"both":      "the generator of the load has a processor of its own, servers have the others",
	}
	text := fmt.Sprintf("`make bench-peers`, %d processors, %s. One chain of %s blocks for all: %s contracts, %s slots in %s versions, %s transactions, %s Mgas, seed %d. "+
		"Each figure is the median of %d rounds of %v, each ratio the median of their ratios; peers take turns, and wait while another is measured; %s. "+
		"%s requests were compared before: all answer alike.\n",
		runtime.NumCPU(), runtime.GOARCH, count(d.Shape.Blocks), count(d.Shape.Contracts), count(d.Shape.Slots), count(d.Versions), count(int(d.Transactions)),
		table.Count(float64(d.Gas)/1e6), d.Seed, c.rounds, c.seconds, pinned[c.pin], count(r.compared))
	text += "geth is an archive with the path scheme. "
	if slices.Contains(c.peers, anvilName) {
		text += fmt.Sprintf("anvil keeps every state whole and in memory: it begins with the state before the newest %s blocks and executes those, so its random blocks are of those alone. ", count(c.anvilBlocks))
	}
	text += fmt.Sprintf("`pending` of glimpse is `glimpse dev` on a copy of the same store, with flashblocks of %d transactions every 200 ms; the others have nothing pending. "+
		"The floor is a fasthttp server with a parser written by hand that looks slots up in a map.\n", c.feedSize)
	return text
}

func count(n int) string {
	if n < 10 {
		return fmt.Sprint(n)
	}
	return table.Count(float64(n))
}

// eachCase calls f for every load that was measured, with its name.
func (r *report) eachCase(f func(name string, c loadCase)) {
	for _, c := range cases(r.config.connections) {
		if r.figures[c] == nil {
			continue
		}
		name := string(c.kind)
		if slices.Contains(singles, c.kind) || c.kind == latestLive {
			name = "`eth_getStorageAt`, " + name
		}
		f(name, c)
	}
}

func (r *report) throughputTable() string {
	peers := r.peers()
	header := append([]string{"load", "connections"}, peers...)
	for _, p := range peers[1:] {
		header = append(header, "× "+p)
	}
	t := table.New(header...)
	r.eachCase(func(name string, c loadCase) {
		row := []string{name, count(c.connections)}
		ours := r.figures.of(c.kind, c.connections, glimpseName)
		var ratios []string
		for _, p := range peers {
			figure := r.figures.of(c.kind, c.connections, p)
			row = append(row, table.Count(figure.throughput()*c.kind.reads()))
			if p != glimpseName {
				ratios = append(ratios, table.Ratio(ours.times(figure)))
			}
		}
		t.Add(append(row, ratios...)...)
	})
	return t.String()
}

func (r *report) latencyTable() string {
	return r.figureTable(func(f *figure) string {
		return table.Time(f.p50) + " / " + table.Time(f.p99) + " / " + table.Time(f.p999)
	})
}

func (r *report) cpuTable() string {
	return r.figureTable(func(f *figure) string { return fmt.Sprintf("%s, %.0f %%", table.Time(f.cpu), 100*f.busy) })
}

// figureTable has a cell for each figure.
func (r *report) figureTable(cell func(*figure) string) string {
	peers := r.peers()
	t := table.New(append([]string{"load", "connections"}, peers...)...)
	r.eachCase(func(name string, c loadCase) {
		row := []string{name, count(c.connections)}
		for _, p := range peers {
			if f := r.figures.of(c.kind, c.connections, p); f != nil {
				row = append(row, cell(f))
			} else {
				row = append(row, table.None)
			}
		}
		t.Add(row...)
	})
	return t.String()
}

func (r *report) storeTable() string {
	t := table.New("", "import", "blocks/s", "Mgas/s", "processor time", "disk after import", "disk after the run", "memory under load")
	for _, p := range r.peers() {
		memory := table.Bytes(r.memory[p])
		i, ok := r.imports[p]
		if !ok {
			t.Add(p, table.None, table.None, table.None, table.None, table.None, table.None, memory)
			continue
		}
		t.Add(p, table.Time(i.Elapsed), table.Count(r.blocksPerSecond(p)), table.Count(float64(r.chain.Gas)/1e6/i.Elapsed.Seconds()),
			table.Time(i.CPU), table.Bytes(i.Disk), table.Bytes(r.disk[p]), memory)
	}
	return t.String()
}

// grown is what grew, in order.
func (r *report) grown() (all []string) {
	for what, points := range r.growth {
		if len(points) > 0 {
			all = append(all, what)
		}
	}
	slices.Sort(all)
	return all
}

func (r *report) growthTable(what string) string {
	t := table.New("slots", "versions", "most of one slot", "blocks", "import, glimpse", "geth", "disk, glimpse", "geth", "read p50, glimpse", "geth")
	for _, p := range r.growth[what] {
		row := []string{count(p.chain.Shape.Slots), count(p.chain.Versions), count(p.chain.Hottest), count(p.chain.Shape.Blocks)}
		ours, theirs := p.costs[glimpseName], p.costs[gethName]
		if _, ok := p.costs[gethName]; !ok {
			theirs = growthCost{importResult{Elapsed: -1, Disk: -1}, -1}
		}
		row = append(row, table.Time(ours.imported.Elapsed), table.Time(theirs.imported.Elapsed),
			table.Bytes(ours.imported.Disk), table.Bytes(theirs.imported.Disk), table.Time(ours.read), table.Time(theirs.read))
		t.Add(row...)
	}
	return t.String()
}

// Markers of the part of the documentation that is written here.
const (
	beginMarker = "<!-- bench-peers -->"
	endMarker   = "<!-- /bench-peers -->"
)

// write puts the report into performance.md of a directory, and plots beside it.
func (r *report) write(dir string) error {
	path := filepath.Join(dir, "performance.md")
	document, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	pictures := r.pictures()
	text := r.markdown()
	for _, p := range pictures {
		text += fmt.Sprintf("\n![%s](img/%s)\n", p.title, p.file)
	}
	changed, err := table.Replace(string(document), beginMarker, endMarker, "\n"+text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "img"), 0o755); err != nil {
		return err
	}
	for _, p := range pictures {
		if err := os.WriteFile(filepath.Join(dir, "img", p.file), []byte(p.svg), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(path, []byte(changed), 0o644)
}
