// SPDX-License-Identifier: Apache-2.0

package evm

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/consensus/misc"
	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"

	"glimpse/chain"
)

// Ancestors returns the hash of the block of height n on the branch that is
// being executed, for the BLOCKHASH instruction. Only the 256 blocks before
// are asked for, never the parent. An error fails the execution with
// ErrStateRead.
type Ancestors func(n chain.Number) (chain.Hash, error)

// A Block is one block being executed. It belongs to one goroutine. After any
// error it is dead: every further call returns the same error, and nothing that
// was executed since the last Diff can be had. A Block may be dropped at any
// time.
type Block struct {
	rules  *Rules
	header *types.Header
	ref    chain.Ref // zero hash while the header is not final

	reader   *reader
	recorder *recorder
	evm      *vm.EVM
	fork     params.Rules
	signer   types.Signer

	gas      *core.GasPool
	receipts types.Receipts
	logs     []*types.Log
	access   *bal.ConstructionBlockAccessList // what Amsterdam's header commits to

	whole changes // of all parts that were taken
	err   error
}

// Begin opens a block on the state after its parent. The header's execution inputs
// must be set: parent hash, number, time, coinbase, gas limit, difficulty, mix
// digest and those that a fork brought, such as the base fee; what execution
// yields, such as the state root, is not looked at. Begin runs what comes
// before the first transaction, the DAO fork and the system calls; what that
// changed is part of the first Diff.
//
// The header is kept and must not be modified. The base must be the state of
// the parent.
func (r *Rules) Begin(header *types.Header, base chain.View, ancestors Ancestors) (*Block, error) {
	return r.begin(header, chain.Hash{}, base, ancestors)
}

func (r *Rules) begin(header *types.Header, hash chain.Hash, base chain.View, ancestors Ancestors) (*Block, error) {
	b, err := r.open(header, hash, base, ancestors)
	if err != nil {
		return nil, err
	}
	if err := b.beforeTransactions(); err != nil {
		return nil, b.die(err)
	}
	return b, nil
}

// open returns a block on which nothing has run yet.
func (r *Rules) open(header *types.Header, hash chain.Hash, base chain.View, ancestors Ancestors) (*Block, error) {
	if err := r.checkInputs(header, hash); err != nil {
		return nil, err
	}
	if err := r.supports(header.Number, header.Time); err != nil {
		return nil, err
	}
	in := &reader{view: base}
	own := r.ownPrecompiles(header.Time)
	recorder, err := newRecorder(in, own)
	if err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	b := &Block{
		rules:    r,
		header:   header,
		ref:      chain.Ref{Number: chain.Number(header.Number.Uint64()), Hash: hash},
		reader:   in,
		recorder: recorder,
		signer:   r.Signer(header),
		gas:      core.NewGasPool(header.GasLimit),
		access:   bal.NewConstructionBlockAccessList(),
		whole:    make(changes),
	}
	b.evm = vm.NewEVM(b.context(ancestors), recorder, r.config, vm.Config{})
	b.evm.SetJumpDestCache(r.jumpDests)
	if own != nil {
		b.evm.SetPrecompiles(own)
	}
	b.fork = b.evm.GetRules()
	in.cancel = b.evm.Cancel
	return b, nil
}

// context is go-ethereum's NewEVMBlockContext but for BLOCKHASH: its own answer
// to a header that cannot be read is zero.
func (b *Block) context(ancestors Ancestors) vm.BlockContext {
	h := b.header
	context := vm.BlockContext{
		CanTransfer:      core.CanTransfer,
		Transfer:         core.Transfer,
		GetHash:          b.blockHash(ancestors),
		Coinbase:         h.Coinbase,
		BlockNumber:      h.Number,
		Time:             h.Time,
		Difficulty:       h.Difficulty,
		BaseFee:          h.BaseFee,
		GasLimit:         h.GasLimit,
		CostPerStateByte: params.CostPerStateByte,
	}
	if h.ExcessBlobGas != nil {
		context.BlobBaseFee = eip4844.CalcBlobFee(b.rules.config, h)
	}
	if h.Difficulty.Sign() == 0 {
		context.Random = &h.MixDigest
	}
	if h.SlotNumber != nil {
		context.SlotNum = *h.SlotNumber
	}
	return context
}

func (b *Block) blockHash(ancestors Ancestors) vm.GetHashFunc {
	return func(n uint64) chain.Hash {
		if chain.Number(n)+1 == b.ref.Number {
			return b.header.ParentHash
		}
		hash, err := ancestors(chain.Number(n))
		if err != nil {
			b.reader.fail(fmt.Errorf("hash of block %d: %w", n, err))
			return chain.Hash{}
		}
		return hash
	}
}

func (b *Block) beforeTransactions() error {
	config, number := b.rules.config, b.header.Number
	if config.DAOForkSupport && config.DAOForkBlock != nil && config.DAOForkBlock.Cmp(number) == 0 {
		misc.ApplyDAOHardFork(b.recorder)
	}
	if root := b.header.ParentBeaconRoot; root != nil {
		core.ProcessBeaconBlockRoot(*root, b.evm, b.access)
	}
	// The parent is named by the header: while it is itself pre-confirmed, its
	// own header is not final.
	if config.IsPrague(number, b.header.Time) {
		core.ProcessParentBlockHash(b.header.ParentHash, b.evm, b.access)
	}
	return b.readError()
}

