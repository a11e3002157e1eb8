// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"syscall"
	"time"
)

// runOnThread is Run on one thread, which is given back as it was: it is not
// ended, because processes that it started may be told to end with it.
func runOnThread(ctx context.Context, addr string, pool *Pool, o Options) (r *Result, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if o.Core >= 0 {
		undo, err := pinHere(o.Core)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, undo()) }()
	}
	p := &poller{pool: pool, options: o, random: rand.NewPCG(o.Seed, 2), result: Result{Latency: new(Histogram)}}
	defer p.close()
	if err := p.connect(ctx, addr); err != nil {
		return nil, err
	}
	if err := p.run(ctx); err != nil {
		return nil, err
	}
	return &p.result, nil
}

// A poller is the connections to one server.
type poller struct {
	pool    *Pool
	options Options
	random  *rand.PCG
	epoll   int
	opened  bool
	conns   []*connection

	now       time.Time // of the event that is being handled
	measuring bool
	heard     time.Time // when the last answer came
	result    Result
}

// A connection has one request on the way, always.
type connection struct {
	file   *os.File // owns fd
	fd     int
	unsent []byte // of the request
	sent   time.Time
	answer answer
}

func (p *poller) connect(ctx context.Context, addr string) (err error) {
	if p.epoll, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	p.opened = true
	for i := range p.options.Connections {
		c, err := dial(ctx, addr)
		if err != nil {
			return err
		}
		p.conns = append(p.conns, c)
		if err := p.watch(syscall.EPOLL_CTL_ADD, i, syscall.EPOLLIN); err != nil {
			return err
		}
	}
	return nil
}

// dial takes a socket out of the runtime's hands.
func dial(ctx context.Context, addr string) (*connection, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil, fmt.Errorf("%s is not reached over TCP", addr)
	}
	file, err := tcp.File()
	if err != nil {
		return nil, err
	}
	c := &connection{file: file, fd: int(file.Fd())}
	c.answer.raw = make([]byte, 0, 64<<10)
	if err := syscall.SetNonblock(c.fd, true); err != nil {
		file.Close()
		return nil, fmt.Errorf("socket: %w", err)
	}
	return c, nil
}

func (p *poller) watch(op, conn int, events uint32) error {
	event := syscall.EpollEvent{Events: events, Fd: int32(conn)}
	if err := syscall.EpollCtl(p.epoll, op, p.conns[conn].fd, &event); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
}

func (p *poller) close() {
	for _, c := range p.conns {
		c.file.Close()
	}
	if p.opened {
		_ = syscall.Close(p.epoll) // it holds nothing that could be lost
	}
}

// pollTimeout is how long at most nobody looks at the clock, in milliseconds.
const pollTimeout = 100

func (p *poller) run(ctx context.Context) error {
	begin := time.Now()
	p.now, p.heard = begin, begin
	for i := range p.conns {
		if err := p.send(i); err != nil {
			return err
		}
	}
	var from time.Time // when measuring began
	events := make([]syscall.EpollEvent, len(p.conns))
	for {
		n, err := syscall.EpollWait(p.epoll, events, pollTimeout)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("epoll: %w", err)
		}
		p.now = time.Now()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case p.now.Sub(p.heard) > silence:
			return ErrSilent
		case !p.measuring && p.now.Sub(begin) >= p.options.Warmup:
			from = p.now
			if err := p.begin(); err != nil {
				return err
			}
		case p.measuring && p.now.Sub(from) >= p.options.Duration:
			p.result.Elapsed = p.now.Sub(from)
			return p.end()
		}
		for i := range max(n, 0) {
			if err := p.handle(int(events[i].Fd), events[i].Events); err != nil {
				return err
			}
		}
	}
}

func (p *poller) begin() (err error) {
	p.measuring = true
	p.result.ServerCPU, p.result.OwnCPU, err = p.cpu()
	return err
}

func (p *poller) end() error {
	server, own, err := p.cpu()
	p.result.ServerCPU, p.result.OwnCPU = server-p.result.ServerCPU, own-p.result.OwnCPU
	return err
}

// cpu returns the processor time of the server and of this thread so far.
func (p *poller) cpu() (server, own time.Duration, err error) {
	const thisThread = 1 // RUSAGE_THREAD
	var u syscall.Rusage
	if err := syscall.Getrusage(thisThread, &u); err != nil {
		return 0, 0, fmt.Errorf("processor time: %w", err)
	}
	own = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	if p.options.ServerCPU != nil {
		server, err = p.options.ServerCPU()
	}
	return server, own, err
}

// send begins a request.
func (p *poller) send(conn int) error {
	c := p.conns[conn]
	c.answer.reset()
	c.unsent = p.pool.request(int(p.random.Uint64() % uint64(p.pool.Len())))
	c.sent = p.now
	return p.push(conn)
}

// push sends what the socket takes, and waits for room where that is not all.
func (p *poller) push(conn int) error {
	c := p.conns[conn]
	waited := false
	for len(c.unsent) > 0 {
		n, err := syscall.Write(c.fd, c.unsent)
		if errors.Is(err, syscall.EAGAIN) {
			waited = true
			break
		}
		if err != nil {
			return fmt.Errorf("send: %w", err)
		}
		c.unsent = c.unsent[n:]
	}
	if waited {
		return p.watch(syscall.EPOLL_CTL_MOD, conn, syscall.EPOLLIN|syscall.EPOLLOUT)
	}
	return nil
}

// handle reads what came, and asks again where that was all.
func (p *poller) handle(conn int, events uint32) error {
	c := p.conns[conn]
	if events&syscall.EPOLLOUT != 0 {
		if err := p.watch(syscall.EPOLL_CTL_MOD, conn, syscall.EPOLLIN); err != nil {
			return err
		}
		if err := p.push(conn); err != nil {
			return err
		}
	}
	if events&^syscall.EPOLLOUT == 0 {
		return nil
	}
	done, err := c.receive()
	if err != nil || !done {
		return err
	}
	// Other events of the same wake-up were handled meanwhile.
	p.now = time.Now()
	p.heard = p.now
	p.count(c)
	return p.send(conn)
}

// receive reads once, as much as is there or there is room for.
func (c *connection) receive() (done bool, err error) {
	a := &c.answer
	if len(a.raw) == cap(a.raw) {
		if cap(a.raw) >= maxAnswer {
			return false, ErrTooLarge
		}
		a.raw = append(make([]byte, 0, 2*cap(a.raw)), a.raw...)
	}
	n, err := syscall.Read(c.fd, a.raw[len(a.raw):cap(a.raw)])
	switch {
	case errors.Is(err, syscall.EAGAIN):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("receive: %w", err)
	case n == 0:
		return false, fmt.Errorf("receive: %w", io.ErrUnexpectedEOF)
	}
	a.raw = a.raw[:len(a.raw)+n]
	return a.complete()
}

func (p *poller) count(c *connection) {
	if !p.measuring {
		return
	}
	if failure := c.answer.failure(); failure != "" {
		if p.result.Failures == 0 {
			p.result.FirstFailure = failure
		}
		p.result.Failures++
		return
	}
	p.result.Answers++
	p.result.Latency.Add(p.now.Sub(c.sent))
}
