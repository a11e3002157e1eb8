// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// MaxPayload is how big one message may be. What a block changed is one message,
// and the default of NATS, 1 MiB, is less than a big block needs.
const MaxPayload = 8 << 20

// maxMemory bounds what streams in memory may hold. There are none: what is
// published here must survive.
const maxMemory = 64 << 20

// readyWithin is how long the server may take to read its store and listen.
const readyWithin = time.Minute

// Options say how a Server is started.
type Options struct {
	// Dir holds the streams. It is made if it is missing. No other server may
	// use it.
	Dir string

	// Addr and Port are where clients connect. An empty Addr is 127.0.0.1, port
	// 0 is any that is free.
	Addr string
	Port int

	// MaxBytes bounds what all streams together may hold on disk. Zero means
	// what the disk has.
	MaxBytes int64

	// Logger receives the server's own messages at debug level. Nil drops them;
	// what keeps it from starting is also returned as an error.
	Logger *slog.Logger
}

// A Server is a running NATS server. It is safe for concurrent use.
type Server struct{ server *server.Server }

// Start starts a server and returns when clients can connect.
func Start(o Options) (*Server, error) {
	s, err := start(o)
	if err != nil {
		return nil, fmt.Errorf("start embedded nats-server in %q: %w", o.Dir, err)
	}
	return s, nil
}

func start(o Options) (*Server, error) {
	if o.Dir == "" {
		return nil, errors.New("no directory for its streams")
	}
	if o.Addr == "" {
		o.Addr = "127.0.0.1"
	}
	if o.Port == 0 {
		o.Port = server.RANDOM_PORT
	}
	log := newServerLog(o.Logger)
	s, err := server.NewServer(&server.Options{
		ServerName:         "glimpse",
		Host:               o.Addr,
		Port:               o.Port,
		NoSigs:             true, // signals are the process's, and it stops the server
		MaxPayload:         MaxPayload,
		JetStream:          true,
		JetStreamMaxMemory: maxMemory,
		JetStreamMaxStore:  o.MaxBytes,
		StoreDir:           o.Dir,
		SyncAlways:         true,
	})
	if err != nil {
		return nil, err
	}
	s.SetLoggerV2(log, false, false, false)
	s.Start()
	if err := waitReady(s, log); err != nil {
		s.Shutdown()
		return nil, err
	}
	return &Server{s}, nil
}

// waitReady returns when clients can connect, or when the server has said that
// they never will.
func waitReady(s *server.Server, log *serverLog) error {
	deadline := time.After(readyWithin)
	for !s.ReadyForConnections(10 * time.Millisecond) {
		select {
		case <-log.failed:
			return log.fault()
		case <-deadline:
			return fmt.Errorf("not ready within %s", readyWithin)
		default:
		}
	}
	return nil
}

// ClientURL returns where clients of other processes connect.
func (s *Server) ClientURL() string { return s.server.ClientURL() }

// InProcessConn returns a connection to the server that does not leave the
// process. A Server is thereby what nats.InProcessServer expects.
func (s *Server) InProcessConn() (net.Conn, error) { return s.server.InProcessConn() }

// Connect returns a client in the same process. The caller closes it.
func (s *Server) Connect(o ...nats.Option) (*nats.Conn, error) {
	conn, err := nats.Connect("", append([]nats.Option{nats.InProcessServer(s)}, o...)...)
	if err != nil {
		return nil, fmt.Errorf("connect to embedded nats-server: %w", err)
	}
	return conn, nil
}

// Close disconnects all clients, closes the streams and waits until the server
// is gone. Closing twice is fine.
func (s *Server) Close() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}
