// SPDX-License-Identifier: Apache-2.0

package ops_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"glimpse/internal/fixture"
)

func deployed(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{fixture.Repository(t), "deploy"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A metric in an expression, with its matchers.
var (
	used    = regexp.MustCompile(`\b((?:glimpse|go|process)_[a-z0-9_]+)(?:\{([^}]*)\})?`)
	matcher = regexp.MustCompile(`([a-z_]+)(=~|!~|!=|=)"([^"]*)"`)
)

// seen is what the registry shows: for each name that an expression may use,
// its labels, and for each label its values.
type seen map[string]map[string][]string

func registered(t *testing.T) seen {
	t.Helper()
	gathered, err := touched().Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(seen)
	for _, f := range gathered {
		labels := make(map[string][]string)
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = append(labels[l.GetName()], l.GetValue())
			}
		}
		switch f.GetType().String() {
		case "HISTOGRAM":
			all[f.GetName()+"_sum"], all[f.GetName()+"_count"] = labels, labels
			all[f.GetName()+"_bucket"] = maps.Clone(labels)
			all[f.GetName()+"_bucket"]["le"] = nil
		case "SUMMARY":
			all[f.GetName()+"_sum"], all[f.GetName()+"_count"], all[f.GetName()] = labels, labels, labels
		default:
			all[f.GetName()] = labels
		}
	}
	return all
}

// open are labels whose values the registry does not show before they occur.
var open = []string{"method", "code", "le"}

// mistakes returns what an expression asks for that there can never be.
func (s seen) mistakes(expr string) (all []string) {
	for _, m := range used.FindAllStringSubmatch(expr, -1) {
		name := m[1]
		labels, ok := s[name]
		if !ok {
			all = append(all, name+" does not exist")
			continue
		}
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			label, values := l[1], strings.Split(l[3], "|")
			if label == "job" || label == "instance" {
				continue
			}
			has, ok := labels[label]
			if !ok {
				all = append(all, fmt.Sprintf("%s has no label %s", name, label))
				continue
			}
			for _, v := range values {
				if !slices.Contains(open, label) && !slices.Contains(has, v) {
					all = append(all, fmt.Sprintf("%s never has %s=%q", name, label, v))
				}
			}
		}
	}
	return all
}

