// SPDX-License-Identifier: Apache-2.0

package opstack

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"

	"glimpse/chain"
	"glimpse/evm"
)

var (
	errNoAttributes = errors.New("the first transaction is not a deposit")
	errSystem       = errors.New("system transaction after Regolith")
	errClosed       = errors.New("it follows a post-execution transaction")
	errNotAnnounced = errors.New("its refunds were not announced")
	errBlob         = errors.New("blob transaction")
	errActivation   = errors.New("signed transaction in the block that brings Jovian")
	errFees         = errors.New("fees of more than 256 bits")
	errRefund       = errors.New("refund of more than was paid")
)

// An executed transaction, as its receipt needs it.
type executed struct {
	from    chain.Address
	to      *chain.Address
	nonce   uint64
	price   *uint256.Int
	gasUsed uint64
	failed  bool
}

// transact executes one transaction.
func (b *Block) transact(tx *Transaction) error {
	index := len(b.receipts)
	b.frame.EVM().StateDB.SetTxContext(tx.hash, index, uint32(index+1))
	done, err := b.execute(tx, index)
	if readErr := b.frame.ReadError(); readErr != nil {
		return readErr
	}
	if err != nil {
		return err
	}
	b.frame.EVM().StateDB.Finalise(b.frame.Fork())
	if err := b.frame.ReadError(); err != nil {
		return err
	}
	b.receipts = append(b.receipts, b.receipt(tx, index, done))
	return nil
}

func (b *Block) execute(tx *Transaction, index int) (executed, error) {
	var done executed
	var err error
	switch {
	case b.closed:
		err = errClosed
	case index == 0 && tx.deposit == nil:
		err = errNoAttributes
	case tx.deposit != nil:
		done, err = b.deposit(tx.deposit, index)
	case tx.signed != nil:
		done, err = b.signed(tx, index)
	case b.announced == nil || b.announced.hash != tx.hash:
		err = errNotAnnounced
	default:
		b.closed = true
		done = executed{to: new(chain.Address), price: new(uint256.Int)}
		err = b.checkClosed()
	}
	if err == nil {
		return done, nil
	}
	what := fmt.Sprintf("transaction %d (%s)", index, tx.hash)
	if errors.Is(err, evm.ErrUnsupported) {
		return executed{}, fmt.Errorf("%s: %w", what, err)
	}
	return executed{}, b.invalid(what, err)
}

// deposit executes a deposit. Its gas was paid for on the chain below, so that it
// is executed at no price, and it is part of the block even where it could not be
// executed at all; what it mints stays, and it uses a nonce.
func (b *Block) deposit(d *Deposit, index int) (executed, error) {
	if d.System {
		return executed{}, errSystem
	}
	if b.refunds.of(index) != 0 {
		return executed{}, errRefund
	}
	if index == 0 && active(b.rules.config.Forks.Jovian, b.header.Time) {
		if err := b.footprint.begin(d.Data); err != nil {
			return executed{}, err
		}
	}
	machine, gas := b.frame.EVM(), b.frame.Gas()
	state := machine.StateDB
	done := executed{from: d.From, to: d.To, nonce: state.GetNonce(d.From), price: new(uint256.Int)}
	if d.Mint != nil {
		state.AddBalance(d.From, d.Mint, tracing.BalanceChangeUnspecified)
	}
	snapshot, pool := state.Snapshot(), gas.Snapshot()

	message := &core.Message{
		From: d.From, To: d.To, Value: d.Value, GasLimit: d.Gas, Data: d.Data,
		GasPrice: new(uint256.Int), GasFeeCap: new(uint256.Int), GasTipCap: new(uint256.Int),
	}
	message.SkipNonceCheck().SkipEOACheck().SkipGasLimitCapCheck()
	// Only for this message: a signed transaction must not do without a fee.
	machine.Config.NoBaseFee = true
	result, err := core.ApplyMessage(machine, message, gas)
	machine.Config.NoBaseFee = false
	if err == nil {
		done.gasUsed, done.failed = result.UsedGas, result.Failed()
		return done, nil
	}
	state.RevertToSnapshot(snapshot)
	state.SetNonce(d.From, done.nonce+1, tracing.NonceChangeEoACall)
	gas.Set(pool)
	if err := gas.CheckGasLegacy(d.Gas); err != nil {
		return executed{}, err
	}
	done.gasUsed, done.failed = d.Gas, true
	return done, nil
}

