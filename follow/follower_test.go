// SPDX-License-Identifier: Apache-2.0

package follow_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/follow"
)

// An upstream is a chain that somebody else changes.
type upstream struct {
	mu      sync.Mutex
	blocks  map[chain.Hash]*follow.Block
	current []*follow.Block // canonical, by height
	changed chan struct{}   // holds at most one signal
	broken  error           // what blocks cannot be had for
	tagged  bool
}

func newUpstream() *upstream {
	u := &upstream{blocks: make(map[chain.Hash]*follow.Block), changed: make(chan struct{}, 1)}
	u.grow(0)
	return u
}

// grow adds a block whose content is the salt.
func (u *upstream) grow(salt byte) { u.growBy(1, salt) }

// growBy adds several blocks at once.
func (u *upstream) growBy(count int, salt byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for range count {
		u.add(salt)
	}
	select {
	case u.changed <- struct{}{}:
	default:
	}
}

func (u *upstream) add(salt byte) {
	header := &types.Header{Number: big.NewInt(int64(len(u.current))), Extra: []byte{salt}, Difficulty: new(big.Int)}
	if n := len(u.current); n > 0 {
		header.ParentHash = u.current[n-1].Hash
	}
	b := &follow.Block{Ref: chain.Ref{Number: chain.Number(len(u.current)), Hash: header.Hash()}, Header: header}
	u.blocks[b.Hash] = b
	u.current = append(u.current, b)
}

// reorganise replaces the last blocks by as many others, and one more.
func (u *upstream) reorganise(depth int, salt byte) {
	u.cut(depth)
	u.growBy(depth+1, salt)
}

func (u *upstream) cut(depth int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.current = u.current[:len(u.current)-depth]
}

func (u *upstream) breaks(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.broken = err
}

func (u *upstream) Heads(ctx context.Context) (follow.Heads, error) {
	select {
	case <-u.changed:
	case <-ctx.Done():
		return follow.Heads{}, ctx.Err()
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	newest := u.current[len(u.current)-1]
	h := follow.Heads{Latest: newest.Ref, Header: newest.Header}
	if u.tagged {
		h.Safe = &u.current[len(u.current)-2].Ref
	}
	return h, nil
}

func (u *upstream) Block(_ context.Context, h chain.Hash) (*follow.Block, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if b := u.blocks[h]; b != nil && u.broken == nil {
		return b, nil
	}
	return nil, errors.Join(errors.New("no such block"), u.broken)
}

func (u *upstream) At(_ context.Context, n chain.Number) (chain.Hash, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.current[n].Hash, nil
}

// A follower is all that a Follower needs, in memory.
type follower struct {
	first     chain.Number
	blocks    []*follow.Block // from first on
	safe      *chain.Ref
	produced  int
	announced []string
	troubles  []error
	promised  map[chain.Hash]bool
	lies      map[chain.Hash]bool // whose result does not match
}

func (f *follower) head() *follow.Block { return f.blocks[len(f.blocks)-1] }

func (f *follower) Head() (*follow.Head, error) {
	b := f.head()
	return &follow.Head{Ref: b.Ref, Header: b.Header, Release: func() {}}, nil
}
func (f *follower) First() chain.Number { return f.first }
func (f *follower) Hash(n chain.Number) (chain.Hash, error) {
	return f.blocks[n-f.first].Hash, nil
}
func (f *follower) Commit(b *follow.Block, r *follow.Result) error {
	if b.Header.ParentHash != f.head().Hash || r.Diff == nil {
		return errors.New("it does not follow")
	}
	f.blocks = append(f.blocks, b)
	return nil
}
func (f *follower) Unwind(to chain.Number) error {
	f.blocks = f.blocks[:to-f.first+1]
	return nil
}
func (f *follower) SetTags(safe, _ *chain.Ref) error { f.safe = safe; return nil }
func (f *follower) Produce(_ context.Context, b *follow.Block, parent *types.Header, _ chain.View) (*follow.Result, error) {
	if parent.Hash() != b.Header.ParentHash || f.lies[b.Hash] {
		return nil, errors.New("receipts root does not match")
	}
	f.produced++
	return &follow.Result{Diff: new(chain.Diff)}, nil
}
func (f *follower) Promised(h *types.Header) (*follow.Block, *follow.Result, bool) {
	b := &follow.Block{Ref: chain.Ref{Number: chain.Number(h.Number.Uint64()), Hash: h.Hash()}, Header: h}
	return b, &follow.Result{Diff: new(chain.Diff)}, f.promised[h.Hash()]
}
func (f *follower) Announce(b *follow.Block, removed int) error {
	f.announced = append(f.announced, fmt.Sprintf("%d-%d", b.Number, removed))
	return nil
}
func (f *follower) Trouble(err error) { f.troubles = append(f.troubles, err) }

// start begins to follow at the newest block.
func start(t *testing.T, u *upstream) *follower {
	t.Helper()
	b := u.current[len(u.current)-1]
	f := &follower{first: b.Number, blocks: []*follow.Block{b}, promised: make(map[chain.Hash]bool), lies: make(map[chain.Hash]bool)}
	follows := follow.New(follow.Options{Source: u, Producer: f, Store: f, Listener: f})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- follows.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, follow.ErrDeep) {
			t.Errorf("Run: %v", err)
		}
	})
	synctest.Wait()
	return f
}

