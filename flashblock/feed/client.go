// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"glimpse/flashblock"
)

// An Endpoint is where a feed is found. Its secrets, in header, path, query or
// user, are in no event, error or statistic.
type Endpoint struct {
	// URL has the scheme ws or wss, and path and query as the feed wants them.
	URL string

	// Header is sent with the handshake, to this feed only; it may be nil.
	Header http.Header
}

// ClientOptions shape a Client. All but Feeds may be zero.
type ClientOptions struct {
	// Feeds are followed all at once; each flashblock is delivered once.
	Feeds []Endpoint

	// HTTPClient makes the handshakes; nil means one with the settings of
	// http.DefaultTransport.
	HTTPClient *http.Client

	// HandshakeTimeout bounds connecting; 0 means 10 s.
	HandshakeTimeout time.Duration

	// IdleTimeout is how long a feed may send no message before it is taken for
	// dead, though it answers pings; 0 means 30 s. Public feeds send several
	// each second, and some proxies cut what was silent for that long.
	IdleTimeout time.Duration

	// PingEvery is how often a feed must show that it lives, 0 means 2 s, and
	// PongTimeout how long it may take to, 0 means 4 s. It may send data in
	// place of an answer.
	PingEvery   time.Duration
	PongTimeout time.Duration

	// MinBackoff and MaxBackoff bound the time between attempts to connect,
	// which doubles with each; 0 means 0.5 s and 20 s.
	MinBackoff time.Duration
	MaxBackoff time.Duration

	// HealthyAfter is how long a connection must have lasted, messages still
	// coming, before the time between attempts is short again; 0 means 30 s.
	HealthyAfter time.Duration

	// MaxQueued and MaxQueuedBytes bound what waits for Next, for each feed; 0
	// means 256 messages and 64 MiB.
	MaxQueued      int
	MaxQueuedBytes int

	// KeepText lets messages keep the text they were decoded from, for Record.
	KeepText bool

	// OnEvent is told what happens, nil means nobody is. It is called from the
	// goroutines of the feeds, at the same time by several, and a feed waits
	// until it returns. What can come in floods is told every few seconds, with
	// a count.
	OnEvent func(Event)
}

func (o ClientOptions) withDefaults() ClientOptions {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(&o.HandshakeTimeout, 10*time.Second)
	set(&o.IdleTimeout, 30*time.Second)
	set(&o.PingEvery, 2*time.Second)
	set(&o.PongTimeout, 4*time.Second)
	set(&o.MinBackoff, 500*time.Millisecond)
	set(&o.MaxBackoff, 20*time.Second)
	set(&o.HealthyAfter, 30*time.Second)
	if o.MaxQueued == 0 {
		o.MaxQueued = 256
	}
	if o.MaxQueuedBytes == 0 {
		o.MaxQueuedBytes = 64 << 20
	}
	if o.OnEvent == nil {
		o.OnEvent = func(Event) {}
	}
	return o
}

// A Client follows one or several feeds over WebSocket, and connects again
// whenever it has to. Next belongs to one goroutine, Stats to any.
type Client struct {
	options   ClientOptions
	inbox     *inbox
	followers []*follower
	own       *http.Transport // nil where the caller brought a client
}

// NewClient returns a Client, which does nothing before Run. It fails where an
// endpoint cannot be one.
func NewClient(o ClientOptions) (*Client, error) {
	if len(o.Feeds) == 0 {
		return nil, errors.New("no feed to follow")
	}
	c := &Client{options: o.withDefaults()}
	if c.options.HTTPClient == nil {
		c.own = newTransport()
		c.options.HTTPClient = &http.Client{Transport: c.own}
	}
	var names []string
	for i, endpoint := range o.Feeds {
		host, err := checkEndpoint(endpoint.URL)
		if err != nil {
			return nil, fmt.Errorf("feed %d: %w", i+1, err)
		}
		names = append(names, host)
	}
	names = distinct(names)
	c.inbox = newInbox(names, c.options.MaxQueued, c.options.MaxQueuedBytes)
	for i, endpoint := range o.Feeds {
		c.followers = append(c.followers, &follower{
			feed:     i,
			name:     names[i],
			endpoint: endpoint,
			options:  &c.options,
			inbox:    c.inbox,
			backoff:  backoff{least: c.options.MinBackoff, most: c.options.MaxBackoff, random: rand.Float64},
		})
	}
	return c, nil
}

// maxHandshake bounds the headers of a feed's answer.
const maxHandshake = 64 << 10

// newTransport returns a transport of the Client's own, so that nobody else's
// connections are closed with it.
func newTransport() *http.Transport {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if common, ok := http.DefaultTransport.(*http.Transport); ok {
		t = common.Clone()
	}
	t.MaxResponseHeaderBytes = maxHandshake
	return t
}

// checkEndpoint returns the host of a feed. Errors do not repeat the URL, which
// may contain a key.
func checkEndpoint(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "", errors.New("malformed URL")
	case u.Scheme != "ws" && u.Scheme != "wss":
		return "", fmt.Errorf("URL has scheme %.10q, want ws or wss", u.Scheme)
	case u.Host == "":
		return "", errors.New("URL has no host")
	}
	return u.Host, nil
}

// distinct adds a number to names that occur again.
func distinct(names []string) []string {
	count := make(map[string]int, len(names))
	out := make([]string, len(names))
	for i, name := range names {
		name = strings.ToLower(name)
		count[name]++
		out[i] = name
		if n := count[name]; n > 1 {
			out[i] = fmt.Sprintf("%s #%d", name, n)
		}
	}
	return out
}

// Run follows the feeds until ctx ends, and returns its error. It must be called
// once. Trouble with a feed is never its end: that is an Event.
func (c *Client) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for _, f := range c.followers {
		all.Go(func() { f.run(ctx) })
	}
	all.Wait()
	c.inbox.close()
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
	return ctx.Err()
}

// Next waits for the next flashblock. They come in the order of each feed, and
// from feeds in turn. When Run has ended and nothing waits any more it returns
// ErrClosed.
func (c *Client) Next(ctx context.Context) (*flashblock.Message, error) {
	return c.inbox.next(ctx)
}

// Stats returns what was counted so far.
func (c *Client) Stats() Stats { return c.inbox.stats() }
