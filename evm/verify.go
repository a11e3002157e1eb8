// SPDX-License-Identifier: Apache-2.0

package evm

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/trie"

	"glimpse/chain"
)

// maxUncles and uncleDepth bound the uncles of a proof-of-work block.
const (
	maxUncles  = 2
	uncleDepth = 7
)

// CommitsTo reports whether a header commits to these withdrawals.
func CommitsTo(h *types.Header, w types.Withdrawals) bool {
	if h.WithdrawalsHash == nil {
		return len(w) == 0
	}
	return types.DeriveSha(w, trie.NewStackTrie(nil)) == *h.WithdrawalsHash
}

// verify checks what can be said of a block without executing it.
func (r *Rules) verify(block *types.Block, header, parent *types.Header) error {
	ref := chain.Ref{Number: chain.Number(block.NumberU64()), Hash: block.Hash()}
	if err := block.SanityCheck(); err != nil {
		return &InvalidBlockError{Ref: ref, What: "header", Cause: err}
	}
	if err := r.checkInputs(header, ref.Hash); err != nil {
		return err
	}
	if err := r.supports(header.Number, header.Time); err != nil {
		return err
	}
	if err := r.verifyHeader(ref, header, parent); err != nil {
		return err
	}
	if err := r.verifyBody(ref, block, header); err != nil {
		return err
	}
	return verifyUncles(ref, block, header)
}

// checkInputs refuses a header without a field that its fork executes with, or
// with one that it does not know: go-ethereum would panic over either.
func (r *Rules) checkInputs(header *types.Header, hash chain.Hash) error {
	ref := chain.Ref{Hash: hash}
	if header.Number == nil || header.Difficulty == nil {
		return &InvalidBlockError{Ref: ref, What: "header without number or difficulty"}
	}
	ref.Number = chain.Number(header.Number.Uint64())
	london := r.config.IsLondon(header.Number)
	cancun := r.config.IsCancun(header.Number, header.Time)
	for _, field := range []struct {
		name      string
		has, want bool
	}{
		{"base fee", header.BaseFee != nil, london},
		{"excess blob gas", header.ExcessBlobGas != nil, cancun},
		{"parent beacon root", header.ParentBeaconRoot != nil, cancun},
	} {
		if field.has != field.want {
			return mismatch(ref, field.name+" present", field.has, field.want)
		}
	}
	return nil
}

func (r *Rules) verifyHeader(ref chain.Ref, header, parent *types.Header) error {
	parentHash := parent.Hash()
	if header.ParentHash != parentHash {
		return mismatch(ref, "parent", header.ParentHash, parentHash)
	}
	if next := new(big.Int).Add(parent.Number, big.NewInt(1)); header.Number.Cmp(next) != 0 {
		return mismatch(ref, "number", header.Number, next)
	}
	if r.tolerant {
		return nil
	}
	headers := headerReader{config: r.config, parent: parent, parentHash: parentHash}
	if err := r.engine.VerifyHeader(headers, header); err != nil {
		return &InvalidBlockError{Ref: ref, What: "header", Cause: err}
	}
	// The engine leaves this field to whoever executes the block.
	prague := r.config.IsPrague(header.Number, header.Time)
	if has := header.RequestsHash != nil; has != prague {
		return mismatch(ref, "requests hash present", has, prague)
	}
	return nil
}

// verifyBody checks that the body is the one that the header commits to.
func (r *Rules) verifyBody(ref chain.Ref, block *types.Block, header *types.Header) error {
	if size := block.Size(); r.config.IsOsaka(header.Number, header.Time) && size > params.MaxBlockSize {
		return mismatch(ref, "size in bytes", size, fmt.Sprintf("at most %d", params.MaxBlockSize))
	}
	if got := types.CalcUncleHash(block.Uncles()); got != header.UncleHash {
		return mismatch(ref, "uncles hash", got, header.UncleHash)
	}
	if got := types.DeriveSha(block.Transactions(), trie.NewStackTrie(nil)); got != header.TxHash {
		return mismatch(ref, "transactions root", got, header.TxHash)
	}
	withdrawals := block.Withdrawals()
	if has, want := withdrawals != nil, header.WithdrawalsHash != nil; has != want {
		return mismatch(ref, "withdrawals present", has, want)
	}
	if header.WithdrawalsHash != nil {
		if got := types.DeriveSha(withdrawals, trie.NewStackTrie(nil)); got != *header.WithdrawalsHash {
			return mismatch(ref, "withdrawals root", got, *header.WithdrawalsHash)
		}
	}
	return verifyBlobs(ref, block, header)
}

