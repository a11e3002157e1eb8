// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"glimpse/chain"
)

var (
	// ErrNotFound says that no upstream knows the block, or the transaction.
	// One that is behind may know it a moment later.
	ErrNotFound = errors.New("not found upstream")

	// ErrCannot says that no upstream offers what is needed for an answer. A
	// retry does not help.
	ErrCannot = errors.New("no upstream can do this")

	// ErrWrongChain says that an upstream has another chain id or genesis block.
	ErrWrongChain = errors.New("another chain")

	// ErrUnavailable says that no upstream is in a state to be asked.
	ErrUnavailable = errors.New("no upstream is available")
)

var (
	errNull         = errors.New("result is null")
	errNoResult     = errors.New("answer without a result")
	errTooLarge     = errors.New("answer is too large")
	errMalformed    = errors.New("malformed answer")
	errBatchRefused = errors.New("batch refused")
)

// A CallError is a question that an upstream did not answer, or not properly.
type CallError struct {
	Upstream string // scheme and host; never what a URL may hold of credentials
	Method   string
	Err      error
}

func (e *CallError) Error() string { return fmt.Sprintf("%s of %s: %v", e.Method, e.Upstream, e.Err) }
func (e *CallError) Unwrap() error { return e.Err }

// An RPCError is the error that an upstream answered with.
type RPCError struct {
	Code    int
	Message string
	Data    json.RawMessage // nil where there is none
}

func (e *RPCError) Error() string { return fmt.Sprintf("code %d: %s", e.Code, e.Message) }

// A StatusError is an HTTP answer that is no JSON-RPC answer.
type StatusError struct {
	Status     int
	RetryAfter time.Duration // zero where the upstream did not say
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("HTTP status %d %s", e.Status, http.StatusText(e.Status))
}

// A LieError is an answer that contradicts what it was asked for, or what a
// hash commits to.
type LieError struct {
	Upstream string
	Block    chain.Ref

	// Address and Slot say what the lie is about, where it is about state.
	Address *chain.Address
	Slot    *chain.Slot

	What string
}

func (e *LieError) Error() string {
	about := "block " + e.Block.String()
	if e.Address != nil {
		about = fmt.Sprintf("account %s at %s", e.Address, about)
	}
	if e.Slot != nil {
		about = fmt.Sprintf("slot %s of %s", e.Slot, about)
	}
	return fmt.Sprintf("%s lies about %s: %s", e.Upstream, about, e.What)
}

// withoutURL drops what net/http puts around the error of a request: the URL,
// in which keys are common.
func withoutURL(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		return outer.Err
	}
	return err
}

// A verdict is what an error says about where to ask next.
type verdict int

const (
	definite  verdict = iota // the answer; nobody else would give another
	elsewhere                // this upstream does not know; another one may
	faulty                   // this upstream is in trouble: it rests
)

// JSON-RPC codes that decide where to ask next.
const (
	codeInvalidRequest = -32600
	codeNoMethod       = -32601
	codeInternal       = -32603
	codeServer         = -32000 // geth's for state that is missing, among others
	codeServerNotFound = -32001
	codeTooLarge       = -32003
	codeNoSupport      = -32004
	codeLimit          = -32005
)

func judge(err error) verdict {
	var rpc *RPCError
	var lie *LieError
	switch {
	case errors.As(err, &lie):
		return faulty
	case errors.Is(err, ErrNotFound), errors.Is(err, errNull), errors.Is(err, errTooLarge):
		return elsewhere
	case errors.As(err, &rpc):
		switch rpc.Code {
		case codeLimit:
			return faulty
		case codeInternal, codeServer, codeServerNotFound, codeTooLarge:
			return elsewhere
		}
		return definite
	}
	return faulty
}
