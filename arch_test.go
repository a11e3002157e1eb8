// SPDX-License-Identifier: Apache-2.0

// Package glimpse holds no code, only the tests of the rules that the whole
// tree keeps: who may import whom, and how files are written.
package glimpse

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// allowed is the dependency rule: a package may import the ones listed for it
// and nothing else of ours. A package missing from the table fails the test,
// so adding one means deciding where it belongs; a name in the table that does
// not exist fails too, so that no line of it can rot.
var allowed = map[string]string{
	"":                    "",
	"chain":               "",
	"jsonrpc":             "",
	"apikey":              "",
	"archive":             "chain",
	"archive/archivetest": "archive chain",
	"evm":                 "chain internal/parallel",
	"evm/opstack":         "chain evm internal/parallel",
	"merkle":              "chain internal/parallel",
	"merkle/merkletest":   "merkle",
	"flashblock":          "chain",
	"flashblock/feed":     "chain flashblock",
	"pending":             "chain flashblock",
	"devchain":            "chain evm",
	"head":                "chain",
	"watch":               "chain",
	"ops":                 "chain",
	"ethapi":              "chain jsonrpc watch",
	"importer":            "chain evm",
	"follow":              "chain evm/opstack follow/upstream",
	"follow/origin":       "chain",
	"follow/upstream":     "chain",
	"replica":             "chain",
	"replica/cluster":     "",
	"replica/embedded":    "",
	"replica/replicatest": "chain replica replica/stream",
	"replica/snapshot":    "chain",
	"replica/stream":      "chain replica",
	"node":                "apikey archive chain devchain ethapi evm evm/opstack flashblock flashblock/feed follow follow/origin follow/upstream head importer jsonrpc merkle ops pending replica replica/embedded replica/snapshot replica/stream watch",
	"cmd/glimpse":         "node",
	"deploy/roundrobin":   "",
	"bench/floor":         "bench/workload",
	"bench/load":          "",
	"bench/peers":         "bench/floor bench/load bench/plot bench/table bench/workload internal/chaingen",
	"bench/plot":          "",
	"bench/table":         "",
	"bench/workload":      "internal/chaingen",
	"internal/chaingen":   "chain evm",
	"internal/memview":    "chain",
	"internal/parallel":   "",
	"internal/fixture":    "",
	"test":                "",
}

// confined third-party packages, by path prefix, and where they may be used.
var confined = map[string]string{
	"github.com/cockroachdb/pebble/v2":           "archive archive/archivetest",
	"github.com/ethereum/go-ethereum/core/vm":    "evm evm/opstack internal/chaingen",
	"github.com/ethereum/go-ethereum/core/state": "evm",
	"github.com/ethereum/go-ethereum/trie":       "devchain evm evm/opstack flashblock follow/upstream merkle internal/chaingen",
	"github.com/valyala/fasthttp":                "bench/floor jsonrpc",
	"github.com/coder/websocket":                 "flashblock/feed follow/upstream jsonrpc",
	"github.com/andybalholm/brotli":              "flashblock",
	"github.com/urfave/cli/v3":                   "cmd/glimpse",
	"github.com/BurntSushi/toml":                 "cmd/glimpse follow",
	"github.com/prometheus/client_golang":        "ops",
	"github.com/nats-io/nats.go":                 "replica/cluster replica/embedded replica/snapshot replica/stream",
	"github.com/nats-io/nats-server/v2":          "replica/cluster replica/embedded",
	"golang.org/x/time":                          "replica/snapshot",
}

type listed struct {
	ImportPath string
	Imports    []string
}

func list(t *testing.T) map[string]listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := make(map[string]listed)
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p listed
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		packages[ours(p.ImportPath)] = p
	}
	return packages
}

func ours(path string) string { return strings.TrimPrefix(strings.TrimPrefix(path, "glimpse"), "/") }

func TestDependencyRule(t *testing.T) {
	packages := list(t)
	for name := range allowed {
		if _, ok := packages[name]; !ok {
			t.Errorf("%q is in the dependency table but does not exist", name)
		}
	}
	for name, p := range packages {
		may, ok := allowed[name]
		if !ok {
			t.Errorf("%s is not in the dependency table", name)
			continue
		}
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, "glimpse/") && !slices.Contains(strings.Fields(may), ours(imp)) {
				t.Errorf("%s imports %s, which the rule does not allow", name, imp)
			}
		}
	}
}

func TestThirdPartyContainment(t *testing.T) {
	packages := list(t)
	for path, where := range confined {
		used := false
		for name, p := range packages {
			for _, imp := range p.Imports {
				if imp != path && !strings.HasPrefix(imp, path+"/") {
					continue
				}
				used = true
				if !slices.Contains(strings.Fields(where), name) {
					t.Errorf("%s imports %s, which belongs in: %s", name, imp, where)
				}
			}
		}
		if !used {
			t.Errorf("nothing imports %s: the rule for it cannot fail", path)
		}
	}
}

func goFiles(t *testing.T, visit func(path string, file *ast.File, lines int)) {
	t.Helper()
	files := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "node_modules" || d.Name() == "build") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(files, path, src, parser.ParseComments)
		if err != nil {
			return err
		}
		visit(path, file, strings.Count(string(src), "\n"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestEveryPackageHasOneComment(t *testing.T) {
	comments := make(map[string]int)
	goFiles(t, func(path string, file *ast.File, _ int) {
		dir := filepath.Dir(path)
		comments[dir] += 0
		if strings.HasSuffix(file.Name.Name, "_test") {
			return
		}
		if file.Doc != nil {
			comments[dir]++
		}
	})
	for dir, n := range comments {
		if n != 1 {
			t.Errorf("%s has %d package comments, want 1", dir, n)
		}
	}
}

func TestFilesAreShortAndLicensed(t *testing.T) {
	const most = 500
	goFiles(t, func(path string, file *ast.File, lines int) {
		if lines > most && !strings.HasSuffix(path, "_test.go") {
			t.Errorf("%s has %d lines, want at most %d", path, lines, most)
		}
		if len(file.Comments) == 0 || !strings.Contains(file.Comments[0].List[0].Text, "SPDX-License-Identifier: Apache-2.0") {
			t.Errorf("%s does not begin with its SPDX line", path)
		}
	})
}

// Tests that sleep are slow when they pass and flaky when they fail, and init
// functions run whether or not anybody asked.
func TestNoSleepsAndNoInit(t *testing.T) {
	goFiles(t, func(path string, file *ast.File, _ int) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil && n.Name.Name == "init" {
					t.Errorf("%s has an init function", path)
				}
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && n.Sel.Name == "Sleep" {
					t.Errorf("%s calls time.Sleep", path)
				}
			}
			return true
		})
	})
}
