// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// frameBuffer is what each WebSocket connection reads and writes through.
const frameBuffer = 4 << 10

// handshake turns an HTTP connection into a WebSocket, or answers why not; the
// answer ends it.
func (k *socket) handshake() (ws *websocket.Conn, ok bool) {
	// A connection that cannot take a deadline fails the read as well.
	_ = k.wire.SetReadDeadline(time.Now().Add(k.service.options.HeaderTimeout))
	head, r := k.wire.readHead(k.service.options.MaxHeader)
	if r == nil {
		ws, r = k.upgrade(head)
	}
	if r == nil {
		return ws, true
	}
	if _, err := k.wire.Write(k.service.refusalResponse(r)); err == nil {
		lingerOn(k.wire.Conn)
	}
	return nil, false
}

// upgrade decides about the header of a request and answers it, unless it
// returns a refusal.
func (k *socket) upgrade(head []byte) (*websocket.Conn, *refusal) {
	_, lines, _ := bytes.Cut(head, []byte{'\n'})
	f := readFields(lines, k.service.asked)
	request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
	if err != nil {
		return nil, refuseNonsense
	}
	path := []byte(request.URL.EscapedPath())
	switch {
	case request.ProtoMajor != 1:
		return nil, refuseVersion
	case f.folded:
		return nil, refuseFolding
	case !k.service.hosts.allow([]byte(request.Host)):
		return nil, refuseHost
	case string(path) != "/" && (k.service.options.Gate == nil || !isKeyPath(path)):
		return nil, refusePath
	case !hasToken(f.upgrade.value, "websocket"):
		return nil, refuseUpgrade
	case !k.service.origins.allow(f.origin):
		return nil, refuseOrigin
	}
	ticket, r := k.service.admit(&f.authorization, path)
	if r != nil {
		return nil, r
	}
	k.ticket = ticket
	k.header.take(k.service.Server, &f, nil)
	k.header = k.header.clone()
	return k.accept(request)
}

// accept answers a request that may become a WebSocket.
func (k *socket) accept(request *http.Request) (*websocket.Conn, *refusal) {
	answer := &upgradeAnswer{header: make(http.Header), wire: k.wire}
	if s := k.service.stamper; s != nil {
		if name, value := s.AppendStamp(nil); name != "" {
			answer.header.Set(name, string(value))
		}
	}
	ws, err := websocket.Accept(answer, request, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // the origin has been decided about
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		return nil, &refusal{status: max(answer.status, http.StatusBadRequest), reason: string(bytes.TrimSpace(answer.text)), close: true}
	}
	ws.SetReadLimit(int64(k.service.options.MaxBody))
	return ws, nil
}

// refusalResponse is a whole HTTP response that says r and ends the connection.
func (s *Server) refusalResponse(r *refusal) []byte {
	body := r.body()
	var out bytes.Buffer
	fmt.Fprintf(&out, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n",
		r.status, http.StatusText(r.status), contentType, len(body))
	switch r.status {
	case http.StatusUnauthorized:
		out.WriteString("WWW-Authenticate: Bearer\r\n")
	case http.StatusUpgradeRequired:
		out.WriteString("Upgrade: websocket\r\n")
	}
	if s.stamper != nil {
		if name, value := s.stamper.AppendStamp(nil); name != "" {
			fmt.Fprintf(&out, "%s: %s\r\n", name, value)
		}
	}
	out.WriteString("\r\n")
	out.Write(body)
	return out.Bytes()
}

// An upgradeAnswer is the http.ResponseWriter that the WebSocket library asks
// for. A refusal is kept, so that it can be given the form that all have.
type upgradeAnswer struct {
	header http.Header
	wire   *wire
	status int
	text   []byte
}

func (a *upgradeAnswer) Header() http.Header { return a.header }

func (a *upgradeAnswer) Write(p []byte) (int, error) {
	a.text = append(a.text, p...)
	return len(p), nil
}

func (a *upgradeAnswer) WriteHeader(status int) { a.status = status }

// Hijack sends the answer and hands over the connection.
func (a *upgradeAnswer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	var head bytes.Buffer
	fmt.Fprintf(&head, "HTTP/1.1 %d %s\r\n", a.status, http.StatusText(a.status))
	if err := a.header.Write(&head); err != nil {
		return nil, nil, fmt.Errorf("write handshake: %w", err)
	}
	head.WriteString("\r\n")
	if _, err := a.wire.Write(head.Bytes()); err != nil {
		return nil, nil, fmt.Errorf("write handshake: %w", err)
	}
	return a.wire, bufio.NewReadWriter(bufio.NewReaderSize(a.wire, frameBuffer), bufio.NewWriterSize(a.wire, frameBuffer)), nil
}
