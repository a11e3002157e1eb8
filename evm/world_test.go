// SPDX-License-Identifier: Apache-2.0

package evm_test

import (
	"crypto/ecdsa"
	"fmt"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"

	"glimpse/chain"
	"glimpse/evm"
	"glimpse/internal/chaingen"
	"glimpse/internal/memview"
)

// A world is a state with a few contracts, on which single blocks are executed.
type world struct {
	t      *testing.T
	rules  *evm.Rules
	state  *memview.State
	header *types.Header
	secret *ecdsa.PrivateKey
	nonce  uint64
}

var (
	mortal  = chain.Address{0xaa}
	factory = chain.Address{0xbb}
	brief   = chain.Address{0xbc}
	failing = chain.Address{0xcc}
	empty   = chain.Address{0xdd}
	hashes  = chain.Address{0xee}

	// store writes the pairs of slot and value in the call data.
	store = `0 next: CALLDATASIZE DUP2 LT ISZERO @done JUMPI
		DUP1 32 ADD CALLDATALOAD DUP2 CALLDATALOAD SSTORE
		64 ADD @next JUMP done: `

	// A mortal is destroyed when it is called without data.
	mortalCode = chaingen.Assemble(`CALLDATASIZE ISZERO @die JUMPI ` + store + ` STOP die: 0 SELFDESTRUCT`)
	childInit  = chaingen.Deployer(`7 1 SSTORE`, mortalCode)
	child      = crypto.CreateAddress2(factory, chain.Hash{}, crypto.Keccak256(childInit))
	briefChild = crypto.CreateAddress2(brief, chain.Hash{}, crypto.Keccak256(childInit))

	// create makes a contract of the call data.
	create = `CALLDATASIZE 0 0 CALLDATACOPY 0 CALLDATASIZE 0 0 CREATE2 `
)

func newWorld(t *testing.T, config params.ChainConfig) *world {
	t.Helper()
	rules, err := evm.NewRules(&config)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := crypto.ToECDSA(crypto.Keccak256([]byte("sender")))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, rules: rules, state: memview.New(), secret: secret}
	w.header = &types.Header{Number: big.NewInt(300), Time: 1000, GasLimit: 30_000_000, Difficulty: new(big.Int), BaseFee: big.NewInt(7), Coinbase: chain.Address{1}}
	if config.CancunTime != nil {
		w.header.ExcessBlobGas, w.header.BlobGasUsed, w.header.ParentBeaconRoot = new(uint64), new(uint64), new(chain.Hash)
	}
	rich := chain.Account{Exists: true, Balance: *uint256.NewInt(1e18)}
	w.put(crypto.PubkeyToAddress(secret.PublicKey), rich, nil, nil)
	contract := chain.Account{Exists: true, Nonce: 1}
	w.put(mortal, contract, mortalCode, []chain.SlotDiff{{Slot: word(1), Value: word(7)}, {Slot: word(9), Value: word(9)}})
	w.put(factory, contract, chaingen.Assemble(create+`STOP`), nil)
	w.put(brief, contract, chaingen.Assemble(create+`0 0 0 0 0 DUP6 200000 CALL STOP`), nil)
	w.put(failing, contract, chaingen.Assemble(store+`0 0 REVERT`), nil)
	w.put(hashes, contract, chaingen.Assemble(`0 CALLDATALOAD BLOCKHASH 0 SSTORE STOP`), nil)
	w.put(empty, chain.Account{Exists: true}, nil, nil)
	if config.PragueTime != nil {
		w.put(params.WithdrawalQueueAddress, contract, params.WithdrawalQueueCode, nil)
		w.put(params.ConsolidationQueueAddress, contract, params.ConsolidationQueueCode, nil)
	}
	return w
}

