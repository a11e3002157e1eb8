// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"time"
)

// An Endpoint is where something listens.
type Endpoint struct {
	Addr string // empty for nowhere
	Port int    // 0 takes a free one, which the log tells
}

// A Service is how a node is reached and how much it bears. docs/operations.md
// has the flags that it comes from, and their defaults; what is zero is the
// default of the part that it is for.
type Service struct {
	HTTP, WebSocket, Ops Endpoint

	AllowedHosts     []string
	CORSOrigins      []string
	WebSocketOrigins []string

	BatchLimit     int // calls
	MaxResponse    int // bytes
	MaxBody        int // bytes
	MaxHeader      int // bytes
	MaxConnections int
	MaxInFlight    int // requests
	MaxCalls       int // of those that execute or search

	MaxWait       time.Duration // that a caller can ask for
	Timeout       time.Duration // of a request
	HeaderTimeout time.Duration
	BodyTimeout   time.Duration
	WriteTimeout  time.Duration
	IdleTimeout   time.Duration

	Keys   string           // file; empty means that everybody is answered
	Reload <-chan os.Signal // when to read it again; may be nil

	Slow        time.Duration // from which calls are logged; 0 for none
	Pprof       bool
	MaxBlockAge time.Duration // unready after; 0 for what suits the source

	DrainTime       time.Duration // between being unready and stopping
	ShutdownTimeout time.Duration // for all of stopping
}
