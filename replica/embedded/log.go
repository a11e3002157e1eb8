// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
)

// A serverLog is the server's logger. The server tells why it cannot start to
// its logger and to nobody else, and expects that Fatalf ends the process.
type serverLog struct {
	log    *slog.Logger
	first  atomic.Pointer[string] // the first that would have ended the process
	failed chan struct{}          // closed when first is set
}

func newServerLog(log *slog.Logger) *serverLog {
	return &serverLog{log: log, failed: make(chan struct{})}
}

// Noticef implements server.Logger, as the others here do.
func (l *serverLog) Noticef(format string, args ...any) { l.write(format, args) }
func (l *serverLog) Warnf(format string, args ...any)   { l.write(format, args) }
func (l *serverLog) Debugf(format string, args ...any)  { l.write(format, args) }
func (l *serverLog) Tracef(format string, args ...any)  { l.write(format, args) }
func (l *serverLog) Errorf(format string, args ...any)  { l.write(format, args) }

// Fatalf implements server.Logger.
func (l *serverLog) Fatalf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if l.first.CompareAndSwap(nil, &text) {
		close(l.failed)
	}
	l.write("%s", []any{text})
}

func (l *serverLog) write(format string, args []any) {
	if l.log != nil && l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug("nats-server", "text", fmt.Sprintf(format, args...))
	}
}

// fault is why the server did not start. It is asked for after failed.
func (l *serverLog) fault() error { return errors.New(*l.first.Load()) }
