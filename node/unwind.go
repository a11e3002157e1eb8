// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"

	"glimpse/archive"
	"glimpse/chain"
	"glimpse/merkle"
)

// unwindStep bounds how many blocks' diffs are in memory at once.
const unwindStep = 256

// unwind takes the store back to block n. Tries that stand at the head are taken
// back with it; nil means that there are none.
func unwind(db *archive.DB, tries *merkle.State, n chain.Number) error {
	for {
		r, err := db.NewReader()
		if err != nil {
			return err
		}
		head := r.Head().Number
		if head <= n {
			r.Release()
			return nil
		}
		to := n
		if head-n > unwindStep {
			to = head - unwindStep
		}
		side, err := revertTries(r, tries, to)
		r.Release()
		if err != nil {
			return fmt.Errorf("unwind to block %d: %w", to, err)
		}
		if err := db.Unwind(to, side); err != nil {
			return err
		}
	}
}

// revertTries computes the tries of block n from those of the head.
func revertTries(r *archive.Reader, tries *merkle.State, n chain.Number) ([]archive.SideWrite, error) {
	if tries == nil {
		return nil, nil
	}
	view, err := r.At(n)
	if err != nil {
		return nil, err
	}
	var unwound []*chain.Diff
	for k := r.Head().Number; k > n; k-- {
		diff, err := r.Diff(k)
		if err != nil {
			return nil, err
		}
		unwound = append(unwound, diff)
	}
	back, err := merkle.Revert(unwound, view, flat{r, n})
	if err != nil {
		return nil, err
	}
	root, err := tries.Apply(back)
	if err != nil {
		return nil, err
	}
	header, err := headerAt(r, n)
	if err != nil {
		return nil, err
	}
	if root != header.Root {
		return nil, fmt.Errorf("%w: state root %s, want %s", chain.ErrCorrupt, root, header.Root)
	}
	return sideWrites(tries.Commit(chain.Ref{Number: n, Hash: header.Hash()})), nil
}
