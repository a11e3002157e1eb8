// SPDX-License-Identifier: Apache-2.0

package ops_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"glimpse/ops"
)

func (w *world) ask(method, target string, pprof bool) *httptest.ResponseRecorder {
	r := httptest.NewRecorder()
	h := ops.NewHandler(ops.Options{Metrics: w.metrics, Health: w.health, Version: "1.2.3", Pprof: pprof})
	h.ServeHTTP(r, httptest.NewRequest(method, target, nil))
	return r
}

func TestStatusOfEveryPath(t *testing.T) {
	tests := []struct {
		name, method, target string
		pprof                bool
		want                 int
		kind                 string
	}{
		{"liveness", "GET", "/livez", false, 200, "application/json"},
		{"liveness without a body", "HEAD", "/livez", false, 200, "application/json"},
		{"readiness", "GET", "/readyz", false, 200, "application/json"},
		{"readiness for latest", "GET", "/readyz?tag=latest&max_age=30s", false, 200, "application/json"},
		{"an age alone is about latest", "GET", "/readyz?max_age=1ms", false, 503, "application/json"},
		{"readiness for pending where there is none", "GET", "/readyz?tag=pending", false, 503, "application/json"},
		{"another tag", "GET", "/readyz?tag=safe", false, 400, "application/json"},
		{"an empty tag", "GET", "/readyz?tag=", false, 400, "application/json"},
		{"a tag twice", "GET", "/readyz?tag=latest&tag=latest", false, 400, "application/json"},
		{"a misspelt parameter", "GET", "/readyz?maxage=1s", false, 400, "application/json"},
		{"an age without a unit", "GET", "/readyz?max_age=30", false, 400, "application/json"},
		{"a negative age", "GET", "/readyz?max_age=-1s", false, 400, "application/json"},
		{"an age of nothing", "GET", "/readyz?max_age=0s", false, 400, "application/json"},
		{"a query that is not one", "GET", "/readyz?tag=%zz", false, 400, "application/json"},
		{"metrics", "GET", "/metrics", false, 200, "text/plain"},
		{"status", "GET", "/", false, 200, "text/html"},
		{"another path", "GET", "/readyz/", false, 404, "application/json"},
		{"POST", "POST", "/readyz", false, 405, "application/json"},
		{"DELETE", "DELETE", "/", false, 405, "application/json"},
		{"profiles that were not asked for", "GET", "/debug/pprof/", false, 404, "application/json"},
		{"a profile that was not asked for", "GET", "/debug/pprof/heap", false, 404, "application/json"},
		{"profiles", "GET", "/debug/pprof/", true, 200, "text/html"},
		{"a profile", "GET", "/debug/pprof/goroutine?debug=1", true, 200, "text/plain"},
		{"the command line", "GET", "/debug/pprof/cmdline", true, 200, "text/plain"},
		{"another path under debug", "GET", "/debug/vars", true, 404, "application/json"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(ops.HealthOptions{})
			r := w.ask(tt.method, tt.target, tt.pprof)
			if r.Code != tt.want {
				t.Errorf("status: got %d, want %d: %s", r.Code, tt.want, r.Body)
			}
			if got := r.Header().Get("Content-Type"); !strings.HasPrefix(got, tt.kind) {
				t.Errorf("content type: got %q, want %q", got, tt.kind)
			}
			if got := r.Header().Get("Cache-Control"); got != "no-store" {
				t.Errorf("cache control: got %q, want no-store", got)
			}
			if allow := r.Header().Get("Allow"); (allow == "GET, HEAD") != (tt.want == http.StatusMethodNotAllowed) {
				t.Errorf("allow: got %q with status %d", allow, r.Code)
			}
			if tt.kind == "application/json" && !json.Valid(r.Body.Bytes()) {
				t.Errorf("body is not JSON: %s", r.Body)
			}
		})
	}
}

func TestReadyzSaysWhatIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(ops.HealthOptions{BlockLimit: time.Second})
		w.heads.Pending = &ops.Preconfirmed{Number: 101, Index: 4}
		w.metrics.Flashblock(outcome("applied"))
		w.metrics.Block()
		pass(1500 * time.Millisecond)
		w.health.Drain()
		const want = `{"status":"unready","reasons":[` +
			`{"reason":"draining","detail":"the node is about to stop"},` +
			`{"reason":"no-blocks","detail":"1.5s since the last sealed block, which is more than 1s","ageMs":1500,"limitMs":1000}],` +
			`"latest":{"number":100,"hash":"0xab00000000000000000000000000000000000000000000000000000000000000","timestamp":946684797,"ageMs":1500},` +
			`"pending":{"number":101,"index":4,"ageMs":1500}}` + "\n"
		if got := w.ask("GET", "/readyz", false).Body.String(); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	})
}

func TestReadyzWithoutAnythingToSay(t *testing.T) {
	w := newWorld(ops.HealthOptions{})
	var got, want map[string]any
	decode(t, w.ask("GET", "/readyz", false).Body.Bytes(), &got)
	delete(got, "latest")
	decode(t, []byte(`{"status":"ready","reasons":[],"pending":null}`), &want)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func decode(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
}

func TestStatusPageShowsWhatIsKnownAndEscapesIt(t *testing.T) {
	w := newWorld(ops.HealthOptions{})
	w.metrics.StoreReadFailed(errors.New("<script>"))
	w.heads.Pending = &ops.Preconfirmed{Number: 4711, Index: 12}
	body := w.ask("GET", "/", false).Body.String()
	for _, want := range []string{"glimpse is unready", "store-error", "&lt;script&gt;", "1.2.3", "4711, flashblock 12", `href="/metrics"`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
	for _, unwanted := range []string{"<script>", "http://", "https://", "pprof"} {
		if strings.Contains(body, unwanted) {
			t.Errorf("%q in\n%s", unwanted, body)
		}
	}
}
