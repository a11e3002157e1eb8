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

func diffTracer() map[string]any {
	return map[string]any{"tracer": "prestateTracer", "tracerConfig": map[string]any{"diffMode": true}}
}

// Trace fetches what each transaction of a block changed, for TraceDiff.
// ErrCannot where no upstream traces.
func (p *Pool) Trace(ctx context.Context, b *Block) (trace json.RawMessage, err error) {
	if len(b.Transactions) == 0 {
		return json.RawMessage("[]"), nil
	}
	err = p.on(ctx, (*Capabilities).Traces, func(ctx context.Context, e *endpoint) (err error) {
		trace, err = e.trace(ctx, b.Ref)
		return err
	})
	return trace, err
}

func (e *endpoint) trace(ctx context.Context, at chain.Ref) (json.RawMessage, error) {
	if can := e.snapshot().can; can != nil && can.TraceByHash {
		result, err := e.slowCall(ctx, "debug_traceBlockByHash", at.Hash, diffTracer())
		return result, notFound(err)
	}
	result, err := e.slowCall(ctx, "debug_traceBlockByNumber", hexNumber(at.Number), diffTracer())
	if err != nil {
		return nil, notFound(err)
	}
	return result, e.stillCanonical(ctx, at)
}

// transactionTrace is one entry of a trace in diff mode.
type transactionTrace struct {
	Hash   *chain.Hash `json:"txHash"` // some nodes leave it out
	Error  string      `json:"error"`
	Result *struct {
		Pre  map[chain.Address]*tracedAccount `json:"pre"`
		Post map[chain.Address]*tracedAccount `json:"post"`
	} `json:"result"`
}

// tracedAccount is one side of a change. In pre there is the whole account, in
// post what became different. Slots that are zero are in neither.
type tracedAccount struct {
	Balance  *hexutil.U256              `json:"balance"`
	Nonce    *flexibleNumber            `json:"nonce"`
	Code     *hexutil.Bytes             `json:"code"`
	CodeHash *chain.Hash                `json:"codeHash"`
	Storage  map[chain.Slot]chain.Value `json:"storage"`
}

func decodeTraces(raw json.RawMessage) ([]transactionTrace, error) {
	var traces []transactionTrace
	if err := json.Unmarshal(raw, &traces); err != nil {
		return nil, fmt.Errorf("%w: trace: %w", errMalformed, err)
	}
	for i, t := range traces {
		switch {
		case t.Error != "":
			return nil, fmt.Errorf("trace of transaction %d failed: %s", i, clip(t.Error))
		case t.Result == nil || t.Result.Pre == nil || t.Result.Post == nil:
			return nil, fmt.Errorf("%w: trace of transaction %d is not one in diff mode", errMalformed, i)
		}
		for _, side := range []map[chain.Address]*tracedAccount{t.Result.Pre, t.Result.Post} {
			for addr, account := range side {
				if account == nil {
					return nil, fmt.Errorf("%w: trace of transaction %d: account %s is null", errMalformed, i, addr)
				}
			}
		}
	}
	return traces, nil
}

// checkTraces sees that the traces are of the block's transactions.
func checkTraces(b *Block, traces []transactionTrace) error {
	if len(traces) != len(b.Transactions) {
		return fmt.Errorf("%d traces for %d transactions", len(traces), len(b.Transactions))
	}
	for i, t := range traces {
		if want := b.Transactions[i].Hash; t.Hash != nil && *t.Hash != want {
			return fmt.Errorf("trace %d is of transaction %s, want %s", i, *t.Hash, want)
		}
	}
	return nil
}

// ErrTrace says that a trace does not tell what a block changed.
var ErrTrace = errors.New("the trace does not tell the block's changes")
