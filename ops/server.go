// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// Options say what Serve shows. Metrics and Health are required.
type Options struct {
	Metrics *Metrics
	Health  *Health
	Version string // for the status page

	// Pprof shows profiles under /debug/pprof. They cost time while they are
	// taken, and tell what the program does: only for whom the port is meant.
	Pprof bool
}

// What one caller may take. There are few, and they ask for little.
const (
	maxConnections = 256
	maxHeader      = 8 << 10
	headerTimeout  = 5 * time.Second
	readTimeout    = 10 * time.Second
	writeTimeout   = 20 * time.Second // profiles add their own time to it
	idleTimeout    = 2 * time.Minute
	stopTimeout    = time.Second
)

// Serve answers on l until ctx ends, then lets requests under way finish for a
// second and cuts off those that have not. It closes l. It is meant to be stopped last, so that the node says
// that it drains for as long as it does. The error is nil when ctx ended.
func Serve(ctx context.Context, l net.Listener, o Options) error {
	server := &http.Server{
		Handler:           NewHandler(o),
		MaxHeaderBytes:    maxHeader,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          silent(),
	}
	served := make(chan error, 1) // one is sent, so that the sender never waits
	go func() { served <- server.Serve(limit(l, maxConnections)) }()

	select {
	case err := <-served:
		return fmt.Errorf("operations server: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	err := server.Shutdown(grace)
	if err != nil {
		// A profile may run for minutes; nobody waits for it.
		err = server.Close()
	}
	<-served
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// NewHandler returns what Serve answers with, for a server of another kind.
func NewHandler(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/livez", live)
	mux.HandleFunc("/readyz", o.Health.serveReady)
	mux.Handle("/metrics", o.Metrics.handler())
	mux.Handle("/{$}", statusPage(o))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusNotFound, "no such page") })
	if o.Pprof {
		// Importing net/http/pprof puts these on http.DefaultServeMux too,
		// which nothing here serves.
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return readOnly(mux)
}

// readOnly lets only GET and HEAD through: nothing here changes anything. What
// is shown is of this moment, and no cache may answer with it later.
func readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, "only GET and HEAD")
			return
		}
		next.ServeHTTP(w, r)
	})
}