// inStep compares the follower with the upstream.
func inStep(t *testing.T, u *upstream, f *follower) {
	t.Helper()
	synctest.Wait()
	want := u.current[f.first:]
	if !slices.EqualFunc(f.blocks, want, func(a, b *follow.Block) bool { return a.Ref == b.Ref }) {
		t.Errorf("the store has %d blocks up to %s, want %d up to %s; troubles %v", len(f.blocks), f.head().Ref, len(want), want[len(want)-1].Ref, f.troubles)
	}
}

func TestFollow(t *testing.T) {
	tests := []struct {
		name      string
		do        func(u *upstream, f *follower)
		announced []string // nil where it does not matter
	}{
		{"one block", func(u *upstream, _ *follower) { u.grow(1) }, []string{"6-0"}},
		{"several at once", func(u *upstream, _ *follower) { u.growBy(3, 1) }, []string{"8-0"}},
		{"more than a stride", func(u *upstream, _ *follower) {
			u.growBy(150, 1)
		}, []string{"69-0", "133-0", "155-0"}},
		{"another branch", func(u *upstream, _ *follower) {
			u.growBy(2, 1)
			synctest.Wait()
			u.reorganise(2, 2)
		}, []string{"7-0", "8-2"}},
		{"another branch of the same height", func(u *upstream, _ *follower) {
			u.growBy(2, 1)
			synctest.Wait()
			u.cut(1)
			u.grow(2)
		}, []string{"7-0", "7-1"}},
		{"a shorter branch", func(u *upstream, _ *follower) {
			u.growBy(4, 1)
			synctest.Wait()
			u.cut(3)
			u.grow(2)
		}, []string{"9-0", "7-3"}},
		{"ten blocks deep", func(u *upstream, _ *follower) {
			u.growBy(12, 1)
			synctest.Wait()
			u.reorganise(10, 2)
		}, []string{"17-0", "18-10"}},
		{"an upstream that is away for a while", func(u *upstream, _ *follower) {
			u.breaks(errors.New("away"))
			u.grow(1)
			synctest.Wait()
			wait(10 * time.Second)
			u.grow(1)
			synctest.Wait()
			u.breaks(nil)
			wait(2 * time.Second)
		}, []string{"7-0"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := newUpstream()
				for range 5 {
					u.grow(0)
				}
				f := start(t, u)
				tt.do(u, f)
				inStep(t, u, f)
				if tt.announced != nil && !slices.Equal(f.announced, tt.announced) {
					t.Errorf("announced %v, want %v", f.announced, tt.announced)
				}
			})
		})
	}
}

