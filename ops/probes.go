// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"glimpse/chain"
)

// parseQuery reads the parameters of /readyz. Whatever it does not know is an
// error: a misspelt max_age must not make a stale node look ready.
func parseQuery(raw string) (Query, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return Query{}, fmt.Errorf("query: %w", err)
	}
	var q Query
	for name, all := range values {
		if len(all) != 1 {
			return Query{}, fmt.Errorf("%q is given %d times", name, len(all))
		}
		switch name {
		case "tag":
			q.Pending, err = parseTag(all[0])
		case "max_age":
			q.MaxAge, err = parseAge(all[0])
		default:
			err = fmt.Errorf("parameter %q is not known; want tag, max_age", name)
		}
		if err != nil {
			return Query{}, err
		}
	}
	return q, nil
}

func parseTag(s string) (pending bool, _ error) {
	switch s {
	case "pending":
		return true, nil
	case "latest":
		return false, nil
	}
	return false, fmt.Errorf("tag %q is not known; want latest, pending", s)
}

func parseAge(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("max_age %q is not a time such as 500ms or 30s", s)
	}
	return d, nil
}

// What the probes say.
type (
	liveJSON struct {
		Status string `json:"status"`
	}
	errorJSON struct {
		Status string `json:"status"`
		Error  string `json:"error"`
	}
	readyJSON struct {
		Status  string        `json:"status"`
		Reasons []findingJSON `json:"reasons"` // [] where there are none
		Latest  *latestJSON   `json:"latest"`  // null while starting
		Pending *pendingJSON  `json:"pending"` // null while nothing is pre-confirmed
	}
	findingJSON struct {
		Reason  Reason `json:"reason"`
		Detail  string `json:"detail"`
		AgeMs   *int64 `json:"ageMs,omitempty"`
		LimitMs *int64 `json:"limitMs,omitempty"`
	}
	latestJSON struct {
		Number    chain.Number `json:"number"`
		Hash      chain.Hash   `json:"hash"`
		Timestamp int64        `json:"timestamp"`
		AgeMs     int64        `json:"ageMs"`
	}
	pendingJSON struct {
		Number chain.Number `json:"number"`
		Index  uint64       `json:"index"`
		AgeMs  int64        `json:"ageMs"`
	}
)

func render(f Facts, v Verdict, now time.Time) readyJSON {
	r := readyJSON{Status: "ready", Reasons: make([]findingJSON, len(v))}
	if !v.Ready() {
		r.Status = "unready"
	}
	for i, finding := range v {
		r.Reasons[i] = findingJSON{Reason: finding.Reason, Detail: finding.Detail}
		if finding.Limit > 0 {
			age, limit := finding.Age.Milliseconds(), finding.Limit.Milliseconds()
			r.Reasons[i].AgeMs, r.Reasons[i].LimitMs = &age, &limit
		}
	}
	if h := f.Heads; h != nil {
		r.Latest = &latestJSON{h.Latest.Number, h.Latest.Hash, h.Sealed.Unix(), latestAge(f, now).Milliseconds()}
		if p := h.Pending; p != nil {
			r.Pending = &pendingJSON{p.Number, p.Index, pendingAge(f, now).Milliseconds()}
		}
	}
	return r
}

// live answers as long as the process can answer anything.
func live(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, liveJSON{"ok"})
}

func (h *Health) serveReady(w http.ResponseWriter, r *http.Request) {
	q, err := parseQuery(r.URL.RawQuery)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	f, now := h.Facts(), time.Now()
	v := Judge(f, q, now)
	status := http.StatusOK
	if !v.Ready() {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, render(f, v, now))
}

func refuse(w http.ResponseWriter, status int, text string) {
	writeJSON(w, status, errorJSON{"error", text})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // none of our types can fail
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // whoever asked is gone
}
