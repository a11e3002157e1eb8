// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// TestFollowLatency measures the time from a flashblock with many transactions
// leaving its publisher to a read on a follower's pending that shows it. It
// prints the distribution and judges only that all of them show up.
//
// GLIMPSE_LATENCY_FLASHBLOCKS is how many flashblocks are measured; make
// follow-latency sets it.
func TestFollowLatency(t *testing.T) {
	want := number(t, "GLIMPSE_LATENCY_FLASHBLOCKS", 10)
	s := startDev(t)
	f := startFollow(t, "ws://"+s.ws, "--feed", "ws://"+s.feed(t)+"/ws", "--datadir", t.TempDir())
	conn, _, err := websocket.Dial(t.Context(), "ws://"+s.feed(t)+"/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	conn.SetReadLimit(16 << 20)
	f.ready(t, "?tag=pending")

	batches := signMany(t, s, want+30)
	var took []time.Duration
	transactions := 0
	for len(took) < want {
		_, data, err := conn.Read(t.Context())
		left := time.Now()
		if err != nil {
			t.Fatal(err)
		}
		number, index := member(t, data, "block_number"), member(t, data, "index")
		shownAt(t, f, number+"."+index)
		if n := bytes.Count(data, []byte(`"cumulativeGasUsed"`)); 40 <= n && n <= 60 { // not what came too late for one and is in the next
			took = append(took, time.Since(left))
			transactions += n
		}
		// What is sent now is in the next one; the first of a block comes right
		// after the last of the block before, and has none.
		if index == "0" {
			continue
		}
		if len(batches) == 0 {
			t.Fatalf("only %d flashblocks had enough transactions", len(took))
		}
		if _, err := post(t.Context(), s.url(), batches[0]); err != nil {
			t.Fatal(err)
		}
		batches = batches[1:]
	}
	slices.Sort(took)
	t.Logf("%d flashblocks of %d transactions on average, from the publisher to a read on the follower: p50 %v, p90 %v, p99 %v, most %v",
		len(took), transactions/len(took), part(took, 0.5), part(took, 0.9), part(took, 0.99), part(took, 1))
}

// member returns the last number of a name in a message. Decoding all of it would
// take from the time that is measured.
func member(t *testing.T, data []byte, name string) string {
	t.Helper()
	name = `"` + name + `":`
	at := bytes.LastIndex(data, []byte(name))
	if at < 0 {
		t.Fatalf("no %s in %.200s", name, data)
	}
	digits := data[at+len(name):]
	end := bytes.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
	return string(digits[:end])
}

// shownAt reads from a follower as soon as it has a flashblock.
func shownAt(t *testing.T, f *server, progress string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url(),
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"eth_getStorageAt","params":["0x5fbdb2315678afecb367f032d93f642f64180aa3","0x0","pending"]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Glimpse-At-Least", progress)
	req.Header.Set("Glimpse-Wait", "5000")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(text), `"result"`) {
		t.Fatalf("flashblock %s is not on pending: %s (%v)", progress, text, err)
	}
}

// signMany returns batches that send fifty transactions each.
func signMany(t *testing.T, s *server, count int) [][]byte {
	t.Helper()
	var wallets []*wallet
	for i := range devKeys {
		wallets = append(wallets, newWallet(t, i))
	}
	cell := deployCell(t, s.url(), wallets[0])
	batches := make([][]byte, count)
	for n := range batches {
		var calls []rpcCall
		for i := range 50 {
			raw, err := wallets[i%len(wallets)].sign(t, &cell, word(uint64(50*n+i))).MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			calls = append(calls, rpcCall{"2.0", i, "eth_sendRawTransaction", []any{hexutil.Bytes(raw)}})
		}
		var err error
		if batches[n], err = json.Marshal(calls); err != nil {
			t.Fatal(err)
		}
	}
	return batches
}
