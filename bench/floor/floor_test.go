// SPDX-License-Identifier: Apache-2.0

package floor_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"glimpse/bench/floor"
	"glimpse/bench/workload"
	"glimpse/internal/chaingen"
)

func serve(t *testing.T) (c *workload.Chain, url string) {
	t.Helper()
	dir := t.TempDir()
	shape := chaingen.StorageOptions{Contracts: 20, Slots: 300, Blocks: 10, Rewrites: 20, Large: 2}
	if _, err := workload.Generate(t.Context(), dir, 1, shape); err != nil {
		t.Fatal(err)
	}
	c, err := workload.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := floor.New(c)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		l.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return c, "http://" + l.Addr().String()
}

func post(t *testing.T, url string, body []byte) (status int, answer []byte) {
	t.Helper()
	resp, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer
}

type request struct {
	ID     int
	Params []string
}

type response struct {
	ID     int
	Result string
}

// want is what the chain has for a request for a slot.
func want(c *workload.Chain, r request) response {
	block := c.Head()
	if n, err := hexutil.DecodeUint64(r.Params[2]); err == nil {
		block = n
	}
	value := c.Value(c.Contracts()[common.HexToAddress(r.Params[0])], common.HexToHash(r.Params[1]), block)
	return response{r.ID, value.Hex()}
}

func TestEveryRequestIsAnsweredFromTheChain(t *testing.T) {
	c, url := serve(t)
	d := c.NewDrawer(1)
	for name, draw := range map[string]func() []byte{
		"latest":     func() []byte { return d.Present(workload.Latest) },
		"pending":    func() []byte { return d.Present(workload.Pending) },
		"historical": func() []byte { return d.Historical(1) },
		"absent":     func() []byte { return d.Absent(workload.Latest) },
	} {
		t.Run(name, func(t *testing.T) {
			for range 100 {
				body := draw()
				_, answer := post(t, url, body)
				var r request
				var got response
				if err := json.Unmarshal(body, &r); err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(answer, &got); err != nil {
					t.Fatalf("%v: %s", err, answer)
				}
				if got != want(c, r) {
					t.Fatalf("%s: got %v, want %v", body, got, want(c, r))
				}
			}
		})
	}
	t.Run("batch", func(t *testing.T) {
		body := d.Batch(100, workload.Latest)
		_, answer := post(t, url, body)
		var requests []request
		var got []response
		if err := json.Unmarshal(body, &requests); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(answer, &got); err != nil || len(got) != len(requests) {
			t.Fatalf("%d answers to %d requests: %v", len(got), len(requests), err)
		}
		for i, r := range requests {
			if got[i] != want(c, r) {
				t.Fatalf("%v: got %v, want %v", r, got[i], want(c, r))
			}
		}
	})
	t.Run("code", func(t *testing.T) {
		_, answer := post(t, url, d.Code(workload.Latest))
		var got response
		if err := json.Unmarshal(answer, &got); err != nil || len(got.Result) != 2+2*chaingen.LargeCode {
			t.Errorf("got a code of %d digits (%v)", len(got.Result), err)
		}
	})
}

func TestAnyOtherFormIsRefused(t *testing.T) {
	_, url := serve(t)
	const addr, slot = `"0x00000000000000000000000000000000000000aa"`, `"0x0000000000000000000000000000000000000000000000000000000000000001"`
	storage := func(params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_getStorageAt","params":[%s]}`, params)
	}
	if status, answer := post(t, url, []byte(storage(addr+","+slot+`,"latest"`))); status != 200 {
		t.Fatalf("the known form is refused: %s", answer)
	}
	for name, body := range map[string]string{
		"nothing":             "",
		"an empty batch":      "[]",
		"a batch with no end": "[" + storage(addr+","+slot+`,"latest"`),
		"a short address":     storage(`"0xaa",` + slot + `,"latest"`),
		"no slot":             storage(addr + `,"latest"`),
		"an unknown tag":      storage(addr + "," + slot + `,"someday"`),
		"something behind":    storage(addr+","+slot+`,"latest"`) + " ",
		"another end":         strings.TrimSuffix(storage(addr+","+slot+`,"latest"`), "]}") + "??",
		"one parameter more":  storage(addr + "," + slot + `,"latest",1`),
		"another method":      `{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":[` + addr + `,"latest"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			if status, answer := post(t, url, []byte(body)); status != 400 {
				t.Errorf("got status %d and %s, want 400", status, answer)
			}
		})
	}
}
