// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"context"
	"errors"
	"fmt"

	"glimpse/chain"
	"glimpse/jsonrpc"
)

// Codes of misses and of calls that fail; docs/rpc.md explains each.
const (
	codeMiss   = -32000 // a block that this node does not have
	codePruned = 4444   // a block whose state was pruned
	codeNoTag  = -39001 // safe or finalized before there is one
	codeFailed = -32000 // a call that failed, other than by REVERT
	codeRevert = 3      // a call that ended with REVERT
	codeLate   = -32002 // a call that could not begin in time, or was given up
)

// wireError turns what went wrong in a method into what the caller is told. It
// is the only place where a Go error becomes a code.
//
// What is nobody's mistake is told without its text, which may hold paths and
// keys, as -32603: clients take that as leave to try again, and behind a load
// balancer another node may know the answer.
func (a *API) wireError(method string, err error) *jsonrpc.Error {
	var bad *jsonrpc.Error
	if errors.As(err, &bad) {
		return bad
	}
	var miss *chain.Miss
	if errors.As(err, &miss) {
		code := codeMiss
		if miss.Reason == chain.Pruned {
			code = codePruned
		}
		return &jsonrpc.Error{Code: code, Message: miss.Error(), Data: appendMiss(nil, miss)}
	}
	if errors.Is(err, chain.ErrNoTag) {
		return &jsonrpc.Error{Code: codeNoTag, Message: "safe or finalized block not found: none is known yet"}
	}
	var refused *Refusal
	if errors.As(err, &refused) {
		return &jsonrpc.Error{Code: codeFailed, Message: refused.Message}
	}
	var late *timeout
	if errors.As(err, &late) {
		return &jsonrpc.Error{Code: codeSyncTimeout, Message: late.Error(), Data: appendData(nil, late.hash[:])}
	}
	var failed *CallError
	if errors.As(err, &failed) {
		if failed.Reverted {
			return &jsonrpc.Error{Code: codeRevert, Message: failed.Message, Data: appendData(nil, failed.Revert)}
		}
		return &jsonrpc.Error{Code: codeFailed, Message: failed.Message}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &jsonrpc.Error{Code: codeFailed, Message: fmt.Sprintf("execution aborted (timeout = %v)", callTimeout)}
	}
	switch {
	case errors.Is(err, errLate):
		return &jsonrpc.Error{Code: codeLate, Message: errLate.Error()}
	case errors.Is(err, errBusy):
		return &jsonrpc.Error{Code: jsonrpc.CodeLimitExceeded, Message: errBusy.Error()}
	case errors.Is(err, context.Canceled):
		return &jsonrpc.Error{Code: codeLate, Message: "request given up: the node is stopping"}
	}
	if errors.Is(err, errElsewhere) || errors.Is(err, chain.ErrUnknown) {
		return &jsonrpc.Error{Code: codePruned, Message: err.Error()}
	}
	if errors.Is(err, chain.ErrUnavailable) {
		a.config.Log.Warn("upstream not reached", "method", method, "err", err)
		return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "this needs an upstream node, which cannot be reached now"}
	}
	a.config.Observer.ReadFailed(err)
	a.config.Log.Error("read failed", "method", method, "err", err)
	return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "internal error"}
}

// appendMiss renders the data member of a miss.
func appendMiss(dst []byte, m *chain.Miss) []byte {
	dst = append(dst, `{"reason":"`...)
	dst = append(dst, m.Reason...)
	dst = append(dst, `","oldest":`...)
	dst = appendQuantity(dst, uint64(m.Oldest))
	dst = append(dst, `,"latest":`...)
	dst = appendQuantity(dst, uint64(m.Latest))
	return append(dst, '}')
}
