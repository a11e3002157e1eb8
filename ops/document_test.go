// SPDX-License-Identifier: Apache-2.0

package ops_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"glimpse/chain"
	"glimpse/internal/fixture"
	"glimpse/ops"
)

// touched returns Metrics in which every family has a value.
func touched() *ops.Metrics {
	heads := ops.Heads{Safe: new(chain.Ref), Finalized: new(chain.Ref), Pending: new(ops.Preconfirmed), Sealed: time.Now()}
	m := ops.NewMetrics(ops.MetricsOptions{
		Health: ops.NewHealth(ops.HealthOptions{
			BlockLimit: time.Minute, FeedLimit: time.Minute,
			Heads: func() (ops.Heads, bool) { return heads, true },
		}),
		Load:  func() ops.Load { return ops.Load{} },
		Store: func() (ops.StoreSizes, error) { return ops.StoreSizes{}, nil },
		Replication: func() ops.Replication {
			return ops.Replication{Publishing: &ops.Publishing{Snapshots: &ops.Snapshots{Last: time.Now()}}, Tailing: &ops.Tailing{ReplicaFacts: ops.ReplicaFacts{Fetching: 1, Heard: time.Now()}}}
		},
	})
	m.Method("m").Observe(ops.TagNone, 0, 0)
	m.StoreReadFailed(errors.New("touched"))
	return m
}

// families returns what is registered: name to labels and type, as in
// "method,tag histogram".
func families(t *testing.T) map[string]string {
	t.Helper()
	gathered, err := touched().Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, f := range gathered {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		slices.Sort(labels)
		all[f.GetName()] = strings.Join(labels, ",") + " " + strings.ToLower(f.GetType().String())
	}
	return all
}

// A row of the document is | `name{label,label}` | type | meaning |.
var row = regexp.MustCompile("(?m)^\\| `([a-z_*]+)(?:\\{([a-z,]+)\\})?` \\| ([a-z]+) \\| ([^|]+) \\|$")

// documented returns the rows of the section "## Metrics" of a document, in the
// form of families.
func documented(text string) (map[string]string, error) {
	_, section, found := strings.Cut(text, "\n## Metrics\n")
	if !found {
		return nil, errors.New(`there is no section "## Metrics"`)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	all := make(map[string]string)
	for _, m := range row.FindAllStringSubmatch(section, -1) {
		if _, twice := all[m[1]]; twice {
			return nil, fmt.Errorf("%s is documented twice", m[1])
		}
		labels := strings.Split(m[2], ",")
		slices.Sort(labels)
		all[m[1]] = strings.Join(labels, ",") + " " + m[3]
	}
	return all, nil
}

// differences returns what a document says that is not so, and what it does not
// say. Families of a library are documented by their prefix, as `go_*`.
func differences(document, registry map[string]string) (all []string) {
	used := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(registry)) {
		if prefix, _, _ := strings.Cut(name, "_"); document[prefix+"_*"] != "" {
			used[prefix+"_*"] = true
			continue
		}
		used[name] = true
		switch document[name] {
		case registry[name]:
		case "":
			all = append(all, fmt.Sprintf("%s (%s) is not documented", name, registry[name]))
		default:
			all = append(all, fmt.Sprintf("%s is documented as (%s) and is (%s)", name, document[name], registry[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(document)) {
		if !used[name] {
			all = append(all, name+" is documented and does not exist")
		}
	}
	return all
}

func TestEveryMetricIsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(fixture.Repository(t), "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	document, err := documented(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range differences(document, families(t)) {
		t.Error(d)
	}
}

// The comparison itself must be able to fail.
func TestDifferencesOfADocument(t *testing.T) {
	const text = "# A\n\n## Metrics\n\n| metric | type | meaning |\n|---|---|---|\n" +
		"| `glimpse_a` | gauge | all |\n| `glimpse_b{y,x}` | counter | the same |\n| `go_*` | mixed | the runtime |\n" +
		"| `glimpse_gone` | gauge | gone |\n| `glimpse_type` | gauge | wrong |\n| `glimpse_label{a}` | gauge | wrong |\n" +
		"| `none_*` | mixed | nothing |\n\n## Next\n\n| `glimpse_elsewhere` | gauge | not in the section |\n"
	document, err := documented(text)
	if err != nil {
		t.Fatal(err)
	}
	got := differences(document, map[string]string{
		"glimpse_a": " gauge", "glimpse_b": "x,y counter", "go_threads": " gauge",
		"glimpse_type": " counter", "glimpse_label": "b gauge", "glimpse_new": " gauge", "glimpse_elsewhere": " gauge",
	})
	want := []string{
		"glimpse_elsewhere ( gauge) is not documented",
		"glimpse_label is documented as (a gauge) and is (b gauge)",
		"glimpse_new ( gauge) is not documented",
		"glimpse_type is documented as ( gauge) and is ( counter)",
		"glimpse_gone is documented and does not exist",
		"none_* is documented and does not exist",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if all, err := documented("# No section\n"); err == nil {
		t.Errorf("a document without the section: got %v, want an error", all)
	}
	if all, err := documented("\n## Metrics\n| `glimpse_a` | gauge | x |\n| `glimpse_a` | gauge | x |\n"); err == nil {
		t.Errorf("a metric twice: got %v, want an error", all)
	}
}