func TestMistakesInAnExpressionAreFound(t *testing.T) {
	tests := []struct{ name, expr, want string }{
		{"a good one", `rate(glimpse_flashblocks_total{outcome=~"applied|kept",job="a"}[5m])`, ""},
		{"a quantile", `histogram_quantile(0.9, sum by (le) (rate(glimpse_rpc_request_seconds_bucket{method="x"}[5m])))`, ""},
		{"no such metric", `glimpse_flashblock_total > 0`, "glimpse_flashblock_total does not exist"},
		{"a histogram that is used as a gauge", `glimpse_rpc_request_seconds`, "glimpse_rpc_request_seconds does not exist"},
		{"no such label", `glimpse_head_block{kind="latest"}`, "glimpse_head_block has no label kind"},
		{"no such value", `glimpse_flashblocks_total{outcome=~"applied|mismatch"}`, `glimpse_flashblocks_total never has outcome="mismatch"`},
	}
	s := registered(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(s.mistakes(tt.expr), "; "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

type dashboard struct {
	Title      string
	UID        string
	Panels     []panel
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
}

type panel struct {
	ID         int
	Type       string
	Title      string
	Datasource struct{ UID string }
	GridPos    struct{ X, Y, W, H int }
	Targets    []struct{ RefID, Expr string }
}

func (p panel) overlaps(q panel) bool {
	a, b := p.GridPos, q.GridPos
	return a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H
}

func TestDashboardAsksForWhatThereIs(t *testing.T) {
	var d dashboard
	if err := json.Unmarshal([]byte(deployed(t, "grafana", "glimpse.json")), &d); err != nil {
		t.Fatal(err)
	}
	if d.Title == "" || d.UID == "" || len(d.Panels) < 20 {
		t.Errorf("got title %q, uid %q and %d panels", d.Title, d.UID, len(d.Panels))
	}
	s, ids := registered(t), make(map[int]bool)
	for i, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("panel %q: id %d is there twice, or zero", p.Title, p.ID)
		}
		ids[p.ID] = true
		for _, q := range d.Panels[:i] {
			if p.overlaps(q) {
				t.Errorf("panel %q lies on %q", p.Title, q.Title)
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("panel %q: data source %q and %d queries, want that of the variable and some", p.Title, p.Datasource.UID, len(p.Targets))
		}
		for _, q := range p.Targets {
			if !used.MatchString(q.Expr) {
				t.Errorf("panel %q: %s asks for nothing", p.Title, q.Expr)
			}
			for _, m := range s.mistakes(variableFree(q.Expr)) {
				t.Errorf("panel %q: %s", p.Title, m)
			}
		}
	}
	variables := make(map[string]string)
	for _, v := range d.Templating.List {
		variables[v.Name] = v.Type
		for _, m := range s.mistakes(v.Definition) {
			t.Errorf("variable %s: %s", v.Name, m)
		}
	}
	if variables["datasource"] != "datasource" {
		t.Errorf("variables: got %v, want one for the data source", variables)
	}
}

// variableFree drops matchers whose value is a variable: they are about methods
// and instances.
func variableFree(expr string) string {
	return regexp.MustCompile(`,?[a-z]+=~?"\$[a-z]+"`).ReplaceAllString(expr, "")
}

var (
	alertLine = regexp.MustCompile(`(?m)^      - alert: (\w+)\n        expr: (.+)\n`)
	anyAlert  = regexp.MustCompile(`(?m)^\s*- alert:`)
	anyExpr   = regexp.MustCompile(`(?m)^\s*expr:`)
)

func TestAlertsAskForWhatThereIs(t *testing.T) {
	text := deployed(t, "prometheus", "alerts.yml")
	alerts := alertLine.FindAllStringSubmatch(text, -1)
	if n, m := len(anyAlert.FindAllString(text, -1)), len(anyExpr.FindAllString(text, -1)); n != len(alerts) || m != len(alerts) || n < 10 {
		t.Fatalf("%d alerts and %d expressions, of which %d are in the form that is read here", n, m, len(alerts))
	}
	if strings.Contains(text, "\t") {
		t.Error("there is a tab, which YAML does not allow")
	}
	s, names := registered(t), make(map[string]bool)
	for _, a := range alerts {
		name, expr := a[1], a[2]
		if names[name] {
			t.Errorf("%s is there twice", name)
		}
		names[name] = true
		if name != "GlimpseDown" && !used.MatchString(expr) {
			t.Errorf("%s: %s asks for nothing", name, expr)
		}
		for _, m := range s.mistakes(expr) {
			t.Errorf("%s: %s", name, m)
		}
		if open, closed := strings.Count(expr, "("), strings.Count(expr, ")"); open != closed {
			t.Errorf("%s: %d opening and %d closing brackets", name, open, closed)
		}
	}
}

// Every metric is worth a look, or it would not be there.
func TestDashboardAndAlertsUseEveryMetric(t *testing.T) {
	text := deployed(t, "grafana", "glimpse.json") + deployed(t, "prometheus", "alerts.yml")
	for name := range families(t) {
		if strings.HasPrefix(name, "glimpse_") && !strings.Contains(text, name) {
			t.Errorf("%s is on no panel and in no alert", name)
		}
	}
}

func TestSystemdUnit(t *testing.T) {
	unit := deployed(t, "systemd", "glimpse.service")
	for _, want := range []string{
		"\nExecStart=/usr/local/bin/glimpse serve --config /etc/glimpse/glimpse.toml\n", "\nExecReload=/bin/kill -HUP $MAINPID\n",
		"\nDynamicUser=yes\n", "\nStateDirectory=glimpse\n", "\nProtectSystem=strict\n", "\nNoNewPrivileges=yes\n",
		"\nMemoryDenyWriteExecute=yes\n", "\nRestrictAddressFamilies=AF_INET AF_INET6\n", "\nRestart=on-failure\n",
	} {
		if !strings.Contains(unit, want) {
			t.Errorf("the unit lacks %s", strings.TrimSpace(want))
		}
	}
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze to check the rest with")
	}
	// What is checked is the unit, not whether glimpse is installed here.
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "glimpse.service")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(unit, "/usr/local/bin/glimpse", program)), 0o600); err != nil {
		t.Fatal(err)
	}
	// A key that is not known is only a warning, and the tool succeeds.
	if out, err := exec.CommandContext(t.Context(), tool, "verify", "--man=no", file).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

func TestDockerfile(t *testing.T) {
	text := deployed(t, "docker", "Dockerfile")
	for _, want := range []string{"\nFROM scratch\n", "CGO_ENABLED=0 go build", "\nUSER 65532:65532\n", "\nEXPOSE 8545 8546 6060\n", `ENTRYPOINT ["/glimpse"]`} {
		if !strings.Contains(text, want) {
			t.Errorf("the Dockerfile lacks %s", strings.TrimSpace(want))
		}
	}
	// The toolchain of the image must be able to build what go.mod asks for.
	mod, err := os.ReadFile(filepath.Join(fixture.Repository(t), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	asked := regexp.MustCompile(`(?m)^go \d+\.\d+`).FindString(string(mod))
	if image := "FROM golang:" + strings.TrimPrefix(asked, "go ") + " "; asked == "" || !strings.Contains(text, image) {
		t.Errorf("the image is not of the %s that go.mod asks for", asked)
	}
}
