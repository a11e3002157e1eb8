// SPDX-License-Identifier: Apache-2.0

package devchain

import (
	"crypto/ecdsa"
	"fmt"

	"github.com/ethereum/go-ethereum/crypto"

	"glimpse/chain"
)

// Mnemonic is where the keys of Accounts come from, at m/44'/60'/0'/0/0 to 9.
// Everybody knows them: they must never hold anything of value.
const Mnemonic = "test test test test test test test test test test test junk"

// secrets are written out rather than derived: deriving ten constants would
// need two more dependencies.
var secrets = [...]string{
	"ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
	"59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
	"5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
	"7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
	"47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
	"8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
	"92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
	"4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356",
	"dbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97",
	"2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6",
}

// An Account is one whose key everybody knows.
type Account struct {
	Address chain.Address
	Key     *ecdsa.PrivateKey
}

// Accounts returns the ten accounts of Mnemonic, in order.
func Accounts() []Account {
	accounts := make([]Account, len(secrets))
	for i, secret := range secrets {
		key, err := crypto.HexToECDSA(secret)
		if err != nil {
			panic(fmt.Sprintf("key %d: %v", i, err)) // a constant of this file
		}
		accounts[i] = Account{crypto.PubkeyToAddress(key.PublicKey), key}
	}
	return accounts
}
