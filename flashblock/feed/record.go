// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"glimpse/flashblock"
)

// A Source is where flashblocks are recorded from, a Client or a Subscription.
type Source interface {
	// Next waits for the next flashblock. An error that wraps
	// flashblock.ErrMessage is about one message only.
	Next(ctx context.Context) (*flashblock.Message, error)
}

// Record writes what comes from source to w until ctx or the source ends, and
// returns how many flashblocks it wrote and the error that ended it, which is
// never nil. A flashblock is one line,
//
//	{"t":<milliseconds since the first>,"m":<the message>}
//
// and one call of w.Write, so that whatever ends a recording leaves whole lines.
// Messages that kept their text are written with all members that they had, see
// ClientOptions.KeepText.
func Record(ctx context.Context, source Source, w io.Writer) (int, error) {
	var begin time.Time
	for n := 0; ; {
		m, err := source.Next(ctx)
		switch {
		case errors.Is(err, flashblock.ErrMessage):
			continue
		case err != nil:
			return n, fmt.Errorf("record: %w", err)
		}
		now := time.Now()
		if n == 0 {
			begin = now
		}
		text, err := recorded(m, now.Sub(begin))
		if err == nil {
			_, err = w.Write(text)
		}
		if err != nil {
			return n, fmt.Errorf("record flashblock %s: %w", m.Position(), err)
		}
		n++
	}
}

// recorded returns the line of a message.
func recorded(m *flashblock.Message, after time.Duration) ([]byte, error) {
	text, ok := m.Text()
	if !ok {
		var err error
		if text, err = flashblock.Encode(m); err != nil {
			return nil, err
		}
	}
	out := bytes.NewBufferString(`{"t":`)
	out.WriteString(strconv.FormatInt(after.Milliseconds(), 10))
	out.WriteString(`,"m":`)
	// Without the line breaks that a feed may have put in.
	if err := json.Compact(out, text); err != nil {
		return nil, err
	}
	out.WriteString("}\n")
	return out.Bytes(), nil
}
