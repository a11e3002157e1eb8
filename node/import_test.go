// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/archive"
	"glimpse/archive/archivetest"
	"glimpse/chain"
	"glimpse/evm"
	"glimpse/importer"
	"glimpse/internal/chaingen"
	"glimpse/node"
)

// A chainOnDisk is a generated chain with files to import it from.
type chainOnDisk struct {
	genesis, file string
	blocks        []*types.Block
}

func generate(t *testing.T, seed uint64, length int) chainOnDisk {
	t.Helper()
	genesis, blocks := chaingen.Generate(seed, length, chaingen.Options{})
	c := chainOnDisk{blocks: blocks}
	c.genesis, c.file = writeFiles(t, genesis, blocks)
	return c
}

// into returns the configuration that imports all of c into a store.
func (c chainOnDisk) into(store node.Store) node.ImportConfig {
	return node.ImportConfig{
		Store: store, Genesis: c.genesis, Files: []string{c.file}, Verify: "root", Log: slog.New(slog.DiscardHandler),
	}
}

func newStore() node.Store {
	return node.Store{Datadir: "db", CacheMB: 16, Files: archivetest.NewDisk().FS}
}

func mustImport(t *testing.T, c node.ImportConfig) {
	t.Helper()
	if err := node.Import(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// mustVerify returns what is in a store that must be sound.
func mustVerify(t *testing.T, store node.Store) node.Report {
	t.Helper()
	r, err := node.Verify(t.Context(), node.VerifyConfig{Store: store, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// However a store comes to a block, forwards, in pieces, or back from above, its
// content is the same, state tries included.
func TestWaysToTheSameStore(t *testing.T) {
	const length, middle = 120, 70
	c := generate(t, 3, length)
	whole, upToMiddle := newStore(), newStore()
	mustImport(t, c.into(whole))
	short := c.into(upToMiddle)
	short.Head = fmt.Sprint(middle)
	mustImport(t, short)
	wantWhole, wantMiddle := mustVerify(t, whole), mustVerify(t, upToMiddle)
	if wantWhole.Root != c.blocks[length-1].Root() || wantMiddle.Root != c.blocks[middle-1].Root() {
		t.Fatalf("roots %s and %s are not those of the headers", wantWhole.Root, wantMiddle.Root)
	}

	tests := []struct {
		name  string
		want  node.Report
		steps func(*node.ImportConfig) []node.ImportConfig
	}{
		{"imported twice", wantWhole, func(all *node.ImportConfig) []node.ImportConfig {
			return []node.ImportConfig{*all, *all}
		}},
		{"in two pieces", wantWhole, func(all *node.ImportConfig) []node.ImportConfig {
			first := *all
			first.Head = fmt.Sprint(middle)
			return []node.ImportConfig{first, *all}
		}},
		{"back from above, by number", wantMiddle, func(all *node.ImportConfig) []node.ImportConfig {
			back := *all
			back.Head = fmt.Sprintf("%#x", middle)
			return []node.ImportConfig{*all, back}
		}},
		{"back from above, by hash", wantMiddle, func(all *node.ImportConfig) []node.ImportConfig {
			back := *all
			back.Head = c.blocks[middle-1].Hash().Hex()
			return []node.ImportConfig{*all, back}
		}},
		{"forwards to a hash", wantMiddle, func(all *node.ImportConfig) []node.ImportConfig {
			to := *all
			to.Head = c.blocks[middle-1].Hash().Hex()
			return []node.ImportConfig{to}
		}},
		{"back and forth", wantWhole, func(all *node.ImportConfig) []node.ImportConfig {
			back := *all
			back.Head = "1"
			return []node.ImportConfig{*all, back, *all}
		}},
		{"first without roots", wantWhole, func(all *node.ImportConfig) []node.ImportConfig {
			first := *all
			first.Verify, first.Head = "receipts", fmt.Sprint(middle)
			return []node.ImportConfig{first, *all}
		}},
		{"without the genesis file once it is there", wantWhole, func(all *node.ImportConfig) []node.ImportConfig {
			first, rest := *all, *all
			first.Head, rest.Genesis = "5", ""
			return []node.ImportConfig{first, rest}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			all := c.into(newStore())
			for _, step := range tt.steps(&all) {
				mustImport(t, step)
			}
			got := mustVerify(t, all.Store)
			if got.Digest != tt.want.Digest {
				t.Errorf("digest %x at %s, want %x at %s", got.Digest, got.Head, tt.want.Digest, tt.want.Head)
			}
		})
	}
}

func TestImportRefuses(t *testing.T) {
	c, other := generate(t, 4, 20), generate(t, 5, 1)
	broken := func(t *testing.T, change func(*types.Header)) string {
		header := c.blocks[10].Header()
		change(header)
		bad := types.NewBlockWithHeader(header).WithBody(*c.blocks[10].Body())
		blocks := append(append([]*types.Block{}, c.blocks[:10]...), bad)
		_, file := writeFiles(t, nil, blocks)
		return file
	}
	tests := []struct {
		name   string
		change func(*testing.T, *node.ImportConfig)
		head   chain.Number // of what stays
		want   error
		text   string
	}{
		{"a genesis that does not fit", func(_ *testing.T, i *node.ImportConfig) { i.Genesis = other.genesis }, 0, archive.ErrGenesis, "genesis"},
		{"an unknown way to verify", func(_ *testing.T, i *node.ImportConfig) { i.Verify = "twice" }, 0, nil, "want root, receipts or off"},
		{"a head that is no block", func(_ *testing.T, i *node.ImportConfig) { i.Head = "latest" }, 0, nil, "want a number or a hash"},
		{"a head that the files do not reach", func(_ *testing.T, i *node.ImportConfig) { i.Head = "21" }, 20, importer.ErrEndNotReached, "0x15"},
		{"a safe block that is not there", func(_ *testing.T, i *node.ImportConfig) { i.Safe = "21" }, 20, nil, "safe"},
		{"a file that is not there", func(_ *testing.T, i *node.ImportConfig) { i.Files = []string{"nowhere"} }, 0, os.ErrNotExist, "nowhere"},
		{"a block with another state root", func(t *testing.T, i *node.ImportConfig) {
			i.Files = []string{broken(t, func(h *types.Header) { h.Root[0] ^= 1 })}
		}, 10, nil, "state root"},
		{"a block with another gas used", func(t *testing.T, i *node.ImportConfig) {
			i.Files = []string{broken(t, func(h *types.Header) { h.GasUsed++ })}
		}, 10, nil, "gas used"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			good := c.into(newStore())
			good.Head = "0"
			mustImport(t, good)
			bad := good
			bad.Head = ""
			tt.change(t, &bad)
			err := node.Import(t.Context(), bad)
			if err == nil || !strings.Contains(err.Error(), tt.text) || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("Import = %v, want %v with %q", err, tt.want, tt.text)
			}
			var invalid *evm.InvalidBlockError
			if errors.As(err, &invalid) && (invalid.Want == "" || invalid.Got == "") {
				t.Errorf("%v does not say what was expected and found", err)
			}
			if got := mustVerify(t, good.Store).Head.Number; got != tt.head {
				t.Errorf("the store stands at %d, want %d", got, tt.head)
			}
		})
	}
}

func TestImportOfGzip(t *testing.T) {
	c := generate(t, 6, 10)
	plain, err := os.ReadFile(c.file)
	if err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "blocks.rlp.gz")
	if err := os.WriteFile(file, zipped.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	config := c.into(newStore())
	config.Files = []string{file}
	mustImport(t, config)
	if got := mustVerify(t, config.Store).Head.Hash; got != c.blocks[9].Hash() {
		t.Errorf("head %s, want %s", got, c.blocks[9].Hash())
	}
}

// Generated blocks are ten seconds apart.
func TestRetention(t *testing.T) {
	c := generate(t, 7, 40)
	tests := []struct {
		name   string
		blocks uint64
		time   time.Duration
		oldest chain.Number
	}{
		{"everything", 0, 0, 0},
		{"ten blocks", 10, 0, 31},
		{"more blocks than there are", 1000, 0, 0},
		{"one block", 1, 0, 40},
		{"a minute", 0, time.Minute, 34},
		{"more time than there was", 0, time.Hour, 0},
		{"ten blocks or a minute, what is more", 10, time.Minute, 31},
		{"ten blocks or two minutes, what is more", 10, 2 * time.Minute, 28},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			config := c.into(newStore())
			config.KeepBlocks, config.KeepTime = tt.blocks, tt.time
			mustImport(t, config)
			r := mustVerify(t, config.Store)
			if r.Oldest != tt.oldest {
				t.Errorf("oldest %d, want %d", r.Oldest, tt.oldest)
			}
			if r.Root != c.blocks[39].Root() {
				t.Errorf("state root %s after pruning, want %s", r.Root, c.blocks[39].Root())
			}
		})
	}
}