// signed executes a transaction that pays for itself. What it pays beside gas is
// taken before, so that contracts see the balance without it.
func (b *Block) signed(tx *Transaction, index int) (executed, error) {
	switch {
	case tx.signed.Type() == types.BlobTxType:
		return executed{}, errBlob
	case b.footprint.none:
		return executed{}, errActivation
	}
	message, err := core.TransactionToMessage(tx.signed, b.signer, b.header.BaseFee)
	if err != nil {
		return executed{}, err
	}
	done := executed{from: message.From, to: message.To, nonce: message.Nonce, price: message.GasPrice}
	state := b.frame.EVM().StateDB
	if b.fees == nil {
		b.fees = b.rules.feesAt(state, b.header.Time)
	}
	size := estimatedSize(tx.raw)
	data, overflow := uint256.FromBig(b.fees.data(tx.raw, size))
	if overflow {
		return executed{}, errFees
	}
	operator := b.fees.forOperator(message.GasLimit)
	charge, overflow := new(uint256.Int).AddOverflow(data, operator)
	if overflow {
		return executed{}, errFees
	}
	if have := state.GetBalance(message.From); have.Lt(charge) {
		return executed{}, fmt.Errorf("%w: address %s have %s want %s", core.ErrInsufficientFunds, message.From, have, charge)
	}
	state.SubBalance(message.From, charge, tracing.BalanceDecreaseGasBuy)
	result, err := core.ApplyMessage(b.frame.EVM(), message, b.frame.Gas())
	if err != nil {
		return executed{}, err
	}
	done.failed = result.Failed()
	if done.gasUsed, err = b.refund(message, result.UsedGas, index); err != nil {
		return executed{}, err
	}
	b.distribute(message.From, done.gasUsed, data, operator)
	b.footprint.add(size)
	return done, nil
}

// distribute puts into the vaults what a transaction has paid beside the
// sequencer's part, and gives back what the operator's fee came out lower.
func (b *Block) distribute(from chain.Address, gasUsed uint64, data, operatorMost *uint256.Int) {
	state := b.frame.EVM().StateDB
	base := uint256.MustFromBig(b.header.BaseFee)
	state.AddBalance(baseFeeVault, base.Mul(base, uint256.NewInt(gasUsed)), tracing.BalanceIncreaseRewardTransactionFee)
	state.AddBalance(l1FeeVault, data, tracing.BalanceIncreaseRewardTransactionFee)
	if b.fees.operator == noOperatorFee {
		return
	}
	operator := b.fees.forOperator(gasUsed)
	state.AddBalance(from, new(uint256.Int).Sub(operatorMost, operator), tracing.BalanceIncreaseGasReturn)
	state.AddBalance(operatorFeeVault, operator, tracing.BalanceIncreaseRewardTransactionFee)
}

// refund gives gas back that the sequencer says a transaction need not pay for,
// and returns what it has used then. The sequencer's part is taken from where
// the EVM has put it already; the vaults get theirs afterwards.
func (b *Block) refund(message *core.Message, gasUsed uint64, index int) (uint64, error) {
	gas := b.refunds.of(index)
	if gas == 0 {
		return gasUsed, nil
	}
	state, coinbase := b.frame.EVM().StateDB, b.header.Coinbase
	tip := new(uint256.Int).Sub(message.GasPrice, uint256.MustFromBig(b.header.BaseFee))
	tip.Mul(tip, uint256.NewInt(gas))
	if gas > gasUsed || state.GetBalance(coinbase).Lt(tip) {
		return 0, errRefund
	}
	if err := b.frame.Gas().ChargeGasLegacy(gas, 0); err != nil {
		return 0, err
	}
	state.SubBalance(coinbase, tip, tracing.BalanceChangeUnspecified)
	back := new(uint256.Int).Mul(message.GasPrice, uint256.NewInt(gas))
	state.AddBalance(message.From, back, tracing.BalanceIncreaseGasReturn)
	return gasUsed - gas, nil
}

func (b *Block) receipt(tx *Transaction, index int, done executed) *Receipt {
	common := &types.Receipt{
		Type:              tx.Type(),
		Status:            types.ReceiptStatusSuccessful,
		CumulativeGasUsed: b.frame.Gas().Used(),
		TxHash:            tx.hash,
		GasUsed:           done.gasUsed,
		EffectiveGasPrice: done.price.ToBig(),
		Logs:              b.frame.Logs(tx.hash),
		BlockHash:         b.frame.Ref().Hash,
		BlockNumber:       b.header.Number,
		TransactionIndex:  uint(index),
	}
	if done.failed {
		common.Status = types.ReceiptStatusFailed
	}
	if done.to == nil {
		common.ContractAddress = crypto.CreateAddress(done.from, done.nonce)
	}
	common.Bloom = types.CreateBloom(common)
	receipt := &Receipt{Common: common}
	if tx.deposit != nil {
		receipt.DepositNonce = &done.nonce
		if active(b.rules.config.Forks.Canyon, b.header.Time) {
			version := uint64(depositVersion)
			receipt.DepositVersion = &version
		}
	}
	return receipt
}
