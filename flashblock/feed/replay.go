// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"glimpse/flashblock"
)

// ReplayOptions say how fast a recording is played. The zero value plays it at its
// own pace.
type ReplayOptions struct {
	// Speed is how many times faster than recorded, at least 0.001; 0 means 1.
	Speed float64

	// Interval is the time between flashblocks where the recording has no
	// times, before Speed is applied; 0 means 200 ms.
	Interval time.Duration
}

// minSpeed keeps what follows from a time in a recording within what can be
// waited for.
const minSpeed = 0.001

// maxRecorded is the longest time in a recording that is believed.
const maxRecorded = 30 * 24 * time.Hour

// Replay publishes a recording to its end, and returns how many flashblocks that
// were. A recording has one message in each line: as Record writes it, or the
// message alone, or {"brotli_base64": …} with the message compressed; empty lines
// are skipped. Messages are sent with all their members. An error in the recording
// names the line, and all before it was published.
func Replay(ctx context.Context, recording io.Reader, p *Publisher, o ReplayOptions) (int, error) {
	if o.Speed == 0 {
		o.Speed = 1
	}
	if o.Interval == 0 {
		o.Interval = 200 * time.Millisecond
	}
	if !(o.Speed >= minSpeed) || math.IsInf(o.Speed, 0) || o.Interval < 0 {
		return 0, fmt.Errorf("replay at speed %v with interval %v", o.Speed, o.Interval)
	}
	lines := newLines(recording)
	begin := time.Now()
	var first, at time.Duration // as recorded
	for n := 0; ; n++ {
		l, err := lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return n, nil
		case err != nil:
			return n, fmt.Errorf("replay: line %d: %w", lines.number, err)
		case n == 0:
			first, at = l.after, l.after
		case l.timed:
			at = max(at, l.after) // a clock that went back is no reason to wait
		default:
			at += o.Interval
		}
		if err := waitUntil(ctx, begin.Add(time.Duration(float64(at-first)/o.Speed))); err != nil {
			return n, err
		}
		if err := p.PublishText(ctx, l.text); err != nil {
			return n, fmt.Errorf("replay: line %d: %w", lines.number, err)
		}
	}
}

func waitUntil(ctx context.Context, at time.Time) error {
	wait := time.Until(at)
	if wait <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A recordedLine is one message of a recording.
type recordedLine struct {
	text  []byte
	after time.Duration // since the recording began
	timed bool          // false where the recording does not say when
}

type recordingLines struct {
	scanner *bufio.Scanner
	number  int // of the last line, from 1
}

// maxLine is the longest line: a message of the largest size, with what is around
// it.
const maxLine = flashblock.MaxSize + 4096

func newLines(r io.Reader) *recordingLines {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	return &recordingLines{scanner: s}
}

// next returns io.EOF after the last line.
func (l *recordingLines) next() (recordedLine, error) {
	for l.scanner.Scan() {
		l.number++
		if line := bytes.TrimSpace(l.scanner.Bytes()); len(line) > 0 {
			return parseLine(line)
		}
	}
	if err := l.scanner.Err(); err != nil {
		l.number++
		return recordedLine{}, err
	}
	return recordedLine{}, io.EOF
}

// parseLine returns a line that was checked to be a flashblock. It shares no
// memory with line.
func parseLine(line []byte) (recordedLine, error) {
	var form struct {
		Time    *float64        `json:"t"`
		Message json.RawMessage `json:"m"`
		Brotli  []byte          `json:"brotli_base64"`
	}
	if err := json.Unmarshal(line, &form); err != nil {
		return recordedLine{}, fmt.Errorf("neither a recorded message nor a message: %.200s", err.Error())
	}
	data := line
	switch {
	case form.Message != nil:
		data = form.Message
	case form.Brotli != nil:
		data = form.Brotli
	}
	m, err := flashblock.DecodeWithText(data)
	if err != nil {
		return recordedLine{}, err
	}
	text, _ := m.Text()
	out := recordedLine{text: text}
	if form.Time != nil {
		after := *form.Time * float64(time.Millisecond)
		if !(after >= 0 && after <= float64(maxRecorded)) {
			return recordedLine{}, fmt.Errorf("time %v is not that of a recording", *form.Time)
		}
		out.after, out.timed = time.Duration(after), true
	}
	return out, nil
}
