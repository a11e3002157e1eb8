// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A Link says how NATS is reached.
type Link struct {
	// URLs are those of the servers, with commas between them. They may hold a
	// user and a password.
	URLs string

	// Credentials is a file of NATS credentials; empty means none.
	Credentials string

	// Authorities is a file of the certificates that servers' are signed by; empty
	// means those that the machine trusts.
	Authorities string

	// InProcess, where not nil, is a server in this process, and URLs are not
	// looked at.
	InProcess interface {
		InProcessConn() (net.Conn, error)
	}
}

// A Conn is a connection as Publisher and Tail need it. It is safe for concurrent
// use.
type Conn struct{ *nats.Conn }

// Connect returns a connection under a name for people, with ConnectOptions. That
// no server can be reached now is no error: it goes on trying until Close. A URL or
// credentials that cannot be used are one.
func (l Link) Connect(name string) (*Conn, error) {
	options := ConnectOptions(name)
	if l.Credentials != "" {
		options = append(options, nats.UserCredentials(l.Credentials))
	}
	if l.Authorities != "" {
		options = append(options, nats.RootCAs(l.Authorities))
	}
	if l.InProcess != nil {
		options = append(options, nats.InProcessServer(l.InProcess))
	}
	nc, err := nats.Connect(l.URLs, options...)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	return &Conn{nc}, nil
}

// snapshotTimeout bounds the wait for one answer about a snapshot, whose messages
// are big.
const snapshotTimeout = 10 * time.Second

// connected says why there is no connection now; otherwise requests fail for reasons
// of the library's, which tell nobody what is wrong.
func connected(nc *nats.Conn) error {
	if nc.IsConnected() {
		return nil
	}
	if err := nc.LastError(); err != nil {
		return fmt.Errorf("no connection to NATS: %w", err)
	}
	return errors.New("no connection to NATS yet")
}

// JetStream returns the connection as snapshots need it.
func (c *Conn) JetStream() (jetstream.JetStream, error) {
	js, err := jetstream.New(c.Conn, jetstream.WithDefaultTimeout(snapshotTimeout))
	if err != nil {
		return nil, fmt.Errorf("use JetStream: %w", err)
	}
	return js, nil
}

// A Want says why a replica asks for another snapshot.
type Want string

const (
	// Newer: the newest snapshot is not there, or not reached by the stream.
	Newer Want = "newer"

	// Whole: the newest snapshot is damaged.
	Whole Want = "whole"
)

// Ask tells the writer that a replica needs another snapshot than there is. Nobody
// answers, and nobody may be there: who needs one asks again every so often.
func (c *Conn) Ask(s Settings, w Want) error {
	s = s.withDefaults()
	if err := c.Publish(s.wanted(), []byte(w)); err != nil {
		return fmt.Errorf("ask for a snapshot: %w", err)
	}
	return nil
}

// Wanted returns what replicas ask for, until stop is called. The channel holds
// one: replicas ask again, and all want the same. Whole goes before Newer.
func (c *Conn) Wanted(s Settings) (wants <-chan Want, stop func(), err error) {
	s = s.withDefaults()
	box := make(chan Want, 1)
	sub, err := c.Subscribe(s.wanted(), func(m *nats.Msg) {
		want := Newer
		if string(m.Data) == string(Whole) {
			want = Whole
		}
		// One goroutine calls this, so there is room after it has looked.
		select {
		case before := <-box:
			if before == Whole {
				want = Whole
			}
		default:
		}
		box <- want
	})
	if err != nil {
		return nil, nil, fmt.Errorf("hear what replicas want: %w", err)
	}
	// A connection that is closed has no subscriptions.
	return box, func() { _ = sub.Unsubscribe() }, nil
}
