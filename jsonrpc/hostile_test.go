// SPDX-License-Identifier: Apache-2.0

//go:build unix

package jsonrpc_test

import (
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"glimpse/jsonrpc"
)

// GLIMPSE_HOSTILE=1 makes the attacks as big as they are in earnest.
var inEarnest = os.Getenv("GLIMPSE_HOSTILE") != ""

// An attack is many clients that all do the same.
type attack struct {
	name        string
	options     jsonrpc.Options
	few, many   int // clients, as a rule and in earnest
	result      int // bytes that one call may add to an answer
	overHTTP    bool
	first       string                                 // what each says at once
	then        func(c net.Conn, stop <-chan struct{}) // and goes on with, if anything, until it is cut off or told to stop
	mustBeEnded bool                                   // the server must end all of them by itself
	refused     func(jsonrpc.Stats) uint64             // what must have been counted, where something must
}

// heldPerConnection is what a connection may cost beside its header buffer:
// what is kept of bodies and answers (64 KiB at most), the buffers of frames,
// stacks, and in these tests the client, which is in the same process.
const heldPerConnection = 112 << 10

// bound is how much memory n connections may make a server hold:
//
//	n x (MaxHeader + heldPerConnection + result) + 2 x MaxHeld + 32 MiB
//
// where result is what one call may add to an answer before it is counted,
// and the last is for what does not depend on the clients: pools, and the
// garbage of the moment. As many results as are in flight can be there at once,
// and an answer that grows is there twice while it is copied.
func (a *attack) bound(n int) uint64 {
	o := jsonrpc.WithDefaults(a.options)
	return uint64(n*(o.MaxHeader+heldPerConnection+a.result) + 2*o.MaxHeld + 32<<20)
}