func verifyBlobs(ref chain.Ref, block *types.Block, header *types.Header) error {
	var got, want uint64
	for i, tx := range block.Transactions() {
		got += tx.BlobGas()
		if tx.BlobTxSidecar() != nil {
			return &InvalidBlockError{Ref: ref, What: fmt.Sprintf("blob sidecar in transaction %d", i)}
		}
	}
	if header.BlobGasUsed != nil {
		want = *header.BlobGasUsed
	}
	if got != want {
		return mismatch(ref, "blob gas used", got, want)
	}
	return nil
}

func verifyUncles(ref chain.Ref, block *types.Block, header *types.Header) error {
	if n := len(block.Uncles()); n > maxUncles {
		return mismatch(ref, "uncles", n, fmt.Sprintf("at most %d", maxUncles))
	}
	for _, uncle := range block.Uncles() {
		depth := new(big.Int).Sub(header.Number, uncle.Number)
		if depth.Sign() <= 0 || depth.Cmp(big.NewInt(uncleDepth)) > 0 {
			return mismatch(ref, "uncle's depth", depth, fmt.Sprintf("1 to %d", uncleDepth))
		}
	}
	return nil
}

// compare checks the outcome of an execution against the header.
func (r *Rules) compare(ref chain.Ref, header *types.Header, o *Outcome, checks Checks) error {
	if !checks.Receipts {
		return nil
	}
	if o.GasUsed != header.GasUsed {
		return mismatch(ref, "gas used", o.GasUsed, header.GasUsed)
	}
	if o.Bloom != header.Bloom {
		return mismatch(ref, "logs bloom", fmt.Sprintf("%#x", o.Bloom[:]), fmt.Sprintf("%#x", header.Bloom[:]))
	}
	if r.config.IsByzantium(header.Number) || checks.Roots != nil {
		if got := types.DeriveSha(o.Receipts, trie.NewStackTrie(nil)); got != header.ReceiptHash {
			return mismatch(ref, "receipts root", got, header.ReceiptHash)
		}
	}
	if header.RequestsHash != nil {
		if got := types.CalcRequestsHash(o.Requests); got != *header.RequestsHash {
			return mismatch(ref, "requests hash", got, *header.RequestsHash)
		}
	}
	if o.AccessList != nil {
		if got := o.AccessList.Hash(); got != *header.BlockAccessListHash {
			return mismatch(ref, "block access list hash", got, *header.BlockAccessListHash)
		}
		if err := o.AccessList.Validate(header.GasLimit, len(o.Receipts)); err != nil {
			return &InvalidBlockError{Ref: ref, What: "block access list", Cause: err}
		}
	}
	return nil
}

func mismatch(ref chain.Ref, what string, got, want any) error {
	return &InvalidBlockError{Ref: ref, What: what, Got: fmt.Sprint(got), Want: fmt.Sprint(want)}
}

// headerReader is what the consensus engine sees of the chain: the parent.
type headerReader struct {
	config     *params.ChainConfig
	parent     *types.Header
	parentHash chain.Hash
}

func (h headerReader) Config() *params.ChainConfig { return h.config }

func (h headerReader) CurrentHeader() *types.Header { return h.parent }

func (h headerReader) GetHeader(hash chain.Hash, number uint64) *types.Header {
	if h.parent != nil && hash == h.parentHash && number == h.parent.Number.Uint64() {
		return h.parent
	}
	return nil
}

func (h headerReader) GetHeaderByNumber(uint64) *types.Header { return nil }

func (h headerReader) GetHeaderByHash(chain.Hash) *types.Header { return nil }
