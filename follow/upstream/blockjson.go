// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
)

// jsonBlock puts a block together from its JSON form. Transactions of types
// that cannot be re-encoded are fetched by their hash.
func (e *endpoint) jsonBlock(ctx context.Context, which chain.Selector) (*Block, error) {
	method := "eth_getBlockByNumber"
	if _, ok := which.Hash(); ok {
		method = "eth_getBlockByHash"
	}
	result, err := e.call(ctx, method, which.String(), true)
	if err != nil {
		return nil, notFound(err)
	}
	b, missing, err := decodeJSONBlock(result)
	var lie *LieError
	if errors.As(err, &lie) {
		lie.Upstream = e.name
		return nil, lie
	}
	if err != nil {
		return nil, e.fail(method, err)
	}
	if len(missing) == 0 {
		return b, nil
	}
	if can := e.snapshot().can; can == nil || !can.RawTransactions {
		i := missing[0]
		return nil, e.fail(method, fmt.Errorf("%w: transaction %d (%s) is of a type that needs eth_getRawTransactionByHash", ErrCannot, i, b.Transactions[i].Hash))
	}
	return b, e.fillTransactions(ctx, b, missing)
}

func (e *endpoint) fillTransactions(ctx context.Context, b *Block, missing []int) error {
	requests := make([]request, len(missing))
	for i, at := range missing {
		requests[i] = ask("eth_getRawTransactionByHash", b.Transactions[at].Hash)
	}
	results, err := e.results(ctx, requests)
	if err != nil {
		return notFound(err)
	}
	for i, at := range missing {
		var raw hexutil.Bytes
		err := json.Unmarshal(results[i], &raw)
		if err == nil {
			b.Transactions[at], err = newTransaction(raw)
		}
		if err != nil {
			return e.fail("eth_getRawTransactionByHash", fmt.Errorf("%w: %w", errMalformed, err))
		}
	}
	return nil
}

// decodeJSONBlock also returns which transactions could not be re-encoded; of
// those only the hash is set.
func decodeJSONBlock(raw json.RawMessage) (b *Block, missing []int, err error) {
	var parts struct {
		Hash         *chain.Hash       `json:"hash"`
		Transactions []json.RawMessage `json:"transactions"`
		Uncles       []chain.Hash      `json:"uncles"`
		Withdrawals  types.Withdrawals `json:"withdrawals"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, nil, fmt.Errorf("%w: block: %w", errMalformed, err)
	}
	header := new(types.Header)
	if err := json.Unmarshal(raw, header); err != nil {
		return nil, nil, fmt.Errorf("%w: header: %w", errMalformed, err)
	}
	if parts.Hash == nil {
		return nil, nil, fmt.Errorf("%w: block without a hash", errMalformed)
	}
	if len(parts.Uncles) > 0 {
		return nil, nil, fmt.Errorf("%w: a block with uncles is read by debug_getRawBlock only", ErrCannot)
	}
	if hash := header.Hash(); hash != *parts.Hash {
		return nil, nil, &LieError{
			Block: chain.Ref{Number: chain.Number(header.Number.Uint64()), Hash: *parts.Hash},
			What:  fmt.Sprintf("the fields of the header have hash %s: one is wrong, or of a fork that is not known", hash),
		}
	}
	b = &Block{Header: header, Withdrawals: parts.Withdrawals}
	for i, text := range parts.Transactions {
		tx, err := decodeJSONTransaction(text)
		if errors.Is(err, types.ErrTxTypeNotSupported) {
			missing = append(missing, i)
		} else if err != nil {
			return nil, nil, fmt.Errorf("%w: transaction %d: %w", errMalformed, i, err)
		}
		b.Transactions = append(b.Transactions, tx)
	}
	return b, missing, nil
}

// decodeJSONTransaction re-encodes a transaction. types.ErrTxTypeNotSupported
// comes together with its hash.
func decodeJSONTransaction(text json.RawMessage) (Transaction, error) {
	var name struct {
		Hash *chain.Hash     `json:"hash"`
		Type *hexutil.Uint64 `json:"type"`
	}
	if err := json.Unmarshal(text, &name); err != nil {
		return Transaction{}, err
	}
	if name.Hash == nil {
		return Transaction{}, errors.New("without a hash")
	}
	unknown := Transaction{Hash: *name.Hash}
	var raw []byte
	var err error
	if name.Type != nil && *name.Type == depositType {
		raw, err = encodeDeposit(text)
	} else {
		known := new(types.Transaction)
		if err := known.UnmarshalJSON(text); err != nil {
			// Other nodes write fields that go-ethereum needs in other ways;
			// the raw form says it all.
			return unknown, types.ErrTxTypeNotSupported
		}
		raw, err = known.MarshalBinary()
	}
	if err != nil {
		return Transaction{}, err
	}
	tx, err := newTransaction(raw)
	if err != nil {
		return Transaction{}, err
	}
	if tx.Hash != *name.Hash {
		return unknown, types.ErrTxTypeNotSupported // it holds something that the re-encoding missed
	}
	return tx, nil
}