func attacks() []attack {
	quick := func(o jsonrpc.Options) jsonrpc.Options {
		o.MaxConnections, o.MaxHeld, o.Namespace = 20000, 32<<20, "toy"
		return o
	}
	nested := strings.Repeat("[", 1<<20)
	long := "[" + strings.Repeat(call("1", "kilobytes", "[500]")+",", 15) + one + "]"
	flood := string(frame(text, call("1", "subscribe", `["flood"]`)))
	return []attack{
		{name: "a byte of a header now and then", options: quick(jsonrpc.Options{HeaderTimeout: 300 * time.Millisecond}),
			few: 50, many: 2000, overHTTP: true, first: "POST / HTTP/1.1\r\nX-A: ", then: trickle, mustBeEnded: true},
		{name: "a byte of a handshake now and then", options: quick(jsonrpc.Options{HeaderTimeout: 300 * time.Millisecond}),
			few: 50, many: 2000, first: "GET / HTTP/1.1\r\nX-A: ", then: trickle, mustBeEnded: true},
		{name: "a byte of a body now and then", options: quick(jsonrpc.Options{BodyTimeout: 300 * time.Millisecond}),
			few: 50, many: 2000, overHTTP: true, first: request("POST", "/", strings.Repeat(" ", 5<<20))[:200], then: trickle, mustBeEnded: true,
			refused: func(s jsonrpc.Stats) uint64 { return s.RefusedMemory }},
		{name: "a byte of a message now and then", options: quick(jsonrpc.Options{BodyTimeout: 300 * time.Millisecond}),
			few: 50, many: 2000, first: upgradeRequest + string(frame(text, strings.Repeat(" ", 1<<20))[:20]), then: trickle, mustBeEnded: true},
		{name: "connections that say nothing", options: quick(jsonrpc.Options{HeaderTimeout: 300 * time.Millisecond}),
			few: 50, many: 2000, overHTTP: true, then: untilEnd, mustBeEnded: true},
		{name: "connections that are reset", options: quick(jsonrpc.Options{}),
			few: 50, many: 2000, overHTTP: true, first: post(call("1", "kilobytes", "[200]")), then: reset, mustBeEnded: true},
		{name: "headers that are too long", options: quick(jsonrpc.Options{}),
			few: 20, many: 500, overHTTP: true, first: "POST / HTTP/1.1\r\nX-A: " + strings.Repeat("y", 100_000), then: untilEnd, mustBeEnded: true},
		{name: "handshakes that are too long", options: quick(jsonrpc.Options{}),
			few: 20, many: 500, first: "GET / HTTP/1.1\r\nX-A: " + strings.Repeat("y", 100_000), then: untilEnd, mustBeEnded: true},
		{name: "bodies that are too long", options: quick(jsonrpc.Options{}),
			few: 20, many: 500, overHTTP: true, first: "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000000000000\r\n\r\n[",
			then: untilEnd, mustBeEnded: true},
		{name: "messages that are too long", options: quick(jsonrpc.Options{MaxBody: 1000}),
			few: 20, many: 500, first: upgradeRequest + string(frame(text, strings.Repeat(" ", 5000))), then: untilEnd, mustBeEnded: true},
		{name: "deep nesting", options: quick(jsonrpc.Options{IdleTimeout: 1500 * time.Millisecond}),
			few: 10, many: 100, overHTTP: true, first: post(nested), then: untilEnd, mustBeEnded: true},
		{name: "deep nesting in messages", options: quick(jsonrpc.Options{PingInterval: 200 * time.Millisecond}),
			few: 10, many: 100, first: upgradeRequest + string(frame(text, nested)), then: untilEnd, mustBeEnded: true},
		{name: "idle connections", options: quick(jsonrpc.Options{}), few: 200, many: 10000, overHTTP: true},
		{name: "idle connections that have asked", options: quick(jsonrpc.Options{}), few: 200, many: 10000, overHTTP: true, first: post(one)},
		{name: "idle WebSockets", options: quick(jsonrpc.Options{}), few: 200, many: 10000, first: upgradeRequest + string(frame(text, one))},
		{name: "answers that nobody reads", options: quick(jsonrpc.Options{WriteTimeout: 200 * time.Millisecond}), result: 2 << 20,
			few: 20, many: 200, overHTTP: true, first: strings.Repeat(post(long), 10),
			refused: func(s jsonrpc.Stats) uint64 { return s.RefusedMemory }},
		{name: "messages that nobody reads", options: quick(jsonrpc.Options{WriteTimeout: 200 * time.Millisecond}), result: 2 << 20,
			few: 20, many: 200, first: upgradeRequest + strings.Repeat(string(frame(text, long)), 10),
			refused: func(s jsonrpc.Stats) uint64 { return s.SlowConsumers }},
		{name: "subscribers that do not read", options: quick(jsonrpc.Options{WriteTimeout: 200 * time.Millisecond}),
			few: 5, many: 500, first: upgradeRequest + strings.Repeat(flood, 5), mustBeEnded: true, then: waitForReset,
			refused: func(s jsonrpc.Stats) uint64 { return s.SlowConsumers }},
		{name: "a flood of calls", options: quick(jsonrpc.Options{WriteTimeout: 200 * time.Millisecond}),
			few: 2, many: 50, first: upgradeRequest, then: repeat(string(frame(text, one)))},
		{name: "a flood of pings", options: quick(jsonrpc.Options{WriteTimeout: 200 * time.Millisecond}),
			few: 2, many: 50, first: upgradeRequest, then: repeat(string(frame(pinging, strings.Repeat("x", 125))))},
		{name: "a flood of empty fragments", options: quick(jsonrpc.Options{BodyTimeout: 200 * time.Millisecond}),
			few: 2, many: 50, first: upgradeRequest + string(frame(textBegins, "")), then: repeat(string(frame(moreToCome, "")))},
	}
}

// trickle sends a byte at a time until it is cut off.
func trickle(c net.Conn, stop <-chan struct{}) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, c)
	}()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ended:
			return
		case <-tick.C:
			_, _ = io.WriteString(c, "y") // ended says whether it failed
		}
	}
}

// untilEnd reads until the server ends the connection.
func untilEnd(c net.Conn, _ <-chan struct{}) { _, _ = io.Copy(io.Discard, c) }

// reset ends the connection without a goodbye.
func reset(c net.Conn, _ <-chan struct{}) { _ = c.(*net.TCPConn).SetLinger(0) }

// waitForReset does not read, and learns by writing that it was cut off.
func waitForReset(c net.Conn, stop <-chan struct{}) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			_ = c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
			if _, err := c.Write(frame(pongs, "")); err != nil && !os.IsTimeout(err) {
				return
			}
		}
	}
}

