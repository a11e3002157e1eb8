// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"glimpse/flashblock/feed"
)

// RecordConfig is what Record needs. Log is required.
type RecordConfig struct {
	Feeds []string // WebSocket URLs
	File  string   // which must not be there yet
	Log   *slog.Logger
}

// Record writes what comes over feeds to a file until ctx ends.
func Record(ctx context.Context, c RecordConfig) error {
	if len(c.Feeds) == 0 {
		return errors.New("no feed given")
	}
	options := feed.ClientOptions{KeepText: true, OnEvent: func(e feed.Event) {
		c.Log.Info("feed of pre-confirmations", "what", e.What, "feed", e.Feed, "err", e.Err)
	}}
	for _, url := range c.Feeds {
		options.Feeds = append(options.Feeds, feed.Endpoint{URL: url})
	}
	client, err := feed.NewClient(options)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	err = runAll(ctx,
		func(ctx context.Context) error { return untilDone(ctx, client.Run(ctx)) },
		func(ctx context.Context) error {
			n, err := feed.Record(ctx, client, file)
			c.Log.Info("recorded", "flashblocks", n, "file", c.File)
			return untilDone(ctx, err)
		},
	)
	return errors.Join(err, file.Close())
}

// ReplayConfig is what Replay needs. Log is required.
type ReplayConfig struct {
	File     string
	Speed    float64       // times its own pace
	Interval time.Duration // between flashblocks where the file has no times

	Listen      Endpoint
	Compression string // none or brotli
	Log         *slog.Logger
}

// settle is how long after the first client the playing begins, so that one that
// connects at the same time misses nothing.
const settle = 500 * time.Millisecond

// Replay publishes a recorded feed to WebSocket clients, from the moment that the
// first one is there to its end, or until ctx ends.
func Replay(ctx context.Context, c ReplayConfig) error {
	if c.File == "" {
		return errors.New("no feed file given")
	}
	file, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer file.Close() // it is only read
	listener, err := listen(ctx, c.Listen)
	if err != nil {
		return err
	}
	publisher := feed.NewPublisher(feed.Options{Brotli: c.Compression == "brotli"})
	c.Log.Info("feed waits for a client", "url", fmt.Sprintf("ws://%s%s", listener.Addr(), feed.Path))
	somebody := make(chan struct{})
	arrived := sync.OnceFunc(func() { close(somebody) })
	return runAll(ctx,
		func(ctx context.Context) error { return untilDone(ctx, publisher.Run(ctx)) },
		func(ctx context.Context) error {
			return serveFeed(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				arrived()
				publisher.ServeHTTP(w, r)
			}))
		},
		func(ctx context.Context) error {
			select {
			case <-somebody:
			case <-ctx.Done():
				return nil
			}
			select {
			case <-time.After(settle):
			case <-ctx.Done():
				return nil
			}
			n, err := feed.Replay(ctx, file, publisher, feed.ReplayOptions{Speed: c.Speed, Interval: c.Interval})
			c.Log.Info("replayed", "flashblocks", n, "file", c.File)
			return untilDone(ctx, err)
		},
	)
}
