// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// A request is one call before it has an id.
type request struct {
	method string
	params []any
}

func ask(method string, params ...any) request { return request{method: method, params: params} }

// An answer is the outcome of one call: a result that is not null, or an error.
type answer struct {
	result json.RawMessage
	err    error
}

// wireRequest is a call as it is sent.
type wireRequest struct {
	Version string `json:"jsonrpc"`
	ID      uint64 `json:"id"`
	Method  string `json:"method"`
	Params  []any  `json:"params"`
}

// encodeRequests returns an object for one request and an array for more. The
// ids count up from first.
func encodeRequests(requests []request, first uint64) ([]byte, error) {
	wire := make([]wireRequest, len(requests))
	for i, r := range requests {
		wire[i] = wireRequest{Version: "2.0", ID: first + uint64(i), Method: r.method, Params: r.params}
		if r.params == nil {
			wire[i].Params = []any{}
		}
	}
	if len(wire) == 1 {
		return json.Marshal(wire[0])
	}
	return json.Marshal(wire)
}

// wireAnswer is an answer as it comes, or a notification of a subscription.
type wireAnswer struct {
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

func (w *wireAnswer) rpcError() *RPCError {
	if isNull(w.Error) {
		return nil
	}
	var e struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(w.Error, &e); err != nil {
		return &RPCError{Code: codeInternal, Message: "an error that cannot be read"}
	}
	return &RPCError{Code: e.Code, Message: clip(e.Message), Data: e.Data}
}

// clip bounds what is repeated of an upstream's words in errors and logs.
func clip(text string) string {
	const most = 300
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

func (w *wireAnswer) answer() answer {
	if e := w.rpcError(); e != nil {
		return answer{err: e}
	}
	switch {
	case len(w.Result) == 0:
		return answer{err: errNoResult}
	case isNull(w.Result):
		return answer{err: errNull}
	}
	return answer{result: w.Result}
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// number returns the id as one of ours; ids of other shapes are not.
func (w *wireAnswer) number() (uint64, bool) {
	n, err := strconv.ParseUint(string(w.ID), 10, 64)
	return n, err == nil
}

// decodeAnswers reads the answers to n requests whose ids count up from first,
// in whatever order they came. An answer to anything else is an error.
//
// errBatchRefused means that the upstream answered a batch as a whole, with an
// error, or with fewer answers than there were questions.
func decodeAnswers(body []byte, first uint64, n int) ([]answer, error) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return nil, fmt.Errorf("%w: nothing", errMalformed)
	}
	if body[0] != '[' {
		var one wireAnswer
		if err := json.Unmarshal(body, &one); err != nil {
			return nil, fmt.Errorf("%w: %w", errMalformed, err)
		}
		return single(&one, first, n)
	}
	var many []wireAnswer
	if err := json.Unmarshal(body, &many); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	return matched(many, first, n)
}

func single(one *wireAnswer, first uint64, n int) ([]answer, error) {
	id, ok := one.number()
	if e := one.rpcError(); e != nil && (n > 1 || isNull(one.ID)) {
		if n > 1 {
			return nil, fmt.Errorf("%w: %w", errBatchRefused, e)
		}
		return nil, e
	}
	if n > 1 {
		return nil, fmt.Errorf("%w: one answer to %d questions", errMalformed, n)
	}
	if !ok || id != first {
		return nil, fmt.Errorf("%w: id %s, want %d", errMalformed, clip(string(one.ID)), first)
	}
	return []answer{one.answer()}, nil
}

func matched(many []wireAnswer, first uint64, n int) ([]answer, error) {
	answers := make([]answer, n)
	seen := make([]bool, n)
	for i := range many {
		id, ok := many[i].number()
		if e := many[i].rpcError(); e != nil && len(many) < n {
			return nil, fmt.Errorf("%w: %w", errBatchRefused, e)
		}
		at := id - first
		if !ok || id < first || at >= uint64(n) {
			return nil, fmt.Errorf("%w: id %s was not asked", errMalformed, clip(string(many[i].ID)))
		}
		if seen[at] {
			return nil, fmt.Errorf("%w: id %d twice", errMalformed, id)
		}
		seen[at] = true
		answers[at] = many[i].answer()
	}
	if i := slices.Index(seen, false); i >= 0 {
		return nil, fmt.Errorf("%w: no answer with id %d", errMalformed, first+uint64(i))
	}
	return answers, nil
}
