// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"glimpse/chain"
)

// Capabilities are what an upstream was seen to do. They are found by asking
// for it once, of its latest block.
type Capabilities struct {
	ChainID uint64
	Genesis chain.Hash
	Client  string          // its version, as it calls itself; empty where it does not say
	Config  json.RawMessage // the result of eth_config, nil where it has none

	// State is how far back it answers for state: StateAll, or the number of
	// blocks behind the head that were seen to work, of 1000, 128 and 0.
	State int

	HashParameter    bool // a block may be named by an EIP-1898 object with its hash
	RequireCanonical bool // and with requireCanonical
	RawBlocks        bool // debug_getRawBlock
	RawTransactions  bool // eth_getRawTransactionByHash
	Receipts         bool // eth_getBlockReceipts
	Proofs           bool // eth_getProof
	TraceByHash      bool // debug_traceBlockByHash with the prestate tracer in diff mode
	TraceByNumber    bool // debug_traceBlockByNumber, likewise
	AccessLists      bool // eth_getBlockAccessList
	Subscriptions    bool // eth_subscribe, over WebSocket
	Safe, Finalized  bool // the tags; some nodes learn them only later

	head Head
}

// StateAll is the depth of an archive node.
const StateAll = -1

// Traces reports whether there is a trace to be had in some way.
func (c *Capabilities) Traces() bool { return c.TraceByHash || c.TraceByNumber }

// probe finds out what an endpoint is and can do. An error means that it does
// not answer what every node answers.
func (e *endpoint) probe(ctx context.Context) (*Capabilities, error) {
	results, err := e.results(ctx, []request{
		ask("eth_chainId"),
		ask("eth_getBlockByNumber", "0x0", false),
		ask("eth_getBlockByNumber", "latest", false),
	})
	if err != nil {
		return nil, err
	}
	can := new(Capabilities)
	var id hexutil.Uint64
	if err := json.Unmarshal(results[0], &id); err != nil {
		return nil, e.fail("eth_chainId", fmt.Errorf("%w: %w", errMalformed, err))
	}
	can.ChainID = uint64(id)
	genesis, err := decodeHead(results[1])
	if err != nil {
		return nil, e.fail("eth_getBlockByNumber", err)
	}
	can.Genesis = genesis.Latest.Hash
	if can.head, err = decodeHead(results[2]); err != nil {
		return nil, e.fail("eth_getBlockByNumber", err)
	}
	can.head.Upstream = e.name
	if err := e.probeMethods(ctx, can); err != nil {
		return nil, err
	}
	if e.socket != nil {
		can.Subscriptions = e.probeSubscription(ctx)
	}
	return can, nil
}

// probeMethods asks for all that a node may lack. What is refused, it cannot do;
// only trouble on the way is an error.
func (e *endpoint) probeMethods(ctx context.Context, can *Capabilities) error {
	latest := can.head.Latest
	hash := map[string]any{"blockHash": latest.Hash}
	canonical := map[string]any{"blockHash": latest.Hash, "requireCanonical": true}
	back := func(n chain.Number) string { return hexNumber(latest.Number - min(n, latest.Number)) }
	depth := can.depthProbe()
	probes := []struct {
		request
		found func(answer)
	}{
		{ask("web3_clientVersion"), func(a answer) { _ = json.Unmarshal(a.result, &can.Client) }}, // a name is not needed
		{ask("eth_config"), func(a answer) { can.Config = a.result }},
		{storageAt(back(0)), depth(0)},
		{storageAt(back(128)), depth(128)},
		{storageAt(back(1000)), depth(1000)},
		{storageAt("0x0"), depth(StateAll)},
		{storageAt(hash), works(&can.HashParameter)},
		{storageAt(canonical), works(&can.RequireCanonical)},
		{ask("debug_getRawBlock", back(0)), works(&can.RawBlocks)},
		{ask("eth_getRawTransactionByHash", chain.Hash{}), exists(&can.RawTransactions)},
		{ask("eth_getBlockReceipts", back(0)), works(&can.Receipts)},
		{ask("eth_getProof", chain.Address{}, []string{}, back(0)), works(&can.Proofs)},
		{ask("eth_getBlockAccessList", back(0)), works(&can.AccessLists)},
		{ask("eth_getBlockByNumber", "safe", false), works(&can.Safe)},
		{ask("eth_getBlockByNumber", "finalized", false), works(&can.Finalized)},
	}
	requests := make([]request, len(probes))
	for i, p := range probes {
		requests[i] = p.request
	}
	answers, err := e.batch(ctx, requests)
	if err != nil {
		return err
	}
	for i, a := range answers {
		if err := e.troubled(a.err); err != nil {
			return e.fail(requests[i].method, err)
		}
		probes[i].found(a)
	}
	return e.probeTraces(ctx, can)
}

// troubled returns the errors that say nothing about what an upstream can do.
func (e *endpoint) troubled(err error) error {
	var rpc *RPCError
	if errors.As(err, &rpc) && rpc.Code == codeLimit || errors.Is(err, errMalformed) {
		return err
	}
	return nil
}

func storageAt(block any) request {
	return ask("eth_getStorageAt", chain.Address{}, chain.Slot{}, block)
}

func works(field *bool) func(answer) {
	return func(a answer) { *field = a.err == nil }
}

// exists is for what is asked about something that is not there.
func exists(field *bool) func(answer) {
	return func(a answer) {
		var rpc *RPCError
		*field = !errors.As(a.err, &rpc)
	}
}

// depthProbe notes depths from small to large, as far as one follows the other.
func (c *Capabilities) depthProbe() func(int) func(answer) {
	reached := true
	return func(depth int) func(answer) {
		return func(a answer) {
			if reached = reached && a.err == nil; reached {
				c.State = depth
			}
		}
	}
}

// probeTraces asks for a trace of the latest block. Of block 0 there is none,
// so that there only a method that is not known is missing.
func (e *endpoint) probeTraces(ctx context.Context, can *Capabilities) error {
	for _, p := range []struct {
		method string
		block  any
		found  *bool
	}{
		{"debug_traceBlockByHash", can.head.Latest.Hash, &can.TraceByHash},
		{"debug_traceBlockByNumber", hexNumber(can.head.Latest.Number), &can.TraceByNumber},
	} {
		result, err := e.slowCall(ctx, p.method, p.block, diffTracer())
		var rpc *RPCError
		switch {
		case err == nil:
			_, err = decodeTraces(result)
			*p.found = err == nil
		case errors.As(err, &rpc):
			*p.found = can.head.Latest.Number == 0 && rpc.Code == codeServer
		case !errors.Is(err, errNull) && !errors.Is(err, errNoResult):
			return err
		}
	}
	return nil
}

func (e *endpoint) probeSubscription(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, e.options.Timeout)
	defer cancel()
	_, end, err := e.socket.subscribe(ctx, e.ids.Add(1), nil)
	if err != nil {
		return false
	}
	end()
	return true
}

func hexNumber(n chain.Number) string { return hexutil.EncodeUint64(uint64(n)) }
