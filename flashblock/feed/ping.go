// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"time"

	"github.com/coder/websocket"
)

// ping returns when a client does not answer any more, or ctx ends. Silence is
// no sign of life: without it a client that vanished would hold its place until a
// message to it fails.
func (p *Publisher) ping(ctx context.Context, conn *websocket.Conn) {
	ticker := time.NewTicker(p.options.PingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		answer, cancel := context.WithTimeout(ctx, p.options.PingEvery)
		err := conn.Ping(answer)
		cancel()
		if err != nil {
			return
		}
	}
}
