// SPDX-License-Identifier: Apache-2.0

package opstack

import (
	"errors"
	"maps"

	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"

	"glimpse/chain"
)

var errInputTooLong = errors.New("precompile input longer than this chain allows")

// The precompiles that differ from Ethereum's.
var (
	bn256Pairing = chain.Address{19: 0x08}
	blsG1MSM     = chain.Address{19: 0x0c}
	blsG2MSM     = chain.Address{19: 0x0e}
	blsPairing   = chain.Address{19: 0x0f}
	p256Verify   = chain.Address{18: 0x01}
)

// p256GasBeforeKarst is what a P256 verification costs from Fjord, which had it
// before Ethereum did, until Karst.
const p256GasBeforeKarst = 3450

// A limited precompile fails on input that could not be proven on the chain
// below.
type limited struct {
	vm.PrecompiledContract
	most int
}

func (l limited) Run(input []byte) ([]byte, error) {
	if len(input) > l.most {
		return nil, errInputTooLong
	}
	return l.PrecompiledContract.Run(input)
}

// A priced precompile costs the same for any input.
type priced struct {
	vm.PrecompiledContract
	gas uint64
}

func (p priced) RequiredGas([]byte) uint64 { return p.gas }

// precompileTables are the sets that forks brought, latest first.
type precompileTables []precompileTable

type precompileTable struct {
	from  *uint64
	table vm.PrecompiledContracts
}

// at returns the set at a time, nil before Fjord: they are Ethereum's then.
func (p precompileTables) at(time uint64) vm.PrecompiledContracts {
	for _, set := range p {
		if active(set.from, time) {
			return set.table
		}
	}
	return nil
}

func precompileSets(forks *Forks) precompileTables {
	cancun := vm.ActivePrecompiledContracts(params.Rules{IsBerlin: true, IsCancun: true})
	prague := vm.ActivePrecompiledContracts(params.Rules{IsBerlin: true, IsCancun: true, IsPrague: true})
	osaka := vm.ActivePrecompiledContracts(params.Rules{IsBerlin: true, IsCancun: true, IsPrague: true, IsOsaka: true})

	p256 := priced{osaka[p256Verify], p256GasBeforeKarst}
	cancun[p256Verify], prague[p256Verify] = p256, p256
	granite := map[chain.Address]int{bn256Pairing: 112_687}
	isthmus := map[chain.Address]int{bn256Pairing: 112_687, blsG1MSM: 513_760, blsG2MSM: 488_448, blsPairing: 235_008}
	jovian := map[chain.Address]int{bn256Pairing: 81_984, blsG1MSM: 288_960, blsG2MSM: 278_784, blsPairing: 156_672}
	karst := maps.Clone(jovian)
	karst[bn256Pairing] = 57_600

	return precompileTables{
		{forks.Karst, limit(osaka, karst)},
		{forks.Jovian, limit(prague, jovian)},
		{forks.Isthmus, limit(prague, isthmus)},
		{forks.Granite, limit(cancun, granite)},
		{forks.Fjord, cancun},
	}
}

func limit(table vm.PrecompiledContracts, most map[chain.Address]int) vm.PrecompiledContracts {
	table = maps.Clone(table)
	for addr, n := range most {
		table[addr] = limited{table[addr], n}
	}
	return table
}
