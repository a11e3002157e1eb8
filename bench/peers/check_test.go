// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"glimpse/bench/workload"
	"glimpse/internal/chaingen"
)

// answering returns a peer that answers every request with a result.
func answering(t *testing.T, name, body string) *peer {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }))
	t.Cleanup(s.Close)
	return &peer{name: name, addr: strings.TrimPrefix(s.URL, "http://")}
}

func TestPeersMustAnswerAlike(t *testing.T) {
	dir := t.TempDir()
	if _, err := workload.Generate(t.Context(), dir, 1, chaingen.StorageOptions{Contracts: 10, Slots: 100, Blocks: 5, Large: 1}); err != nil {
		t.Fatal(err)
	}
	chain, err := workload.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	const one, two = `{"id":1,"result":{"a":1,"b":2}}`, `{"id":1,"result":{"a":1,"b":3}}`
	for name, c := range map[string]struct {
		ours, theirs string
		kind         kind
		oldest       uint64 // of theirs
		peer         string
		want         string // of the error; empty for none
	}{
		"the same": {ours: one, theirs: one},
		"the same in another order and with room": {ours: one, theirs: `{"result": {"b":2, "a":1}, "id": 1}`},
		"a batch in another order":                {ours: `[{"id":1,"result":1},{"id":2,"result":2}]`, theirs: `[{"id":2,"result":2},{"id":1,"result":1}]`},
		"another value":                           {ours: one, theirs: two, want: "differently"},
		"another id":                              {ours: one, theirs: strings.Replace(one, `"id":1`, `"id":2`, 1), want: "differently"},
		"an error":                                {ours: one, theirs: `{"id":1,"error":{"code":1}}`, want: "answers"},
		"no result":                               {ours: one, theirs: `{"id":1}`, want: "answers"},
		"no JSON":                                 {ours: one, theirs: `<html>`, want: "invalid character"},
		"what they do not know":                   {ours: one, theirs: two, kind: valuesPresent, peer: anvilName},
		"history from before their first block":   {ours: one, theirs: two, kind: historical, oldest: 4, want: "differently"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.peer == "" {
				c.peer = gethName
			}
			if c.kind == "" {
				c.kind = latest
			}
			theirs := answering(t, c.peer, c.theirs)
			theirs.oldest = c.oldest
			n, err := check(t.Context(), newPools(chain, 1), []*peer{answering(t, glimpseName, c.ours), theirs}, []kind{c.kind})
			if c.want == "" {
				if err != nil || n == 0 {
					t.Errorf("got %v after %d requests", err, n)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			// A peer has no say about what it does not have.
			if c.oldest > 0 && n < 50 {
				t.Errorf("got %d requests of the longer history, want 50 before the difference", n)
			}
			if c.want == "differently" && !errors.Is(err, errDifferent) {
				t.Errorf("got %v, want %v", err, errDifferent)
			}
		})
	}
}
