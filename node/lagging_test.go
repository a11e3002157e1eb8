// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"glimpse/devchain"
	"glimpse/ethapi"
	"glimpse/evm"
	"glimpse/head"
	"glimpse/internal/fixture"
)

// A laggard answers from the snapshots of a leader, each some time after the
// leader has published it, as a node does that hears of everything later.
type laggard struct {
	leader    *devNode
	published head.Publisher
	news      chan news
}

type news struct {
	state     state
	overlay   head.Overlay
	goodUntil time.Time
	heard     time.Time
}

// latest returns what the leader has published last.
func (l *laggard) latest() (news, error) {
	p := l.leader.preconfirmations
	p.mu.Lock()
	defer p.mu.Unlock()
	r, err := p.db.NewReader()
	if err != nil {
		return news{}, err
	}
	goodUntil, _ := p.tracker.Deadline()
	return news{state{r}, p.tracker.Overlay(), goodUntil, time.Now()}, nil
}

// listen passes on all that the leader publishes.
func (l *laggard) listen(ctx context.Context) error {
	defer close(l.news)
	for ctx.Err() == nil {
		lease := l.leader.published.Acquire()
		superseded := lease.Superseded()
		lease.Release()
		n, err := l.latest()
		if err != nil {
			return err
		}
		select {
		case l.news <- n:
		case <-ctx.Done():
			n.state.Release()
		}
		select {
		case <-superseded:
		case <-ctx.Done():
		}
	}
	return nil
}

// publish publishes each piece of news when wait returns.
func (l *laggard) publish(ctx context.Context, wait func(context.Context, news)) error {
	for n := range l.news {
		wait(ctx, n)
		l.published.Publish(n.state, n.overlay, n.goodUntil)
	}
	return nil
}

// startLaggard starts a node with an embedded chain and one behind it.
func startLaggard(t *testing.T, wait func(context.Context, news)) (leader, lagging string) {
	t.Helper()
	genesis, err := evm.ParseGenesis(devchain.Genesis())
	if err != nil {
		t.Fatal(err)
	}
	addr := make(addresses, 1)
	log := slog.New(addr)
	config := &DevConfig{
		Service:   Service{HTTP: Endpoint{Addr: "127.0.0.1"}, MaxWait: 10 * time.Second},
		BlockTime: 200 * time.Millisecond, FlashblockTime: 20 * time.Millisecond, PendingMaxAge: 10 * time.Second,
		FeedAddr: "127.0.0.1", Log: log, Out: io.Discard,
	}
	db, err := config.Store.open(log, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := initialize(db, genesis, true); err != nil {
		t.Fatal(err)
	}
	tries, err := openTries(db, 1<<20, log)
	if err != nil {
		t.Fatal(err)
	}
	first, err := config.build(db, tries, genesis.Rules)
	if err != nil {
		t.Fatal(err)
	}
	l := &laggard{leader: first, news: make(chan news, 10_000)}
	begin, err := l.latest()
	if err != nil {
		t.Fatal(err)
	}
	l.published.Publish(begin.state, nil, time.Time{})
	second, err := newService(&config.Service, db, &l.published, expectations{}, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		stop()
		running.Wait()
		l.published.Close()
		first.close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	start := func(run func() error) string {
		running.Go(func() {
			if err := run(); err != nil {
				t.Error(err)
			}
		})
		return "http://" + <-addr
	}
	leader = start(func() error { return first.run(ctx) })
	lagging = start(func() error {
		e, err := second.listen(ctx)
		if err != nil {
			return err
		}
		c := ethapi.Config{ChainID: genesis.Rules.ChainID(), Chain: genesis.Rules.Config(), EVM: caller{genesis.Rules}}
		return second.run(ctx, e, c, l.listen, func(ctx context.Context) error { return l.publish(ctx, wait) })
	})
	return leader, lagging
}

// addresses is a log that hears only where JSON-RPC is answered.
type addresses chan string

func (a addresses) Enabled(context.Context, slog.Level) bool { return true }
func (a addresses) WithAttrs([]slog.Attr) slog.Handler       { return a }
func (a addresses) WithGroup(string) slog.Handler            { return a }
func (a addresses) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(attr slog.Attr) bool {
		if r.Message == "json-rpc listening" {
			a <- attr.Value.String()
		}
		return true
	})
	return nil
}

