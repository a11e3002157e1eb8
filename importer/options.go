// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"errors"
	"fmt"
	"time"

	"glimpse/chain"
	"glimpse/evm"
)

// Options shape an import.
type Options struct {
	// Verify is how much of each block is compared with its header. The zero
	// value is VerifyRoot, which needs Roots.
	Verify Verify

	// Roots computes state roots and stands at the store's head. The Store
	// stores what it has to store in Commit.
	Roots Roots

	// Head is the block to end at, by number or hash. The zero value imports
	// all that the files have.
	Head chain.Selector

	// Progress, where not nil, is called after every block, from the goroutine
	// of Run.
	Progress func(Progress)
}

// Roots computes state roots and can go back to the last committed one.
type Roots interface {
	evm.Roots
	Discard()
}

// Progress is how far an import has come.
type Progress struct {
	Block        chain.Ref // the last one that was passed
	Blocks       int       // executed and stored
	Skipped      int       // were there already
	Transactions int       // of the executed blocks
	Gas          uint64    // used by them
	BytesRead    int64     // of the files; a little ahead of Block
	BytesTotal   int64
	Elapsed      time.Duration
}

// Verify is how much of a block is compared with its header. Headers and bodies
// are verified, and transactions that must not be in a block are refused, in
// any case.
type Verify int

// The ways to verify, strictest first.
const (
	VerifyRoot     Verify = iota // everything, with the state root
	VerifyReceipts               // everything but the state root, see evm.Checks
	VerifyOff                    // nothing
)

var verifyNames = []string{"root", "receipts", "off"}

func (v Verify) String() string {
	if v < 0 || int(v) >= len(verifyNames) {
		return fmt.Sprintf("Verify(%d)", int(v))
	}
	return verifyNames[v]
}

// ParseVerify reads "root", "receipts" or "off".
func ParseVerify(text string) (Verify, error) {
	for i, name := range verifyNames {
		if text == name {
			return Verify(i), nil
		}
	}
	return 0, fmt.Errorf("verify %q: want root, receipts or off", text)
}

func (o *Options) validate() error {
	if o.Verify < VerifyRoot || o.Verify > VerifyOff {
		return fmt.Errorf("no such option: %v", o.Verify)
	}
	if o.Verify == VerifyRoot && o.Roots == nil {
		return errors.New("roots cannot be verified without tries")
	}
	_, byNumber := o.Head.Number()
	_, byHash := o.Head.Hash()
	if o.Head != (chain.Selector{}) && !byNumber && !byHash {
		return fmt.Errorf("import up to %q: want a number or a hash", o.Head)
	}
	return nil
}

func (o *Options) checks() evm.Checks {
	switch o.Verify {
	case VerifyRoot:
		return evm.Checks{Receipts: true, Roots: o.Roots}
	case VerifyReceipts:
		return evm.Checks{Receipts: true}
	}
	return evm.Checks{}
}

// isEnd reports whether ref is the block to end at.
func (o *Options) isEnd(ref chain.Ref) bool {
	if n, ok := o.Head.Number(); ok {
		return ref.Number >= n
	}
	if h, ok := o.Head.Hash(); ok {
		return ref.Hash == h
	}
	return false
}
