// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"bytes"
	"net"
	"sync/atomic"
	"time"
)

// A wire is the connection beneath a WebSocket. Every write has its time, so
// that nothing waits for a client that does not read.
type wire struct {
	net.Conn
	ahead        []byte // read with the handshake, but not part of it; used by the reading goroutine only
	writeTimeout time.Duration

	reads  atomic.Uint64 // that brought something
	writes atomic.Int64  // under way
}

func (w *wire) Read(p []byte) (int, error) {
	if len(w.ahead) > 0 {
		n := copy(p, w.ahead)
		w.ahead = w.ahead[n:]
		return n, nil
	}
	n, err := w.Conn.Read(p)
	if n > 0 {
		w.reads.Add(1)
	}
	return n, err
}

func (w *wire) Write(p []byte) (int, error) {
	w.writes.Add(1)
	defer w.writes.Add(-1)
	if err := w.Conn.SetWriteDeadline(time.Now().Add(w.writeTimeout)); err != nil {
		return 0, err
	}
	return w.Conn.Write(p)
}

// readHead reads the header of a request with its last empty line, at most
// most bytes. What came after it is kept for Read.
func (w *wire) readHead(most int) ([]byte, *refusal) {
	head := make([]byte, 0, 1024)
	for {
		if len(head) == cap(head) {
			head = append(head, make([]byte, len(head))...)[:len(head)]
		}
		n, err := w.Conn.Read(head[len(head):min(cap(head), most)])
		from := max(0, len(head)-3)
		head = head[:len(head)+n]
		if len(head) > 0 && !beginsRequest(head[0]) {
			return nil, refuseNonsense
		}
		if at := bytes.Index(head[from:], []byte("\r\n\r\n")); at >= 0 {
			end := from + at + 4
			w.ahead = bytes.Clone(head[end:])
			return head[:end], nil
		}
		switch {
		case len(head) >= most:
			return nil, refuseHeaderSize
		case err != nil && isTimeout(err):
			return nil, refuseSlowness
		case err != nil:
			return nil, refuseNonsense
		}
	}
}