// Apply executes the next transactions of the block and returns what they
// changed and their receipts, whose block hash is not set. A transaction that
// fails inside the EVM has a receipt that says so; one that must not be in a
// block at all gives an InvalidBlockError.
func (b *Block) Apply(txs []*types.Transaction) (*chain.Diff, types.Receipts, error) {
	if b.err != nil {
		return nil, nil, b.err
	}
	first := len(b.receipts)
	for _, tx := range txs {
		if err := b.transact(tx, nil); err != nil {
			return nil, nil, b.die(err)
		}
	}
	diff, err := b.takeDiff()
	if err != nil {
		return nil, nil, b.die(err)
	}
	return diff, b.receipts[first:], nil
}

// transact executes one transaction. Where roots is given, it is called with
// what the transaction changed, for the state root in its receipt.
func (b *Block) transact(tx *types.Transaction, roots Roots) error {
	index := len(b.receipts)
	message, err := core.TransactionToMessage(tx, b.signer, b.header.BaseFee)
	if err != nil {
		return b.badTransaction(index, tx, err)
	}
	b.recorder.SetTxContext(tx.Hash(), index, uint32(index+1))
	result, err := core.ApplyMessage(b.evm, message, b.gas)
	if err := b.readError(); err != nil {
		return err
	}
	if err != nil {
		return b.badTransaction(index, tx, err)
	}
	b.access.Merge(b.recorder.Finalise(b.fork))
	var root []byte
	if roots != nil {
		diff, err := b.takeDiff()
		if err != nil {
			return err
		}
		hash, err := roots.Apply(diff)
		if err != nil {
			return stateReadError(fmt.Errorf("state root after transaction %d: %w", index, err))
		}
		root = hash.Bytes()
	}
	if err := b.readError(); err != nil {
		return err
	}
	receipt := core.MakeReceipt(b.evm, result, b.recorder.StateDB, b.header.Number, b.ref.Hash, b.header.Time, tx, b.gas.CumulativeUsed(), root)
	b.receipts = append(b.receipts, receipt)
	b.logs = append(b.logs, receipt.Logs...)
	return nil
}

// An Outcome is what a block's execution yields beside its changes: what its
// header commits to.
type Outcome struct {
	Receipts types.Receipts
	GasUsed  uint64
	Bloom    types.Bloom

	// Requests are for the consensus layer, nil before Prague.
	Requests [][]byte

	// AccessList is the block access list of EIP-7928, nil before Amsterdam.
	AccessList *bal.BlockAccessList
}

// hasQueues reports whether the contracts are there that requests come from. Where
// they must be, their absence is for go-ethereum to refuse.
func (b *Block) hasQueues() bool {
	prague := b.rules.config.IsPrague(b.header.Number, b.header.Time)
	return !b.rules.tolerant || !prague || b.recorder.GetCodeSize(params.WithdrawalQueueAddress) > 0
}

// Finish executes what follows the last transaction, withdrawals, requests and
// rewards, and returns what that changed. Of the body only uncles and
// withdrawals are looked at. Nothing can be applied afterwards.
func (b *Block) Finish(body *types.Body) (*chain.Diff, *Outcome, error) {
	outcome, err := b.finish(body)
	if err != nil {
		return nil, nil, err
	}
	diff, err := b.takeDiff()
	if err != nil {
		return nil, nil, b.die(err)
	}
	return diff, outcome, nil
}

func (b *Block) finish(body *types.Body) (*Outcome, error) {
	if b.err != nil {
		return nil, b.err
	}
	config, number, time := b.rules.config, b.header.Number, b.header.Time
	requests := [][]byte{} // none, which is not the same as none being possible
	var access *bal.ConstructionBlockAccessList
	var err error
	if b.hasQueues() {
		requests, access, err = core.PostExecution(context.Background(), config, number, time, b.logs, body.Withdrawals, b.evm, uint32(len(b.receipts)+1))
	}
	if err := b.readError(); err != nil {
		return nil, b.die(err)
	}
	if err != nil {
		return nil, b.die(&InvalidBlockError{Ref: b.ref, What: "post-execution", Cause: err})
	}
	if access != nil {
		b.access.Merge(access)
	}
	b.rules.engine.Finalize(headerReader{config: config}, b.header, b.recorder, body)
	b.recorder.Finalise(b.fork)
	if err := b.readError(); err != nil {
		return nil, b.die(err)
	}
	outcome := &Outcome{
		Receipts: b.receipts,
		GasUsed:  b.gas.Used(),
		Bloom:    types.MergeBloom(b.receipts),
		Requests: requests,
	}
	if b.fork.IsAmsterdam {
		outcome.AccessList = b.access.ToEncodingObj()
	}
	return outcome, nil
}

// Diff returns what the block has changed so far, in all its parts together. It
// is what the parts' Diffs add up to, without what a later part put back, and
// takes nothing from the Diff of the next part.
func (b *Block) Diff() (*chain.Diff, error) {
	if b.err != nil {
		return nil, b.err
	}
	all := b.recorder.delta
	if len(b.whole) > 0 {
		all = b.whole.clone()
		all.add(b.recorder.delta.clone())
	}
	diff := b.recorder.diff(all)
	if err := b.readError(); err != nil {
		return nil, b.die(err)
	}
	return diff, nil
}

// takeDiff returns what was changed since the last call.
func (b *Block) takeDiff() (*chain.Diff, error) {
	part := b.recorder.take()
	diff := b.recorder.diff(part)
	b.whole.add(part)
	return diff, b.readError()
}

func (b *Block) badTransaction(index int, tx *types.Transaction, cause error) error {
	what := fmt.Sprintf("transaction %d (%s)", index, tx.Hash())
	return &InvalidBlockError{Ref: b.ref, What: what, Cause: cause}
}

func (b *Block) readError() error {
	if b.reader.err != nil {
		return stateReadError(b.reader.err)
	}
	return nil
}

func (b *Block) die(err error) error {
	b.err = err
	b.evm.Release()
	return err
}