// An asker is a client that remembers the newest progress it was shown.
type asker struct {
	client  http.Client
	careful bool   // it asks for at least what it has seen
	number  uint64 // of the newest progress
	index   uint64 // within that block; sealed stands for all of it
	sent    int
}

const sealed = ^uint64(0)

// An answer is a response to a call.
type answer struct {
	Result   json.RawMessage
	Error    *struct{ Data struct{ Reason string } }
	snapshot string
}

func (a *asker) ask(url, method string, params ...any) (answer, error) {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return answer{}, err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if a.careful && a.number > 0 {
		atLeast := fmt.Sprint(a.number)
		if a.index != sealed {
			atLeast += fmt.Sprintf(".%d", a.index)
		}
		header.Set("Glimpse-At-Least", atLeast)
		header.Set("Glimpse-Wait", "10000")
	}
	got, err := a.post(url, header, string(body))
	if err != nil {
		return got, err
	}
	a.sent++
	return got, a.see(got.snapshot)
}

func (a *asker) post(url string, header http.Header, body string) (got answer, err error) {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return got, err
	}
	req.Header = header
	resp, err := a.client.Do(req)
	if err != nil {
		return got, err
	}
	defer resp.Body.Close()
	got.snapshot = resp.Header.Get("Glimpse-Snapshot")
	return got, json.NewDecoder(resp.Body).Decode(&got)
}

// see remembers what a snapshot shows, as docs/rpc.md tells clients to.
func (a *asker) see(snapshot string) error {
	latest, pending, ok := strings.Cut(snapshot, ";pending=")
	if !ok {
		return fmt.Errorf("the snapshot is %q", snapshot)
	}
	if pending == "latest" {
		latest, _, _ = strings.Cut(latest, ":")
		pending = latest + "." + fmt.Sprint(sealed)
	}
	var number, index uint64
	if _, err := fmt.Sscanf(pending, "%d.%d", &number, &index); err != nil {
		return fmt.Errorf("the snapshot is %q: %w", snapshot, err)
	}
	if number > a.number || number == a.number && index > a.index {
		a.number, a.index = number, index
	}
	return nil
}

// Behind a round-robin proxy, contracts disappear for a client that just asks,
// and never for one that asks for at least what it has seen (P7).
func TestReadsThroughARoundRobinProxy(t *testing.T) {
	const lag = 60 * time.Millisecond
	leader, lagging := startLaggard(t, func(ctx context.Context, n news) {
		select {
		case <-time.After(time.Until(n.heard.Add(lag))):
		case <-ctx.Done():
		}
	})
	proxy := startProxy(t, leader, lagging)
	contracts := &deployer{leader: leader}

	requests, disappeared := contracts.readAll(t, proxy, false, 2000)
	t.Logf("without the header: %d disappearances in %d requests", disappeared, requests)
	if disappeared == 0 {
		t.Error("no contract disappeared: the second node does not lag, and nothing is shown")
	}
	requests, disappeared = contracts.readAll(t, proxy, true, 10_000)
	t.Logf("with the header: %d disappearances in %d requests", disappeared, requests)
	if disappeared > 0 {
		t.Errorf("%d times a contract disappeared", disappeared)
	}
}

// readAll has many clients read, which together send so many requests at least.
func (d *deployer) readAll(t *testing.T, url string, careful bool, requests int) (sent, disappeared int) {
	t.Helper()
	const clients = 64
	var mu sync.Mutex
	var running sync.WaitGroup
	for range clients {
		running.Go(func() {
			a := &asker{careful: careful}
			gone := 0
			for a.sent < requests/clients+1 {
				n, err := d.readNext(a, url, 20)
				if err != nil {
					t.Error(err)
					break
				}
				gone += n
			}
			mu.Lock()
			defer mu.Unlock()
			sent += a.sent
			disappeared += gone
		})
	}
	running.Wait()
	return sent, disappeared
}

