// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
	"glimpse/jsonrpc"
)

var errTwoInputs = errors.New(`both "data" and "input" are set and not equal`)

// maxBlobHashes bounds a list that no transaction comes near.
const maxBlobHashes = 1024

// parseMessage reads a transaction object. Members that it does not know are
// left alone, as other nodes do: clients send what they have, such as a type.
func parseMessage(v jsonrpc.Value, chainID uint64) (m ethereum.CallMsg, err error) {
	var data, input *[]byte
	var id *big.Int
	bad := v.Members(func(name []byte, value jsonrpc.Value) *jsonrpc.Error {
		switch string(name) {
		case "data":
			return assign(&data, name, value, pointer(parseData))
		case "input":
			return assign(&input, name, value, pointer(parseData))
		case "chainId":
			return assign(&id, name, value, parseBig)
		}
		return setMember(&m, name, value)
	})
	switch {
	case bad != nil:
		return m, errors.New(bad.Message)
	case data != nil && input != nil && !bytes.Equal(*data, *input):
		return m, errTwoInputs
	case id != nil && id.Cmp(new(big.Int).SetUint64(chainID)) != 0:
		return m, fmt.Errorf("chainId does not match node's (have=%v, want=%d)", id, chainID)
	case input != nil:
		m.Data = *input
	case data != nil:
		m.Data = *data
	}
	return m, nil
}

func setMember(m *ethereum.CallMsg, name []byte, value jsonrpc.Value) *jsonrpc.Error {
	var unused uint64
	switch string(name) {
	case "from":
		return assign(&m.From, name, value, parseAddress)
	case "to":
		return assign(&m.To, name, value, pointer(parseAddress))
	case "gas":
		return assign(&m.Gas, name, value, parseUint64)
	case "gasPrice":
		return assign(&m.GasPrice, name, value, parseBig)
	case "maxFeePerGas":
		return assign(&m.GasFeeCap, name, value, parseBig)
	case "maxPriorityFeePerGas":
		return assign(&m.GasTipCap, name, value, parseBig)
	case "value":
		return assign(&m.Value, name, value, parseBig)
	case "nonce": // the EVM goes by the state's
		return assign(&unused, name, value, parseUint64)
	case "accessList":
		return assign(&m.AccessList, name, value, parseAs[types.AccessList])
	case "maxFeePerBlobGas":
		return assign(&m.BlobGasFeeCap, name, value, parseBig)
	case "blobVersionedHashes":
		return assign(&m.BlobHashes, name, value, list(maxBlobHashes, parseHash))
	case "authorizationList":
		return assign(&m.AuthorizationList, name, value, parseAs[[]types.SetCodeAuthorization])
	}
	return nil
}

// parseAs reads a member that go-ethereum has a JSON form for. It does not tell
// what is wrong: that text names Go types.
func parseAs[T any](v jsonrpc.Value) (value T, why string) {
	if err := json.Unmarshal(v, &value); err != nil {
		return value, "malformed"
	}
	return value, ""
}

// blockOverrides are what a caller wants to be different in the block of a
// call. Nil is as it is.
type blockOverrides struct {
	number, difficulty, baseFee, blobBaseFee *big.Int
	time, gasLimit                           *uint64
	coinbase                                 *chain.Address
	random                                   *chain.Hash
}

func (a *arguments) blockOverrides() (o blockOverrides) {
	v, given := a.next()
	if !given {
		return o
	}
	bad := v.Members(func(name []byte, value jsonrpc.Value) *jsonrpc.Error {
		switch string(name) {
		case "number":
			return assign(&o.number, name, value, parseBig)
		case "difficulty":
			return assign(&o.difficulty, name, value, parseBig)
		case "time":
			return assign(&o.time, name, value, pointer(parseUint64))
		case "gasLimit":
			return assign(&o.gasLimit, name, value, pointer(parseUint64))
		case "feeRecipient":
			return assign(&o.coinbase, name, value, pointer(parseAddress))
		case "prevRandao":
			return assign(&o.random, name, value, pointer(parseHash))
		case "baseFeePerGas":
			return assign(&o.baseFee, name, value, parseBig)
		case "blobBaseFee":
			return assign(&o.blobBaseFee, name, value, parseBig)
		}
		return jsonrpc.InvalidParams("block override %q is not supported", clip(name))
	})
	if bad == nil && o.number != nil && !o.number.IsUint64() {
		bad = jsonrpc.InvalidParams("invalid member \"number\": number of more than 64 bits")
	}
	if bad != nil {
		a.refuse("block overrides", bad.Message)
	}
	return o
}

// apply changes the header of a scene, which gets one of its own.
func (o blockOverrides) apply(s *Scene) {
	h := types.CopyHeader(s.Header)
	if o.number != nil {
		h.Number = o.number
	}
	if o.difficulty != nil && h.Difficulty.Sign() != 0 { // after the merge it has no meaning
		h.Difficulty = o.difficulty
	}
	if o.time != nil {
		h.Time = *o.time
	}
	if o.gasLimit != nil {
		h.GasLimit = *o.gasLimit
	}
	if o.coinbase != nil {
		h.Coinbase = *o.coinbase
	}
	if o.random != nil {
		h.MixDigest = *o.random
	}
	if o.baseFee != nil {
		h.BaseFee = o.baseFee
	}
	s.Header, s.BlobBaseFee = h, o.blobBaseFee
}