// repeat says the same for ever and does not read.
func repeat(text string) func(net.Conn, <-chan struct{}) {
	return func(c net.Conn, stop <-chan struct{}) {
		text := strings.Repeat(text, 100)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
			if _, err := io.WriteString(c, text); err != nil {
				return // cut off, or the server takes no more
			}
		}
	}
}

// clients returns how many clients there may be: each has two files here.
func (a *attack) clients(t *testing.T) int {
	n := a.few
	if inEarnest {
		n = a.many
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	if most := int(min(files.Cur, 1<<20))/2 - 100; n > most {
		t.Logf("%d clients in place of %d: the system allows %d open files", most, n, files.Cur)
		n = most
	}
	return n
}

func TestHostileClients(t *testing.T) {
	for _, a := range attacks() {
		t.Run(a.name, func(t *testing.T) { a.run(t) })
	}
}

func (a *attack) run(t *testing.T) {
	s := jsonrpc.NewServer(&pusher{size: 10_000, feed: make(chan string)}, a.options)
	overHTTP := run(t, s, s.Serve)
	target := overHTTP.addr
	if !a.overHTTP {
		target = run(t, s, s.ServeWebSocket).addr
	}
	honest := overHTTP.dial(t)
	if err := honest.SetDeadline(time.Now().Add(10 * patience)); err != nil {
		t.Fatal(err)
	}
	ask(honest)

	n := a.clients(t)
	before := memory()
	stop := make(chan struct{})
	var clients sync.WaitGroup
	conns := make([]net.Conn, n)
	for i := range conns {
		c, err := net.Dial("tcp", target)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns[i] = c
		clients.Go(func() { a.client(c, stop) })
	}
	latency, highest := a.askMeanwhile(honest, before)
	if a.refused != nil {
		await(t, "what the attack meets to be counted", func() {
			for a.refused(s.Stats()) == 0 {
				ask(honest)
			}
		})
	}
	if a.mustBeEnded {
		await(t, "the server to end the clients", clients.Wait)
	} else {
		close(stop)
		await(t, "the clients", clients.Wait)
	}
	if got, most := max(highest, memory())-before, a.bound(n); int64(got) > int64(most) {
		t.Errorf("%d clients made the server hold %d KiB, want at most %d", n, got>>10, most>>10)
	} else {
		t.Logf("%d clients: %d KiB of at most %d; honest latency median %v, 99%% %v, worst %v",
			n, int64(got)>>10, most>>10, latency[len(latency)/2], latency[len(latency)*99/100], latency[len(latency)-1])
	}
	for _, c := range conns {
		c.Close()
	}
	await(t, "the end of all connections", func() {
		for s.Stats().Connections > 1 {
			ask(honest)
		}
	})
	if got := s.Stats(); got.Held != 0 || got.Subscriptions != 0 || got.InFlight != 0 {
		t.Errorf("got %+v left", got)
	}
}

func (a *attack) client(c net.Conn, stop <-chan struct{}) {
	if a.first != "" {
		// A client that does not read may not get all of it out.
		_ = c.SetWriteDeadline(time.Now().Add(patience))
		_, _ = io.WriteString(c, a.first)
	}
	if a.then != nil {
		a.then(c, stop)
		if a.mustBeEnded {
			c.Close()
		}
	}
}

// askMeanwhile asks for a while, and returns how long each answer took, in
// order, and the most memory that was seen.
func (a *attack) askMeanwhile(honest *client, before uint64) (latency []time.Duration, highest uint64) {
	highest = before
	for i := range 300 {
		latency = append(latency, ask(honest))
		if i%100 == 50 {
			highest = max(highest, memory())
		}
	}
	slices.Sort(latency)
	return latency, highest
}

func ask(c *client) time.Duration {
	c.Helper()
	began := time.Now()
	c.send(post(one))
	if got := c.receive("POST"); got.body != result("1", "1") {
		c.Fatalf("an honest request got %d %s", got.status, got.body)
	}
	return time.Since(began)
}

// memory is what is in use and cannot be collected. What is in a pool can be,
// by the second collection.
func memory() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

func await(t *testing.T, what string, wait func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait()
	}()
	select {
	case <-done:
	case <-time.After(6 * patience):
		t.Fatalf("waited too long for %s", what)
	}
}