// startProxy starts a proxy that sends every request to another node than the
// one before.
func startProxy(t *testing.T, nodes ...string) string {
	t.Helper()
	var turn atomic.Uint64
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		target, err := url.Parse(nodes[turn.Add(1)%uint64(len(nodes))])
		if err != nil {
			t.Error(err)
		}
		r.SetURL(target)
	}}
	l, err := listen(t.Context(), Endpoint{Addr: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: proxy}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Close()
		<-ended
	})
	return "http://" + l.Addr().String()
}

// cell is a contract that keeps what it is called with in slot 0, which is 42 at
// first.
const cellInit = "0x602a5f556012600e5f3960125ff336600c575f545f5260205ff35b5f355f5500"

// A deployer deploys one contract after the other.
type deployer struct {
	leader string
	mu     sync.Mutex // held while sending, so that nonces are in order
	nonce  uint64
}

func (d *deployer) next() (common.Address, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	from := devchain.Accounts()[0].Address
	got, err := new(asker).ask(d.leader, "eth_sendTransaction", map[string]any{"from": from, "gas": "0x30d40", "data": cellInit})
	if err != nil || got.Error != nil {
		return common.Address{}, fmt.Errorf("the contract is not deployed: %+v (%w)", got, err)
	}
	d.nonce++
	return crypto.CreateAddress(from, d.nonce-1), nil
}

// readNext deploys a contract, waits until it is seen, and counts how often it is
// gone in the reads after that.
func (d *deployer) readNext(a *asker, url string, reads int) (disappeared int, err error) {
	contract, err := d.next()
	if err != nil {
		return 0, err
	}
	seen := false
	for i := 0; i < reads; i++ {
		got, err := a.ask(url, "eth_getCode", contract, "pending")
		switch {
		case err != nil || got.Error != nil:
			return disappeared, fmt.Errorf("after %d requests: %+v (%w)", a.sent, got, err)
		case string(got.Result) != `"0x"`:
			seen = true
		case seen:
			disappeared++
		default:
			i = 0 // nothing counts before it is seen
		}
	}
	return disappeared, nil
}

// The example of docs/rpc.md, run against two nodes: the second is held back until
// it is asked to wait.
func TestDocumentedMonotonicReads(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(fixture.Repository(t), "docs", "rpc.md"))
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?m)^curl -si localhost:(8545|9545)(.*) -d '(.*)'$").FindAllStringSubmatch(string(text), -1)
	if len(example) != 4 {
		t.Fatalf("docs/rpc.md has %d requests to two nodes, want 4", len(example))
	}
	released := make(chan struct{})
	leader, lagging := startLaggard(t, func(ctx context.Context, _ news) {
		select {
		case <-released:
		case <-ctx.Done():
		}
	})
	nodes := map[string]string{"8545": leader, "9545": lagging}
	a := &asker{}
	contract, err := (&deployer{leader: leader}).next()
	for code := `"0x"`; err == nil && code == `"0x"`; {
		var got answer
		got, err = a.ask(leader, "eth_getCode", contract, "pending")
		code = string(got.Result)
	}
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`"0x36600c575f545f5260205ff35b5f355f5500"`, `"0x"`, "not-yet", `"0x36600c575f545f5260205ff35b5f355f5500"`}
	for i, request := range example {
		header := http.Header{}
		for _, field := range regexp.MustCompile("-H '([^:]*): ([^']*)'").FindAllStringSubmatch(request[2], -1) {
			header.Set(field[1], field[2])
		}
		if header.Get("Glimpse-At-Least") != "" {
			header.Set("Glimpse-At-Least", fmt.Sprintf("%d.%d", a.number, a.index))
		}
		if header.Get("Glimpse-Wait") != "" {
			time.AfterFunc(100*time.Millisecond, func() { close(released) })
		}
		got, err := a.post(nodes[request[1]], header, request[3])
		if i == 0 && err == nil {
			err = a.see(got.snapshot)
		}
		if err != nil {
			t.Fatal(err)
		}
		if string(got.Result) != want[i] && (got.Error == nil || got.Error.Data.Reason != want[i]) {
			t.Errorf("request %d answers %s %+v, want %s", i+1, got.Result, got.Error, want[i])
		}
	}
}
