// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"glimpse/node"
)

const (
	devAccount = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"

	// The twins store what they are called with in slots 0 and 1. They are the
	// first contract of the account.
	twinsInit = "0x6009600a5f3960095ff35f35805f5560015500"
	twins     = "0x5fbdb2315678afecb367f032d93f642f64180aa3"
)

// startDev runs the embedded chain until the end of the test.
func startDev(t *testing.T, blockTime, flashblockTime time.Duration) (url string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	addr, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- node.Dev(ctx, node.DevConfig{
			Service: node.Service{HTTP: node.Endpoint{Addr: "127.0.0.1"}}, FeedAddr: "127.0.0.1", FeedCompression: "none",
			BlockTime: blockTime, FlashblockTime: flashblockTime, SafeLag: 2, FinalizedLag: 4,
			Log: slog.New(listenHandler{slog.DiscardHandler, addr}), Out: io.Discard,
		})
	}()
	select {
	case a := <-addr:
		t.Cleanup(func() {
			stop()
			if err := <-ended; err != nil {
				t.Errorf("Dev: %v", err)
			}
		})
		return "http://" + a
	case err := <-ended:
		stop()
		t.Fatalf("Dev ended before it listened: %v", err)
	}
	return ""
}

// A batchView is what one batch sees of pending and of latest, and which snapshot
// its answer says it is.
type batchView struct {
	pendingSlots, latestSlots [2]string
	pendingBlock, latestBlock struct{ Number, Hash, ParentHash string }
	height                    string
	snapshot                  string
}

