// SPDX-License-Identifier: Apache-2.0

package opstack_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/fnv"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/evm/opstack"
)

// A contract call on OP Mainnet, 0x8eb9dd4e…b594.
const contractCall = "02f901550a758302df1483be21b88304743f94f80e51afb613d764fa61751affd3313c190a86bb870151bd62fd12adb8e41ef24f3f" +
	"000000000000000000000000000000000000000000000000000000000000006e000000000000000000000000af88d065e77c8cc2239327c5edb3a4" +
	"32268e5831000000000000000000000000000000000000000000000000000000000003c1e50000000000000000000000000000000000000000000000" +
	"0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000a00000" +
	"0000000000000000000000000000000000000000000000000000000000148c89ed219d02f1a5be012c689b4f5b731827bebe000000000000000000" +
	"000000c001a033fd89cb37c31b2cba46b6466e040c61fc9b2a3675a7f5f493ebd5ad77c497f8a07cdf65680e238392693019b4092f610222e71b7c" +
	"ec06449cb922b93b6a12744e"

// leastTransaction is a legacy transaction without a signature.
func leastTransaction(t *testing.T) []byte {
	t.Helper()
	tx := types.NewTransaction(0, common.HexToAddress("095e7baea6a6c7c4c2dfeb977efac326af552d87"), new(big.Int), 0, new(big.Int), nil)
	raw, err := tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestFastLZSize(t *testing.T) {
	call, err := hex.DecodeString(contractCall)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		data []byte
		want int
	}{
		{"nothing", nil, 0},
		{"a byte", []byte{1}, 2},
		{"a thousand ones", bytes.Repeat([]byte{1}, 1000), 21},
		{"a thousand zeros", make([]byte, 1000), 21},
		{"the least transaction", leastTransaction(t), 31},
		{"a contract call", call, 202},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := opstack.FastLZSize(tt.data); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// TestFastLZSizesOfOpGeth compares 5000 sizes with those that op-geth's own
// function gives for the same data, by their sum and hash.
func TestFastLZSizesOfOpGeth(t *testing.T) {
	const wantSum, wantHash = 1037593, 7241938845156898969
	r, hash, sum := rand.New(rand.NewPCG(3, 4)), fnv.New64a(), 0
	for range 5000 {
		data := make([]byte, r.IntN(600))
		letters := 1 + r.Uint32N(9)
		for i := range data {
			data[i] = byte(r.Uint32N(letters))
		}
		size := opstack.FastLZSize(data)
		sum += size
		hash.Write(binary.BigEndian.AppendUint32(nil, uint32(size)))
	}
	if sum != wantSum || hash.Sum64() != wantHash {
		t.Errorf("got sum %d and hash %d, want %d and %d", sum, hash.Sum64(), wantSum, uint64(wantHash))
	}
}

func FuzzFastLZSize(f *testing.F) {
	f.Add([]byte("abcabcabcabcabcabcabcabc"))
	f.Add(make([]byte, 20))
	f.Fuzz(func(t *testing.T, data []byte) {
		// What does not compress takes one byte more in 32.
		if got, most := opstack.FastLZSize(data), len(data)+(len(data)+31)/32; got > most {
			t.Errorf("%d bytes take %d, more than as literals", len(data), got)
		}
	})
}

func TestFees(t *testing.T) {
	p := opstack.Prices{
		BaseFee: big.NewInt(1000e6), Overhead: big.NewInt(50), Scalar: big.NewInt(7e6),
		BlobBaseFee: big.NewInt(10e6), BaseFeeScalar: 2, BlobFeeScalar: 3,
		OperatorScalar: 1439103868, OperatorConstant: 1256417826609331460,
	}
	inBedrock, inEcotone, inFjord := p.DataFee(leastTransaction(t))
	before, inIsthmus, inJovian := p.OperatorFee(1618)
	for _, tt := range []struct {
		name      string
		got, want string
	}{
		{"data since Regolith", inBedrock.String(), "3710000000000"},
		{"data since Ecotone", inEcotone.String(), "960900"},
		{"data since Fjord, of the least size", inFjord.String(), "3203000"},
		{"the operator before Isthmus", before.Dec(), "0"},
		{"the operator since Isthmus", inIsthmus.Dec(), "1256417826611659930"},
		{"the operator since Jovian", inJovian.Dec(), "1256650673615173860"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.got != tt.want {
				t.Errorf("got %s, want %s", tt.got, tt.want)
			}
		})
	}
}

// The size of a transaction beyond the least follows its FastLZ size of 202:
// 836500*202-42585600 millionths of a byte.
func TestDataFeeGrowsWithTheCompressedSize(t *testing.T) {
	call, err := hex.DecodeString(contractCall)
	if err != nil {
		t.Fatal(err)
	}
	p := opstack.Prices{BaseFee: big.NewInt(1e6), BlobBaseFee: new(big.Int), BaseFeeScalar: 1e6, Overhead: new(big.Int), Scalar: new(big.Int)}
	if _, _, got := p.DataFee(call); got.Int64() != 16*(836500*202-42585600) {
		t.Errorf("got %s, want %d", got, 16*(836500*202-42585600))
	}
}
