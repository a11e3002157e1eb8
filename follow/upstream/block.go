// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"

	"glimpse/chain"
)

// A Block is a block whose parts are what its hash commits to.
type Block struct {
	chain.Ref
	Header       *types.Header
	Transactions []Transaction
	Uncles       []*types.Header

	// Withdrawals is nil where the header commits to none. On OP-Stack chains it
	// is empty, and the header's root is about something else.
	Withdrawals types.Withdrawals

	Upstream string // where it is from
}

// A Transaction is one of a Block.
type Transaction struct {
	Raw  []byte // the EIP-2718 form, which the transactions root is made of
	Hash chain.Hash

	// Known is nil for types that go-ethereum does not know, such as the
	// deposits of OP-Stack chains.
	Known *types.Transaction
}

// Ethereum returns the block in go-ethereum's form. A transaction of a type
// that it does not know is an error.
func (b *Block) Ethereum() (*types.Block, error) {
	body := types.Body{Uncles: b.Uncles, Withdrawals: b.Withdrawals}
	for i, tx := range b.Transactions {
		if tx.Known == nil {
			return nil, fmt.Errorf("transaction %d of block %s has the unknown type %#x", i, b.Ref, tx.Raw[0])
		}
		body.Transactions = append(body.Transactions, tx.Known)
	}
	return types.NewBlockWithHeader(b.Header).WithBody(body), nil
}

// depositType is the transaction type of OP-Stack deposits.
const depositType = 0x7e

// opStack reports whether this is a block of an OP-Stack chain: all but their
// genesis begin with a deposit, and no other block has one.
func (b *Block) opStack() bool {
	return len(b.Transactions) > 0 && b.Transactions[0].Raw[0] == depositType
}

// BlockByHash fetches a block. It is refused where anything in it is not what
// the hash commits to.
func (p *Pool) BlockByHash(ctx context.Context, hash chain.Hash) (*Block, error) {
	return p.block(ctx, chain.ByHash(hash))
}

// BlockByNumber fetches the canonical block of a height. That it is the
// canonical one is the upstream's word.
func (p *Pool) BlockByNumber(ctx context.Context, n chain.Number) (*Block, error) {
	return p.block(ctx, chain.ByNumber(n))
}

func (p *Pool) block(ctx context.Context, which chain.Selector) (b *Block, err error) {
	err = p.on(ctx, nil, func(ctx context.Context, e *endpoint) (err error) {
		b, err = e.block(ctx, which)
		return err
	})
	return b, err
}

func (e *endpoint) block(ctx context.Context, which chain.Selector) (*Block, error) {
	b, err := e.fetchBlock(ctx, which)
	if err != nil {
		return nil, err
	}
	b.Upstream = e.name
	if err := b.verify(which); err != nil {
		return nil, &LieError{Upstream: e.name, Block: b.Ref, What: err.Error()}
	}
	return b, nil
}

// fetchBlock prefers the raw block, which needs no re-encoding. A node may take
// that by number alone; that the hash is right is looked at afterwards.
func (e *endpoint) fetchBlock(ctx context.Context, which chain.Selector) (*Block, error) {
	if can := e.snapshot().can; can != nil && can.RawBlocks {
		b, err := e.rawBlock(ctx, which)
		var rpc *RPCError
		if !errors.As(err, &rpc) {
			return b, err
		}
	}
	return e.jsonBlock(ctx, which)
}

func (e *endpoint) rawBlock(ctx context.Context, which chain.Selector) (*Block, error) {
	result, err := e.call(ctx, "debug_getRawBlock", which.String())
	if err != nil {
		return nil, notFound(err)
	}
	var raw hexutil.Bytes
	if err := json.Unmarshal(result, &raw); err != nil {
		return nil, e.fail("debug_getRawBlock", fmt.Errorf("%w: %w", errMalformed, err))
	}
	b, err := decodeBlock(raw)
	if err != nil {
		return nil, e.fail("debug_getRawBlock", fmt.Errorf("%w: %w", errMalformed, err))
	}
	return b, nil
}

