// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"glimpse/node"
)

// How often progress is shown: as one line that is written over on a terminal,
// as lines of the log elsewhere.
const (
	terminalPeriod = 200 * time.Millisecond
	logPeriod      = 8 * time.Second
)

// A progress shows how a long command comes along.
type progress struct {
	log      *slog.Logger
	terminal io.Writer // nil where there is none
	period   time.Duration
	shown    time.Time
	last     *node.ImportProgress // shown at the end; nil before the first block
	before   node.ImportProgress  // when progress was last shown, for rates
}

func newProgress(log *slog.Logger, stderr io.Writer) *progress {
	p := &progress{log: log, period: logPeriod, shown: time.Now()}
	if f, ok := stderr.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			p.terminal, p.period = stderr, terminalPeriod
		}
	}
	return p
}

// due reports whether it is time to show progress again.
func (p *progress) due() bool {
	now := time.Now()
	if now.Sub(p.shown) < p.period {
		return false
	}
	p.shown = now
	return true
}

// imported is told about each block that an import has passed.
func (p *progress) imported(now node.ImportProgress) {
	p.last = &now
	if !p.due() {
		return
	}
	blocks, mgas := rates(p.before, now)
	p.before = now
	if p.terminal == nil {
		p.log.Info("importing", "block", now.Block.Number, "blocks/s", int(blocks), "mgas/s", int(mgas),
			"done", percent(now), "eta", eta(now))
		return
	}
	fmt.Fprintf(p.terminal, "\r\x1b[Kblock %d  %.0f blocks/s  %.1f Mgas/s  %s  ETA %s",
		now.Block.Number, blocks, mgas, percent(now), eta(now))
}

// checked is told how far a verification is.
func (p *progress) checked(now node.VerifyProgress) {
	if !p.due() {
		return
	}
	if p.terminal == nil {
		p.log.Info("verifying", "keys", now.Keys, "at", now.At)
		return
	}
	fmt.Fprintf(p.terminal, "\r\x1b[K%d keys checked  %s", now.Keys, now.At)
}

// finish ends the line on a terminal and sums an import up.
func (p *progress) finish() {
	if p.terminal != nil {
		fmt.Fprint(p.terminal, "\r\x1b[K")
	}
	if p.last == nil {
		return
	}
	blocks, mgas := rates(node.ImportProgress{}, *p.last)
	p.log.Info("imported", "blocks", p.last.Blocks, "skipped", p.last.Skipped, "transactions", p.last.Transactions,
		"head", p.last.Block.Number, "hash", p.last.Block.Hash, "dur", p.last.Elapsed.Round(time.Millisecond),
		"blocks/s", int(blocks), "mgas/s", int(mgas))
}

// rates returns blocks and millions of gas per second between two moments.
func rates(before, now node.ImportProgress) (blocks, mgas float64) {
	seconds := (now.Elapsed - before.Elapsed).Seconds()
	if seconds <= 0 {
		return 0, 0
	}
	done := now.Blocks + now.Skipped - before.Blocks - before.Skipped
	return float64(done) / seconds, float64(now.Gas-before.Gas) / 1e6 / seconds
}

func percent(p node.ImportProgress) string {
	if p.BytesTotal == 0 {
		return "100%"
	}
	return fmt.Sprintf("%.0f%%", 100*float64(p.BytesRead)/float64(p.BytesTotal))
}

// eta guesses from the bytes of the files: how many blocks they hold is not
// known.
func eta(p node.ImportProgress) time.Duration {
	if p.BytesRead == 0 {
		return 0
	}
	left := float64(p.BytesTotal-p.BytesRead) / float64(p.BytesRead)
	return time.Duration(left * float64(p.Elapsed)).Round(time.Second)
}