func (w *world) put(addr chain.Address, account chain.Account, code []byte, slots []chain.SlotDiff) {
	w.t.Helper()
	d := &chain.Diff{Accounts: []chain.AccountDiff{{Address: addr, Changed: true, Account: account, Slots: slots}}}
	if len(code) > 0 {
		d.Codes = []chain.Code{chain.NewCode(code)}
		d.Accounts[0].Account.CodeHash = d.Codes[0].Hash
	}
	if err := w.state.Apply(d); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) call(to chain.Address, data ...byte) *types.Transaction {
	return w.sign(&types.LegacyTx{To: &to, Data: data, Gas: 1_000_000, GasPrice: big.NewInt(10), Nonce: w.nonce})
}

// delegate lets the sender use the code of target.
func (w *world) delegate(target chain.Address) *types.Transaction {
	w.t.Helper()
	auth, err := types.SignSetCode(w.secret, types.SetCodeAuthorization{Address: target, Nonce: w.nonce + 1})
	if err != nil {
		w.t.Fatal(err)
	}
	tx := w.sign(&types.SetCodeTx{
		ChainID: uint256.MustFromBig(w.rules.Config().ChainID), Nonce: w.nonce, To: chain.Address{0x77}, Gas: 1_000_000,
		GasFeeCap: uint256.NewInt(10), GasTipCap: uint256.NewInt(1), AuthList: []types.SetCodeAuthorization{auth},
	})
	w.nonce++
	return tx
}

func (w *world) sign(data types.TxData) *types.Transaction {
	w.t.Helper()
	w.nonce++
	tx, err := types.SignNewTx(w.secret, w.rules.Signer(w.header), data)
	if err != nil {
		w.t.Fatal(err)
	}
	return tx
}

func (w *world) begin() *evm.Block {
	w.t.Helper()
	b, err := w.rules.Begin(w.header, w.state, func(n chain.Number) (chain.Hash, error) { return word(uint64(n)), nil })
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// run executes a block and returns the Diffs of its transactions and of all of
// it, with withdrawals and requests, and moves the state on.
func (w *world) run(txs ...*types.Transaction) (parts []*chain.Diff, whole *chain.Diff) {
	w.t.Helper()
	b := w.begin()
	for _, tx := range txs {
		d, _, err := b.Apply([]*types.Transaction{tx})
		if err != nil {
			w.t.Fatal(err)
		}
		parts = append(parts, d)
	}
	if _, _, err := b.Finish(new(types.Body)); err != nil {
		w.t.Fatal(err)
	}
	whole, err := b.Diff()
	if err == nil {
		err = w.state.Apply(whole)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return parts, whole
}

func pair(slot, value uint64) []byte {
	s, v := word(slot), word(value)
	return append(s[:], v[:]...)
}

// describe says in a line what a Diff does to an account.
func describe(d *chain.Diff, addr chain.Address) string {
	for _, a := range d.Accounts {
		if a.Address != addr {
			continue
		}
		text := ""
		if a.Changed && a.Account.Exists {
			text += "changed "
		} else if a.Changed {
			text += "gone "
		}
		if a.Wiped {
			text += "wiped "
		}
		for _, s := range a.Slots {
			text += fmt.Sprintf("%d=%d ", s.Slot.Big(), s.Value.Big())
		}
		return text[:len(text)-1]
	}
	return "untouched"
}

func at(time uint64) *uint64 { return &time }

// shanghai destroys contracts, cancun only those that are new.
func shanghai() params.ChainConfig {
	c := *params.MergedTestChainConfig
	c.CancunTime, c.PragueTime, c.OsakaTime, c.BPO1Time, c.BPO2Time, c.AmsterdamTime = nil, nil, nil, nil, nil, nil
	c.BPO3Time, c.BPO4Time, c.BPO5Time, c.BogotaTime, c.UBTTime = nil, nil, nil, nil, nil
	return c
}

func cancun() params.ChainConfig {
	c := shanghai()
	c.CancunTime = at(0)
	return c
}

func prague() params.ChainConfig {
	c := cancun()
	c.PragueTime = at(0)
	return c
}