// readBatch asks the same mixed reads several times in one batch, whose answers
// must all be the same.
func readBatch(ctx context.Context, client *http.Client, url string, times int) (batchView, error) {
	mixed := []string{
		slotCall(0, "pending"), slotCall(0, "latest"), `"eth_getBlockByNumber","params":["pending",false]`,
		`"eth_blockNumber","params":[]`, `"eth_getBlockByNumber","params":["latest",false]`,
		slotCall(1, "latest"), slotCall(1, "pending"),
	}
	var calls []string
	for range times {
		for _, c := range mixed {
			calls = append(calls, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%s}`, len(calls), c))
		}
	}
	answers, snapshot, err := postBatch(ctx, client, url, calls)
	if err != nil {
		return batchView{}, err
	}
	views := make([]batchView, times)
	for i, a := range answers {
		v := &views[i/len(mixed)]
		into := []any{
			&v.pendingSlots[0], &v.latestSlots[0], &v.pendingBlock, &v.height, &v.latestBlock, &v.latestSlots[1], &v.pendingSlots[1],
		}
		if err := json.Unmarshal(a.Result, into[i%len(mixed)]); err != nil {
			return batchView{}, fmt.Errorf("%s: %w: %s", calls[i], err, a.Error)
		}
	}
	for _, v := range views[1:] {
		if v != views[0] {
			return batchView{}, fmt.Errorf("one batch sees %+v and %+v", views[0], v)
		}
	}
	views[0].snapshot = snapshot
	return views[0], nil
}

type batchAnswer struct{ Result, Error json.RawMessage }

func postBatch(ctx context.Context, client *http.Client, url string, calls []string) (answers []batchAnswer, snapshot string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("["+strings.Join(calls, ",")+"]"))
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&answers); err != nil {
		return nil, "", err
	}
	if len(answers) != len(calls) {
		return nil, "", fmt.Errorf("%d answers to %d calls", len(answers), len(calls))
	}
	return answers, resp.Header.Get("Glimpse-Snapshot"), nil
}

func slotCall(n int, tag string) string {
	return fmt.Sprintf(`"eth_getStorageAt","params":["%s","%#x","%s"]`, twins, n, tag)
}

// check returns what cannot be in one snapshot (P1, P3), or not in the one that
// the answer names (P7).
func (v *batchView) check(stored *sync.Map) error {
	if err := v.checkSnapshot(); err != nil {
		return err
	}
	for tag, slots := range map[string][2]string{"pending": v.pendingSlots, "latest": v.latestSlots} {
		if slots[0] != slots[1] {
			return fmt.Errorf("the twins differ on %s: %v", tag, slots)
		}
		if _, ok := stored.Load(slots[0]); !ok {
			return fmt.Errorf("%s on %s was never stored", slots[0], tag)
		}
	}
	if v.height != v.latestBlock.Number {
		return fmt.Errorf("height %s, but latest is block %s", v.height, v.latestBlock.Number)
	}
	if v.pendingBlock.Number == v.latestBlock.Number {
		if v.pendingBlock.Hash != v.latestBlock.Hash || v.pendingSlots != v.latestSlots {
			return fmt.Errorf("pending and latest are both block %s and differ", v.height)
		}
		return nil
	}
	if v.pendingBlock.ParentHash != v.latestBlock.Hash {
		return fmt.Errorf("pending block %s does not stand on latest block %s", v.pendingBlock.Number, v.latestBlock.Number)
	}
	return nil
}

// checkSnapshot compares what was read with the header of the answer.
func (v *batchView) checkSnapshot() error {
	var latest, pending uint64
	if _, err := fmt.Sscan(v.latestBlock.Number, &latest); err != nil {
		return err
	}
	if _, err := fmt.Sscan(v.pendingBlock.Number, &pending); err != nil {
		return err
	}
	want := fmt.Sprintf("%d:%s;pending=latest", latest, v.latestBlock.Hash)
	if pending == latest {
		if v.snapshot != want {
			return fmt.Errorf("the snapshot is said to be %q, but the answers are of %q", v.snapshot, want)
		}
		return nil
	}
	want = fmt.Sprintf("%d:%s;pending=%d.", latest, v.latestBlock.Hash, pending)
	if !strings.HasPrefix(v.snapshot, want) {
		return fmt.Errorf("the snapshot is said to be %q, but the answers are of %q", v.snapshot, want)
	}
	return nil
}

// Sixty-four readers during a storm of transactions, reorgs, revocations and bad
// feeds: every batch is of one snapshot, the one that its header names, and holds
// only what was stored. Some batches are as large as they may be.
func TestBatchesDuringAStorm(t *testing.T) {
	seed := rand.Uint64()
	t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
		url := startDev(t, 60*time.Millisecond, 6*time.Millisecond)
		ask(t, url, `"method":"eth_sendTransaction","params":[{"from":"`+devAccount+`","gas":"0x30d40","data":"`+twinsInit+`"}]`)
		var stored sync.Map
		stored.Store("0x"+strings.Repeat("0", 64), true)

		ctx, stop := context.WithCancel(t.Context())
		var readers sync.WaitGroup
		var seen sync.Map
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
		for i := range 64 {
			readers.Go(func() {
				times := 1
				if i < 4 {
					times = 1000 / 7
				}
				for ctx.Err() == nil {
					v, err := readBatch(ctx, client, url, times)
					if ctx.Err() != nil {
						return
					}
					if err == nil {
						err = v.check(&stored)
					}
					if err != nil {
						t.Error(err)
						return
					}
					seen.Store(v.pendingSlots[0], true)
				}
			})
		}
		storm(t, rand.New(rand.NewPCG(seed, 0)), url, &stored)
		stop()
		readers.Wait()
		client.CloseIdleConnections()
		values := 0
		seen.Range(func(any, any) bool { values++; return true })
		if values < 5 {
			t.Errorf("the readers saw %d values, want more", values)
		}
	})
}

// storm does 50 things to the chain.
func storm(t *testing.T, r *rand.Rand, url string, stored *sync.Map) {
	t.Helper()
	last := ""
	for i := range 50 {
		word := fmt.Sprintf("%064x", i+1)
		stored.Store("0x"+word, true)
		got := ask(t, url, `"method":"eth_sendTransaction","params":[{"from":"`+devAccount+`","gas":"0x30d40","to":"`+twins+`","data":"0x`+word+`"}]`)
		var sent struct{ Result string }
		if err := json.NewDecoder(bytes.NewReader([]byte(got))).Decode(&sent); err == nil && sent.Result != "" {
			last = sent.Result
		}
		switch r.IntN(8) {
		case 0:
			ask(t, url, fmt.Sprintf(`"method":"dev_reorg","params":[%d]`, 1+r.IntN(3)))
		case 1:
			ask(t, url, `"method":"dev_revoke","params":["`+last+`"]`)
		case 2:
			ask(t, url, fmt.Sprintf(`"method":"dev_dropFlashblocks","params":[%d]`, 1+r.IntN(3)))
		case 3:
			ask(t, url, fmt.Sprintf(`"method":"dev_reorderFlashblocks","params":[%d]`, 2+r.IntN(3)))
		case 4:
			ask(t, url, `"method":"dev_duplicateFlashblocks","params":[2]`)
		case 5:
			ask(t, url, `"method":"evm_mine","params":[]`)
		}
	}
}

// The node follows its own feed from the first flashblock on: with blocks an hour
// apart, there is no second chance.
func TestPendingFromTheFirstFlashblock(t *testing.T) {
	for round := range 10 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			url := startDev(t, time.Hour, 10*time.Millisecond)
			ask(t, url, `"method":"eth_sendTransaction","params":[{"from":"`+devAccount+`","gas":"0x30d40","data":"`+twinsInit+`"}]`)
			deadline := time.After(10 * time.Second)
			for strings.Contains(ask(t, url, `"method":"eth_getCode","params":["`+twins+`","pending"]`), `"0x"`) {
				select {
				case <-deadline:
					t.Fatal("nothing is pre-confirmed")
				case <-time.After(5 * time.Millisecond):
				}
			}
		})
	}
}