// notFound turns the null that a question for a block is answered with into
// the error for it.
func notFound(err error) error {
	if errors.Is(err, errNull) {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return err
}

// decodeBlock reads a block in RLP without knowing its transactions' types.
func decodeBlock(raw []byte) (*Block, error) {
	var parts struct {
		Header       *types.Header
		Transactions []rlp.RawValue
		Uncles       []*types.Header
		Rest         []rlp.RawValue `rlp:"tail"` // withdrawals, then what forks to come bring
	}
	if err := rlp.DecodeBytes(raw, &parts); err != nil {
		return nil, err
	}
	b := &Block{Header: parts.Header, Uncles: parts.Uncles}
	if len(parts.Rest) > 0 {
		if err := rlp.DecodeBytes(parts.Rest[0], &b.Withdrawals); err != nil {
			return nil, fmt.Errorf("withdrawals: %w", err)
		}
	}
	for i, item := range parts.Transactions {
		kind, content, _, err := rlp.Split(item)
		if err != nil {
			return nil, fmt.Errorf("transaction %d: %w", i, err)
		}
		encoded := []byte(item)
		if kind != rlp.List {
			encoded = content
		}
		tx, err := newTransaction(encoded)
		if err != nil {
			return nil, fmt.Errorf("transaction %d: %w", i, err)
		}
		b.Transactions = append(b.Transactions, tx)
	}
	return b, nil
}

// newTransaction reads the EIP-2718 form as far as it is known.
func newTransaction(raw []byte) (Transaction, error) {
	if len(raw) == 0 {
		return Transaction{}, errors.New("empty")
	}
	tx := Transaction{Raw: raw, Hash: crypto.Keccak256Hash(raw)}
	known := new(types.Transaction)
	err := known.UnmarshalBinary(raw)
	switch {
	case errors.Is(err, types.ErrTxTypeNotSupported):
		return tx, nil
	case err != nil:
		return Transaction{}, err
	}
	tx.Known = known
	return tx, nil
}

// verify compares all parts with what commits to them. It sets the Ref.
func (b *Block) verify(which chain.Selector) error {
	h := b.Header
	if h == nil || h.Number == nil || !h.Number.IsUint64() || chain.Number(h.Number.Uint64()) > chain.MaxNumber {
		return errors.New("the header has no number")
	}
	b.Ref = chain.Ref{Number: chain.Number(h.Number.Uint64()), Hash: h.Hash()}
	if hash, ok := which.Hash(); ok && hash != b.Hash {
		return fmt.Errorf("the header has hash %s, asked for %s", b.Hash, hash)
	}
	if n, ok := which.Number(); ok && n != b.Number {
		return fmt.Errorf("the header has number %d, asked for %d", b.Number, n)
	}
	if root := types.DeriveSha(b.rawTransactions(), trie.NewStackTrie(nil)); root != h.TxHash {
		return fmt.Errorf("the transactions have root %s, want %s", root, h.TxHash)
	}
	if hash := types.CalcUncleHash(b.Uncles); hash != h.UncleHash {
		return fmt.Errorf("the uncles have hash %s, want %s", hash, h.UncleHash)
	}
	return b.verifyWithdrawals()
}

func (b *Block) verifyWithdrawals() error {
	want := b.Header.WithdrawalsHash
	switch {
	case want == nil && len(b.Withdrawals) > 0:
		return errors.New("withdrawals that the header does not commit to")
	case want == nil:
		b.Withdrawals = nil
		return nil
	case b.opStack() && len(b.Withdrawals) == 0:
		// From Isthmus on the header has the storage root of the contract that
		// sends messages to the other layer in this place.
	default:
		if root := types.DeriveSha(b.Withdrawals, trie.NewStackTrie(nil)); root != *want {
			return fmt.Errorf("the withdrawals have root %s, want %s", root, *want)
		}
	}
	if b.Withdrawals == nil {
		b.Withdrawals = types.Withdrawals{}
	}
	return nil
}

// rawList is what a root is derived from.
type rawList [][]byte

func (l rawList) Len() int                           { return len(l) }
func (l rawList) EncodeIndex(i int, w *bytes.Buffer) { w.Write(l[i]) }

func (b *Block) rawTransactions() rawList {
	list := make(rawList, len(b.Transactions))
	for i, tx := range b.Transactions {
		list[i] = tx.Raw
	}
	return list
}
