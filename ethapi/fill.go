// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"

	"glimpse/chain"
	"glimpse/jsonrpc"
)

// An unsigned is a transaction object whose missing members are to be filled in.
type unsigned struct {
	ethereum.CallMsg
	nonce *uint64
}

// unsigned takes a transaction object.
func (a *arguments) unsigned(chainID uint64) (u unsigned) {
	v, given := a.required()
	if !given {
		return u
	}
	var err error
	if u.CallMsg, err = parseMessage(v, chainID); err == nil {
		bad := v.Members(func(name []byte, value jsonrpc.Value) *jsonrpc.Error {
			if string(name) == "nonce" {
				return assign(&u.nonce, name, value, pointer(parseUint64))
			}
			return nil
		})
		if bad != nil {
			err = errors.New(bad.Message)
		}
	}
	if err != nil {
		a.refuse("transaction", err.Error())
	}
	return u
}

func fillTransaction(s *session, dst []byte, args *arguments) ([]byte, error) {
	u := args.unsigned(s.api.config.ChainID)
	if err := args.done(); err != nil {
		return nil, err
	}
	inner, err := s.fill(u)
	if err != nil {
		return nil, err
	}
	tx := types.NewTx(inner)
	raw, err := tx.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("encode transaction: %w", err)
	}
	text, err := json.Marshal(tx)
	if err != nil {
		return nil, fmt.Errorf("render transaction: %w", err)
	}
	return appendJSON(dst, struct {
		Raw hexutil.Bytes   `json:"raw"`
		Tx  json.RawMessage `json:"tx"`
	}{raw, text})
}

func sendTransaction(s *session, dst []byte, args *arguments) ([]byte, error) {
	u := args.unsigned(s.api.config.ChainID)
	if err := args.done(); err != nil {
		return nil, err
	}
	inner, err := s.fill(u)
	if err != nil {
		return nil, err
	}
	tx, err := s.api.config.Sequencer.Sign(u.From, inner)
	if err != nil {
		return nil, err
	}
	return s.send(dst, tx)
}

// fill gives an unsigned transaction the nonce, fees and gas limit that it
// lacks, as of the pending block, and the type that its members ask for.
func (s *session) fill(u unsigned) (types.TxData, error) {
	nonce, err := s.nonceFor(u)
	if err != nil {
		return nil, err
	}
	if err := s.fillFees(&u); err != nil {
		return nil, err
	}
	if u.Gas == 0 {
		if u.Gas, err = s.gasFor(u.CallMsg); err != nil {
			return nil, err
		}
	}
	return u.inner(new(big.Int).SetUint64(s.api.config.ChainID), nonce)
}

func (s *session) nonceFor(u unsigned) (uint64, error) {
	if u.nonce != nil {
		return *u.nonce, nil
	}
	return s.api.config.Sequencer.NextNonce(s.ctx, u.From)
}

// fillFees leaves a legacy price as it is. Otherwise the cap covers a base fee
// that doubles.
func (s *session) fillFees(u *unsigned) error {
	if u.GasPrice != nil {
		if u.GasFeeCap != nil || u.GasTipCap != nil {
			return &Refusal{"both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified"}
		}
		return nil
	}
	head, err := s.blockOf(chain.Latest)
	if err != nil {
		return err
	}
	if u.GasTipCap == nil {
		if u.GasTipCap, err = s.suggestTip(head); err != nil {
			return err
		}
	}
	if u.GasFeeCap == nil {
		u.GasFeeCap = new(big.Int).Lsh(head.nextBaseFee(), 1)
		u.GasFeeCap.Add(u.GasFeeCap, u.GasTipCap)
	}
	if u.GasFeeCap.Cmp(u.GasTipCap) < 0 {
		return &Refusal{fmt.Sprintf("maxFeePerGas (%v) < maxPriorityFeePerGas (%v)", u.GasFeeCap, u.GasTipCap)}
	}
	return nil
}

func (s *session) gasFor(m ethereum.CallMsg) (uint64, error) {
	b, err := s.blockOf(chain.Pending)
	if err != nil {
		return 0, err
	}
	view, err := s.View(chain.Pending)
	if err != nil {
		return 0, err
	}
	ctx, done, err := s.costly()
	if err != nil {
		return 0, err
	}
	defer done()
	return s.api.config.EVM.EstimateGas(ctx, Scene{Header: b.header, Base: view, Ancestor: b.ancestor}, m)
}

// inner returns the transaction without a signature. Blobs cannot be filled in:
// they come with proofs that only their sender has.
func (u *unsigned) inner(chainID *big.Int, nonce uint64) (types.TxData, error) {
	value := u.Value
	if value == nil {
		value = new(big.Int)
	}
	switch {
	case len(u.BlobHashes) > 0 || u.BlobGasFeeCap != nil:
		return nil, &Refusal{"transactions with blobs are sent with eth_sendRawTransaction"}
	case len(u.AuthorizationList) > 0 && u.To == nil:
		return nil, &Refusal{"a transaction with authorizations needs a recipient"}
	case len(u.AuthorizationList) > 0:
		return &types.SetCodeTx{
			ChainID: uint256.MustFromBig(chainID), Nonce: nonce, To: *u.To, Value: uint256.MustFromBig(value), Gas: u.Gas,
			GasFeeCap: uint256.MustFromBig(u.GasFeeCap), GasTipCap: uint256.MustFromBig(u.GasTipCap),
			Data: u.Data, AccessList: u.AccessList, AuthList: u.AuthorizationList,
		}, nil
	case u.GasPrice == nil:
		return &types.DynamicFeeTx{
			ChainID: chainID, Nonce: nonce, To: u.To, Value: value, Gas: u.Gas,
			GasFeeCap: u.GasFeeCap, GasTipCap: u.GasTipCap, Data: u.Data, AccessList: u.AccessList,
		}, nil
	case u.AccessList != nil:
		return &types.AccessListTx{
			ChainID: chainID, Nonce: nonce, To: u.To, Value: value, Gas: u.Gas,
			GasPrice: u.GasPrice, Data: u.Data, AccessList: u.AccessList,
		}, nil
	}
	return &types.LegacyTx{Nonce: nonce, To: u.To, Value: value, Gas: u.Gas, GasPrice: u.GasPrice, Data: u.Data}, nil
}
