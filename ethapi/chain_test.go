// SPDX-License-Identifier: Apache-2.0

package ethapi_test

import (
	"context"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"

	"glimpse/chain"
	"glimpse/ethapi"
)

// fakeConfig has the forks up to Shanghai, so that a header needs little.
func fakeConfig() *params.ChainConfig {
	c := *params.MergedTestChainConfig
	c.ChainID = big.NewInt(31337)
	c.CancunTime, c.PragueTime, c.OsakaTime, c.BPO1Time, c.BPO2Time, c.AmsterdamTime = nil, nil, nil, nil, nil, nil
	c.BPO3Time, c.BPO4Time, c.BPO5Time, c.BogotaTime, c.UBTTime = nil, nil, nil, nil, nil
	return &c
}

// Of every block with an odd number all transactions are plain; the others emit
// logs, with the number of the block and of the transaction as topics.
var (
	emitter = chain.Address{19: 0xee}
	emitted = chain.Hash{31: 0xe0}
)

func topic(n int) chain.Hash { return chain.Hash{31: byte(n)} }

// fakeTransactions are two in each of the blocks 1 to 5, with tips of 100 times
// the block's number, and a wei more.
func fakeTransactions(n chain.Number) (txs []*types.Transaction) {
	if n == 0 || n > 5 {
		return nil
	}
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("sender")))
	if err != nil {
		panic(err) // the key is a constant
	}
	for i := range int64(2) {
		tx, err := types.SignNewTx(key, types.LatestSignerForChainID(big.NewInt(31337)), &types.DynamicFeeTx{
			ChainID: big.NewInt(31337), Nonce: 2*uint64(n) + uint64(i), To: &emitter, Gas: 50_000,
			GasTipCap: big.NewInt(100*int64(n) + i), GasFeeCap: big.NewInt(1_000_000),
		})
		if err != nil {
			panic(err)
		}
		txs = append(txs, tx)
	}
	return txs
}

func fakeReceipts(n chain.Number) (receipts types.Receipts) {
	for i, tx := range fakeTransactions(n) {
		r := &types.Receipt{Type: tx.Type(), Status: 1, CumulativeGasUsed: 30_000 * uint64(i+1)}
		if n%2 == 0 {
			r.Logs = []*types.Log{
				{Address: emitter, Topics: []chain.Hash{emitted, topic(int(n)), topic(i)}, Data: []byte{byte(n)}},
				{Address: emitter},
			}
		}
		r.Bloom = types.CreateBloom(r)
		receipts = append(receipts, r)
	}
	return receipts
}

func fakeHeader(n chain.Number) *types.Header {
	return &types.Header{
		Number: big.NewInt(int64(n)), Difficulty: new(big.Int), BaseFee: big.NewInt(1000),
		GasLimit: 120_000, GasUsed: 30_000 * uint64(len(fakeTransactions(n))), Time: 12 * uint64(n),
		Bloom: types.MergeBloom(fakeReceipts(n)), ParentHash: chain.Hash{30: 1, 31: byte(n)},
	}
}

func transactionParams(n chain.Number, index int) string {
	return fmt.Sprintf(`[%q]`, fakeTransactions(n)[index].Hash())
}

// fakeEVM answers with err, and keeps what it was asked.
type fakeEVM struct {
	err     error
	scene   ethapi.Scene
	message ethereum.CallMsg
	use     func(context.Context, ethapi.Scene) error // may be nil
}

func (e *fakeEVM) run(ctx context.Context, s ethapi.Scene, m ethereum.CallMsg) error {
	e.scene, e.message = s, m
	if e.use != nil {
		return e.use(ctx, s)
	}
	return e.err
}

func (e *fakeEVM) Call(ctx context.Context, s ethapi.Scene, m ethereum.CallMsg) ([]byte, error) {
	return []byte{0xab}, e.run(ctx, s, m)
}

func (e *fakeEVM) EstimateGas(ctx context.Context, s ethapi.Scene, m ethereum.CallMsg) (uint64, error) {
	return 21_000, e.run(ctx, s, m)
}

func (e *fakeEVM) AccessList(ctx context.Context, s ethapi.Scene, m ethereum.CallMsg) (types.AccessList, uint64, string, error) {
	return types.AccessList{}, 21_000, "out of gas", e.run(ctx, s, m)
}

func (e *fakeEVM) Precompiles(*types.Header) map[string]chain.Address {
	return map[string]chain.Address{"ID": {19: 4}}
}
