// SPDX-License-Identifier: Apache-2.0

// Command roundrobin spreads HTTP requests over some servers, one after the
// other, for trying a set of replicas on one machine. A server that does not
// answer is left out for that request. It keeps no client at one server: reads
// stay in order by Glimpse-At-Least alone.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync/atomic"
	"time"
)

// maxBody is the most that a request may carry: it is kept, to be sent to the
// next server where one is gone.
const maxBody = 5 << 20

func main() {
	listen := flag.String("listen", "127.0.0.1:8500", "`ADDRESS` to listen on; port 0 takes a free one")
	flag.Parse()
	if err := run(*listen, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "roundrobin:", err)
		os.Exit(1)
	}
}

func run(listen string, servers []string) error {
	s := &spread{transport: &http.Transport{MaxIdleConnsPerHost: 64, ResponseHeaderTimeout: time.Minute}}
	for _, server := range servers {
		u, err := url.Parse(server)
		if err != nil || u.Host == "" {
			return fmt.Errorf("server %q is not a URL", server)
		}
		s.servers = append(s.servers, u.Host)
	}
	if len(s.servers) == 0 {
		return errors.New("want the URLs of servers as arguments")
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", l.Addr())
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme = "http" }, Transport: s}
	server := &http.Server{Handler: http.MaxBytesHandler(proxy, maxBody), ReadHeaderTimeout: 10 * time.Second}
	return server.Serve(l)
}

// A spread gives each request to the next server, or to one after it.
type spread struct {
	servers   []string
	turn      atomic.Uint64
	transport http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (s *spread) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	var err error
	if r.Body != nil {
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	first := s.turn.Add(1)
	for i := range s.servers {
		r.URL.Host = s.servers[(first+uint64(i))%uint64(len(s.servers))]
		r.Host = r.URL.Host
		r.Body = io.NopCloser(bytes.NewReader(body))
		var answer *http.Response
		if answer, err = s.transport.RoundTrip(r); err == nil {
			return answer, nil
		}
		if r.Context().Err() != nil {
			break
		}
	}
	return nil, err
}
