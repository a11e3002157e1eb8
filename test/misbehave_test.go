// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"glimpse/chain"
	"glimpse/flashblock"
)

// The feed that anybody can follow carries what pending shows, in the real wire
// format, as text and as Brotli.
func TestFeed(t *testing.T) {
	for _, compression := range []string{"none", "brotli"} {
		t.Run(compression, func(t *testing.T) {
			s := startDev(t, "--dev.block-time", "500ms", "--dev.flashblock-time", "50ms", "--dev.feed-compression", compression)
			conn, _, err := websocket.Dial(t.Context(), "ws://"+s.feed(t)+"/ws", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.CloseNow()
			conn.SetReadLimit(1 << 20)
			w := newWallet(t, 0)
			hash := send(t, s.url(), w.sign(t, nil, cellInit))
			for {
				kind, data, err := conn.Read(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if want := compression == "none"; (kind == websocket.MessageText) != want || (data[0] == '{') != want {
					t.Fatalf("frame of kind %v begins with %q", kind, data[0])
				}
				m, err := flashblock.Decode(data)
				if err != nil {
					t.Fatal(err)
				}
				if m.Receipts[hash] != nil {
					if len(m.Delta.Transactions) != 1 || !m.Receipts[hash].Succeeded {
						t.Errorf("the flashblock with the transaction is %+v", m)
					}
					return
				}
			}
		})
	}
}

var feedLine = regexp.MustCompile(`flashblocks\s+ws://(\S+)/ws`)

// feed returns where the feed is, from the banner.
func (s *server) feed(t *testing.T) string {
	t.Helper()
	var addr string
	eventually(t, "the banner", func() bool {
		m := feedLine.FindStringSubmatch(s.out.String())
		if m != nil {
			addr = m[1]
		}
		return m != nil
	})
	return addr
}

// Each kind of misbehaviour, as somebody who tests their own software sees it.
func TestMisbehaviour(t *testing.T) {
	s := startDev(t, "--dev.block-time", "400ms", "--dev.flashblock-time", "40ms")
	url := s.url()
	w := newWallet(t, 0)
	cell := deployCell(t, url, w)
	eventually(t, "the cell", func() bool { return slotAt(t, url, cell, "latest") == 42 })
	store := func(n uint64) chain.Hash { return send(t, url, w.sign(t, &cell, word(n))) }
	onPending := func(n uint64) func() bool { return func() bool { return slotAt(t, url, cell, "pending") == n } }
	onLatest := func(n uint64) func() bool { return func() bool { return slotAt(t, url, cell, "latest") == n } }

	t.Run("a dropped flashblock shows when its block seals", func(t *testing.T) {
		call(t, url, "dev_dropFlashblocks", 30)
		store(1)
		eventually(t, "the block", func() bool {
			pending, latest := slotsAt(t, url, cell)
			if pending == 1 && latest != 1 {
				t.Error("it shows on pending although its flashblock was dropped")
			}
			return latest == 1
		})
	})
	for _, how := range []string{"dev_delayFlashblocks", "dev_duplicateFlashblocks", "dev_reorderFlashblocks"} {
		t.Run("after "+how+" the state is right", func(t *testing.T) {
			before := slotAt(t, url, cell, "latest")
			call(t, url, how, 3)
			store(before + 10)
			eventually(t, "the block", onLatest(before+10))
			eventually(t, "pending to follow", onPending(before+10))
		})
	}
	t.Run("a silent feed leaves pending at latest", func(t *testing.T) {
		call(t, url, "dev_stallFeed")
		store(100)
		eventually(t, "the block", onLatest(100))
		if pending, latest := slotsAt(t, url, cell); pending != latest {
			t.Errorf("pending is %d while latest is %d and the feed is silent", pending, latest)
		}
		call(t, url, "dev_resumeFeed")
		store(101)
		eventually(t, "pending to live again", onPending(101))
		eventually(t, "the block", onLatest(101))
	})
	t.Run("a revoked transaction is on pending and never on latest", func(t *testing.T) {
		call(t, url, "dev_pauseSealing")
		hash := store(200)
		eventually(t, "pending", onPending(200))
		call(t, url, "dev_revoke", hash)
		call(t, url, "evm_mine")
		if got := slotAt(t, url, cell, "latest"); got != 101 {
			t.Errorf("latest is %d, want 101 as before", got)
		}
		eventually(t, "pending to forget", onPending(101))
		if got := string(call(t, url, "eth_getTransactionReceipt", hash)); got != "null" {
			t.Errorf("the revoked transaction has the receipt %s", got)
		}
		w.nonce--
	})
	t.Run("a reorg replaces blocks and brings transactions back", func(t *testing.T) {
		hash := store(300)
		eventually(t, "pending", onPending(300))
		call(t, url, "evm_mine")
		n := height(t, url)
		before := hashOf(t, url, n)
		call(t, url, "dev_reorg", 2)
		if after := hashOf(t, url, n); after == before {
			t.Errorf("block %d is still %s", n, before)
		}
		answer := errorCode(t, url, "eth_getCode", cell, before)
		if answer.Code != -32000 || answer.Data.Reason != "not-canonical" {
			t.Errorf("the replaced block answers %+v, want that it is not canonical", answer)
		}
		call(t, url, "dev_resumeSealing")
		eventually(t, "the transaction to be sealed again", onLatest(300))
		if got := string(call(t, url, "eth_getTransactionReceipt", hash)); !strings.Contains(got, `"status":"0x1"`) {
			t.Errorf("its receipt is %s", got)
		}
	})
}

type missAnswer struct {
	Code int
	Data struct{ Reason string }
}

// errorCode makes a call that must fail.
func errorCode(t *testing.T, url, method string, params ...any) missAnswer {
	t.Helper()
	body, err := json.Marshal(rpcCall{"2.0", 1, method, params})
	if err != nil {
		t.Fatal(err)
	}
	data, err := post(t.Context(), url, body)
	if err != nil {
		t.Fatal(err)
	}
	var msg struct{ Error *missAnswer }
	mustDecode(t, data, &msg)
	if msg.Error == nil {
		t.Fatalf("%s%v answers %s, want an error", method, params, data)
	}
	return *msg.Error
}
