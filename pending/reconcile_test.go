// SPDX-License-Identifier: Apache-2.0

package pending_test

import (
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/pending"
)

// Block 10 is sealed, with hash L; 11 and 12 are pre-confirmed. Hashes are
// letters, capital for blocks and small for transactions.
func TestReconcile(t *testing.T) {
	letters := func(text string) (hashes []chain.Hash) {
		for _, c := range []byte(text) {
			hashes = append(hashes, chain.Hash{c})
		}
		return hashes
	}
	header := func(number int64, parent byte) *types.Header {
		return &types.Header{Number: big.NewInt(number), ParentHash: chain.Hash{parent}, BaseFee: big.NewInt(7), GasUsed: 5}
	}
	type block struct {
		number int64
		parent byte
		txs    string
	}
	both := []block{{11, 'L', "ab"}, {12, 'M', "cd"}}
	tests := []struct {
		name     string
		promises []block
		sealed   block
		hash     byte
		alter    func(*pending.SealedBlock)
		want     pending.Outcome
		above    bool
		revoked  string
	}{
		{"nothing is pre-confirmed", nil, block{11, 'L', "ab"}, 'M', nil, pending.Keep, true, ""},
		{"the same head again", both, block{10, 'K', ""}, 'L', nil, pending.Keep, true, ""},
		{"sealed as promised", both, block{11, 'L', "ab"}, 'M', nil, pending.Promote, true, ""},
		{"sealed as promised, nothing above", both[:1], block{11, 'L', "ab"}, 'M', nil, pending.Promote, false, ""},
		{"sealed as promised, the next block stands on another", both, block{11, 'L', "ab"}, 'X', nil, pending.Promote, false, "cd"},
		{"empty as promised", []block{{11, 'L', ""}}, block{11, 'L', ""}, 'M', nil, pending.Promote, false, ""},
		{"a last transaction that sealing adds", both, block{11, 'L', "abz"}, 'M', func(s *pending.SealedBlock) { s.PostExecution = true }, pending.Promote, true, ""},
		{"a last transaction that was not announced", both, block{11, 'L', "abz"}, 'M', nil, pending.Rebase, true, ""},
		{"sealed before all flashblocks came", both[:1], block{11, 'L', "abef"}, 'M', nil, pending.Rebase, false, ""},
		{"the same transactions at another time", both, block{11, 'L', "ab"}, 'M', func(s *pending.SealedBlock) { s.Header.Time++ }, pending.Rebase, true, ""},
		{"the same transactions with another outcome", both, block{11, 'L', "ab"}, 'M', func(s *pending.SealedBlock) { s.Header.ReceiptHash[0]++ }, pending.Rebase, true, ""},
		{"withdrawals that were not announced", both, block{11, 'L', "ab"}, 'M', func(s *pending.SealedBlock) { s.Withdrawals = types.Withdrawals{{Amount: 1}} }, pending.Rebase, true, ""},
		{"one transaction revoked", both, block{11, 'L', "a"}, 'M', nil, pending.Discard, true, "b"},
		{"one revoked, and the next block stands on another", both, block{11, 'L', "a"}, 'X', nil, pending.Discard, false, "bcd"},
		{"one taken from the next block", both, block{11, 'L', "ac"}, 'X', nil, pending.Discard, false, "bd"},
		{"another order", both, block{11, 'L', "ba"}, 'M', nil, pending.Discard, true, ""},
		{"all revoked", both[:1], block{11, 'L', ""}, 'M', nil, pending.Discard, false, "ab"},
		{"a reorg of the head", both, block{10, 'K', "x"}, 'Z', nil, pending.Discard, false, "abcd"},
		{"a reorg far down", both, block{4, 'E', "x"}, 'Z', nil, pending.Discard, false, "abcd"},
		{"a block on another branch, with the same transactions", both, block{11, 'Z', "ab"}, 'M', nil, pending.Discard, false, "cd"},
		{"two blocks sealed at once", both, block{12, 'M', "cd"}, 'N', nil, pending.Rebase, false, ""},
		{"two blocks at once, the upper with one revoked", both, block{12, 'M', "c"}, 'N', nil, pending.Discard, false, "d"},
		{"sealed beyond all that is pre-confirmed", both, block{15, 'O', "x"}, 'P', nil, pending.Rebase, false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var promises []pending.Promise
			for _, b := range tt.promises {
				promises = append(promises, pending.Promise{Header: header(b.number, b.parent), Transactions: letters(b.txs)})
			}
			s := &pending.SealedBlock{Hash: chain.Hash{tt.hash}, Header: header(tt.sealed.number, tt.sealed.parent), Transactions: letters(tt.sealed.txs)}
			if tt.alter != nil {
				tt.alter(s)
			}
			got := pending.Reconcile(chain.Ref{Number: 10, Hash: chain.Hash{'L'}}, promises, s)
			if got.Outcome != tt.want || got.Above != tt.above || !slices.Equal(got.Revoked, letters(tt.revoked)) {
				t.Errorf("Reconcile = %v, above %v, revoked %v, want %v, %v, %q", got.Outcome, got.Above, got.Revoked, tt.want, tt.above, tt.revoked)
			}
		})
	}
}