// wait lets virtual time pass.
func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// A block that was pre-confirmed is not asked for: its header is enough. One
// that has to be fetched for the blocks above it is not produced again either.
func TestPromisedBlocksAreNotProduced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUpstream()
		f := start(t, u)
		u.breaks(errors.New("away")) // no block can be had
		u.grow(1)
		synctest.Wait()
		f.promised[u.current[1].Hash] = true
		u.grow(1)
		wait(2 * time.Second) // the newest does not follow on what is there
		if len(f.announced) > 0 {
			t.Errorf("announced %v, though nothing can be fetched", f.announced)
		}
		u.breaks(nil)
		wait(2 * time.Second)
		inStep(t, u, f)
		if f.produced != 1 {
			t.Errorf("%d blocks were produced, want 1 of 2", f.produced)
		}
		u.breaks(errors.New("away"))
		next := promisedNext(u, f)
		inStep(t, u, f)
		if f.produced != 1 || f.announced[len(f.announced)-1] != "3-0" || f.head().Ref != next {
			t.Errorf("%d blocks were produced, announced %v", f.produced, f.announced)
		}
	})
}

// promisedNext grows the chain by a block that is promised before.
func promisedNext(u *upstream, f *follower) chain.Ref {
	u.mu.Lock()
	u.add(1)
	next := u.current[len(u.current)-1].Ref
	u.mu.Unlock()
	f.promised[next.Hash] = true
	u.changed <- struct{}{}
	return next
}

// A block whose result does not match its header is never announced; when the
// upstream leaves it behind, the node goes on.
func TestMismatchedBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUpstream()
		f := start(t, u)
		u.breaks(errors.New("away"))
		u.grow(1)
		synctest.Wait()
		f.lies[u.current[1].Hash] = true
		u.breaks(nil)
		wait(5 * time.Second)
		if len(f.announced) > 0 || len(f.troubles) < 5 {
			t.Errorf("announced %v with %d troubles, want nothing and several", f.announced, len(f.troubles))
		}
		u.reorganise(1, 2)
		wait(2 * time.Second)
		inStep(t, u, f)
	})
}

func TestReorganisationBelowTheFirstBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUpstream()
		for range 5 {
			u.grow(0)
		}
		first := u.current[len(u.current)-1]
		f := &follower{first: first.Number, blocks: []*follow.Block{first}}
		ended := make(chan error, 1)
		follows := follow.New(follow.Options{Source: u, Producer: f, Store: f, Listener: f})
		go func() { ended <- follows.Run(t.Context()) }()
		u.reorganise(3, 2)
		if err := <-ended; !errors.Is(err, follow.ErrDeep) {
			t.Errorf("got %v, want %v", err, follow.ErrDeep)
		}
	})
}

func TestTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUpstream()
		u.tagged = true
		u.grow(0)
		f := start(t, u)
		if f.safe == nil || *f.safe != u.current[0].Ref {
			t.Errorf("safe is %v, want the block before the first", f.safe)
		}
		u.grow(1)
		u.grow(1)
		inStep(t, u, f)
		if f.safe == nil || *f.safe != u.current[2].Ref {
			t.Errorf("safe is %v, want %v", f.safe, u.current[2].Ref)
		}
	})
}

// Whatever an upstream does, the store is in step with it in the end.
func TestRandomUpstream(t *testing.T) {
	for range 20 {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 0))
				u := newUpstream()
				u.grow(0)
				f := start(t, u)
				for i := range 100 {
					switch r.IntN(6) {
					case 0:
						if n := len(u.current) - int(f.first) - 1; n > 0 {
							u.reorganise(1+r.IntN(min(n, 12)), byte(i))
						}
					case 1:
						u.breaks(errors.New("away"))
					case 2:
						u.breaks(nil)
					default:
						u.grow(byte(i))
					}
					if r.IntN(2) == 0 {
						wait(time.Duration(r.IntN(1500)) * time.Millisecond)
					}
				}
				u.breaks(nil)
				u.grow(255)
				wait(3 * time.Second)
				inStep(t, u, f)
			})
		})
	}
}
