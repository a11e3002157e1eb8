// SPDX-License-Identifier: Apache-2.0

package jsonrpc_test

import (
	"bufio"
	"context"
	"net"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"glimpse/jsonrpc"
)

const storageCall = `{"jsonrpc":"2.0","id":17,"method":"eth_getStorageAt","params":["0x7dcd17433742f4c0ca53122ab541d0ba67fc27df","0x0000000000000000000000000000000000000000000000000000000000000001","latest"]}`

// snapshot is rendered once, as a real handler would do.
var snapshot = []byte("7")

// constant answers every call with the same word, at no cost of its own.
type constant struct{}

func (constant) Has([]byte) bool                                       { return true }
func (constant) Begin(context.Context, jsonrpc.Header) jsonrpc.Session { return constant{} }
func (constant) End()                                                  {}
func (constant) Stamp() (string, []byte)                               { return "Toy-Snapshot", snapshot }
func (constant) Call(_ context.Context, dst, _ []byte, params jsonrpc.Values) ([]byte, *jsonrpc.Error) {
	for {
		v, ok := params.Next()
		if !ok {
			return append(dst, `"0x0000000000000000000000000000000000000000000000000000000000000038"`...), nil
		}
		if _, ok := v.Text(); !ok {
			return dst, jsonrpc.InvalidParams("want a string")
		}
	}
}

// parsed returns a request as the HTTP library hands it over.
func parsed(t testing.TB, body string, lines ...string) *fasthttp.RequestCtx {
	t.Helper()
	var ctx fasthttp.RequestCtx
	client, server := net.Pipe()
	t.Cleanup(func() { client.Close(); server.Close() })
	ctx.Init2(server, nil, false)
	if err := ctx.Request.Read(bufio.NewReader(strings.NewReader(post(body, lines...)))); err != nil {
		t.Fatal(err)
	}
	return &ctx
}

func TestPlainCallMakesNoGarbage(t *testing.T) {
	if raceDetector {
		t.Skip("pools keep nothing under the race detector")
	}
	handle := jsonrpc.HTTPHandler(constant{}, jsonrpc.Options{Gate: newRing(t), Headers: []string{"At-Least", "Wait"}})
	ctx := parsed(t, storageCall, "User-Agent: test", "Accept: */*", "Accept-Encoding: gzip, deflate", "Authorization: Bearer "+goodKey, "At-Least: 5")
	got := testing.AllocsPerRun(1000, func() {
		handle(ctx)
		ctx.Response.Reset()
	})
	if got != 0 {
		t.Errorf("got %v allocations per call, want 0", got)
	}
	handle(ctx)
	if body := string(ctx.Response.Body()); !strings.Contains(body, `"id":17,"result":"0x`) {
		t.Errorf("got %s, want a result", body)
	}
}

func BenchmarkParse(b *testing.B) {
	reader := jsonrpc.NewReader()
	body := []byte(storageCall)
	b.Run("fast", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			reader.Fast(body)
		}
	})
	b.Run("careful", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			reader.Careful(body)
		}
	})
}

func BenchmarkHandle(b *testing.B) {
	handle := jsonrpc.HTTPHandler(constant{}, jsonrpc.Options{})
	for _, bm := range []struct{ name, body string }{
		{"single", storageCall},
		{"batch100", "[" + strings.Repeat(storageCall+",", 99) + storageCall + "]"},
	} {
		b.Run(bm.name, func(b *testing.B) {
			ctx := parsed(b, bm.body)
			b.ReportAllocs()
			for b.Loop() {
				handle(ctx)
				ctx.Response.Reset()
			}
		})
	}
}

// BenchmarkLoopback is a call over TCP, with as many connections as the
// parallelism allows.
func BenchmarkLoopback(b *testing.B) {
	r := start(b, constant{}, jsonrpc.Options{})
	request := []byte(post(storageCall))
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		c, err := net.Dial("tcp", r.addr)
		if err != nil {
			b.Error(err)
			return
		}
		defer c.Close()
		buffer := make([]byte, 4096)
		for pb.Next() {
			if _, err := c.Write(request); err != nil {
				b.Error(err)
				return
			}
			if _, err := c.Read(buffer); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
