// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"glimpse/chain"
	"glimpse/replica"
)

// Settings are what writers and replicas of one stream agree on. The zero value
// has sensible ones.
type Settings struct {
	// Name is that of the stream, and what its subjects begin with; empty means
	// glimpse. Chains that share NATS servers need one each.
	Name string

	// MaxAge and MaxBytes are how much the stream keeps; 0 means 24 hours and
	// 4 GiB. A replica that was away for longer needs a snapshot.
	MaxAge   time.Duration
	MaxBytes int64

	// Replicas is how many servers keep the stream; 0 means 1. Three survive
	// the loss of one.
	Replicas int

	// Piece is the most that a message carries and MaxEvent the most that an
	// event has; 0 means replica.DefaultPiece and replica.DefaultMaxEvent.
	Piece, MaxEvent int

	// Backlog is how many blocks a new stream begins with, so that replicas
	// that had the old one need no snapshot; 0 means 256.
	Backlog chain.Number

	// WholeEvery is how often all that is pre-confirmed is told again; 0 means
	// 1 s.
	WholeEvery time.Duration

	// Timeout bounds the wait for one answer of a server; 0 means 2 s. What is
	// asked while a stream has no leader is never answered, so this is how long
	// after an election nobody notices it.
	Timeout time.Duration
}

func (s Settings) withDefaults() Settings {
	s.Name = or(s.Name, "glimpse")
	s.MaxAge = or(s.MaxAge, 24*time.Hour)
	s.MaxBytes = or(s.MaxBytes, 4<<30)
	s.Replicas = or(s.Replicas, 1)
	s.Piece = or(s.Piece, replica.DefaultPiece)
	s.MaxEvent = or(s.MaxEvent, replica.DefaultMaxEvent)
	s.Backlog = or(s.Backlog, 256)
	s.WholeEvery = or(s.WholeEvery, time.Second)
	s.Timeout = or(s.Timeout, 2*time.Second)
	return s
}

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// Validate says what is wrong with s.
func (s Settings) Validate() error {
	s = s.withDefaults()
	for _, c := range s.Name {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return fmt.Errorf("stream name %q: want letters, digits, - and _", s.Name)
		}
	}
	switch {
	case s.MaxAge < 0 || s.MaxBytes < 0:
		return fmt.Errorf("stream that keeps %v and %d bytes", s.MaxAge, s.MaxBytes)
	case s.Replicas < 1 || s.Replicas > 5:
		return fmt.Errorf("stream on %d servers, want 1 to 5", s.Replicas)
	case s.Piece < 1<<10 || s.MaxEvent < s.Piece:
		return fmt.Errorf("messages of %d bytes for events of up to %d, want at least 1024", s.Piece, s.MaxEvent)
	}
	return nil
}

func (s *Settings) blocks() string  { return s.Name + ".blocks" }
func (s *Settings) pending() string { return s.Name + ".pending" }
func (s *Settings) writer() string  { return s.Name + ".writer" }
func (s *Settings) wanted() string  { return s.Name + ".wanted" }

// duplicates is how long a server remembers message ids. What is retried later is
// told by the place in the stream.
const duplicates = 2 * time.Minute

const (
	metaChainID = "glimpse-chain-id"
	metaGenesis = "glimpse-genesis"
)

func (s *Settings) config(id replica.Identity) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        s.Name,
		Description: "blocks of " + id.String() + " for replicas of glimpse",
		Subjects:    []string{s.blocks()},
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardOld,
		Storage:     jetstream.FileStorage,
		MaxAge:      s.MaxAge,
		MaxBytes:    s.MaxBytes,
		Replicas:    s.Replicas,
		Duplicates:  min(duplicates, s.MaxAge),
		Metadata:    map[string]string{metaChainID: strconv.FormatUint(id.ChainID, 10), metaGenesis: id.Genesis.Hex()},
	}
}

// identityOf reads which chain a stream is of.
func identityOf(c *jetstream.StreamConfig) (replica.Identity, error) {
	id, err := strconv.ParseUint(c.Metadata[metaChainID], 10, 64)
	genesis := chain.Hash{}
	if err == nil {
		err = genesis.UnmarshalText([]byte(c.Metadata[metaGenesis]))
	}
	if err != nil {
		return replica.Identity{}, fmt.Errorf("stream %s: %w: it was not made by glimpse; choose another stream name", c.Name, replica.ErrForeign)
	}
	return replica.Identity{ChainID: id, Genesis: genesis}, nil
}

func checkIdentity(c *jetstream.StreamConfig, want replica.Identity) error {
	have, err := identityOf(c)
	if err == nil && have != want {
		err = fmt.Errorf("stream %s: %w: it is of %s, this store is of %s; choose another stream name or another datadir", c.Name, replica.ErrForeign, have, want)
	}
	return err
}

// Describe returns which chain the stream is of, for a replica that has no store
// yet. The error wraps ErrNoStream where there is no stream.
func Describe(ctx context.Context, nc *nats.Conn, s Settings) (replica.Identity, error) {
	s = s.withDefaults()
	if err := connected(nc); err != nil {
		return replica.Identity{}, err
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(s.Timeout))
	if err != nil {
		return replica.Identity{}, fmt.Errorf("describe stream %s: %w", s.Name, err)
	}
	stream, err := js.Stream(ctx, s.Name)
	if err != nil {
		return replica.Identity{}, fmt.Errorf("describe stream %s: %w", s.Name, noStream(err))
	}
	return identityOf(&stream.CachedInfo().Config)
}

// ErrNoStream is the answer where no writer has made the stream yet, or somebody
// has deleted it. A writer makes it again.
var ErrNoStream = errors.New("there is no such stream: is the writer running with --publish?")

func noStream(err error) error {
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return ErrNoStream
	}
	return err
}

// ConnectOptions are those that Publisher and Tail need of a connection: it tries
// for ever to be connected, fails at once what is sent while it is not, because
// what is pending then is worthless later, and notices a dead server in seconds.
func ConnectOptions(name string) []nats.Option {
	return []nats.Option{
		nats.Name(name),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(), // who is let in may be changed at the server
		nats.ReconnectWait(200 * time.Millisecond),
		nats.ReconnectJitter(100*time.Millisecond, 200*time.Millisecond),
		nats.ReconnectBufSize(-1),
		nats.PingInterval(time.Second),
		nats.MaxPingsOutstanding(2),
		nats.FlusherTimeout(5 * time.Second),
	}
}
