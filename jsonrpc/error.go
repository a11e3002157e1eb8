// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"fmt"
	"strconv"
)

// The codes that this package itself answers with.
const (
	CodeParse            = -32700
	CodeInvalidRequest   = -32600
	CodeMethodNotFound   = -32601
	CodeInvalidParams    = -32602
	CodeInternal         = -32603
	CodeResponseTooLarge = -32003
	CodeServerError      = -32000
	CodeLimitExceeded    = -32005 // the same request may succeed later: clients retry
)

// An Error is a JSON-RPC error as the caller sees it. It is immutable once it
// has been returned.
type Error struct {
	Code    int
	Message string // any text; what is not valid UTF-8 is replaced on the wire

	// Data is one JSON value, sent as it is. Nil means that there is no data
	// member.
	Data []byte
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// MethodNotFound is the error for a method that does not exist.
func MethodNotFound(method []byte) *Error {
	return &Error{Code: CodeMethodNotFound, Message: fmt.Sprintf("the method %s does not exist/is not available", method)}
}

// InvalidParams is the error for a parameter that cannot be accepted. Its
// message is formatted as by fmt.Sprintf.
func InvalidParams(format string, args ...any) *Error {
	return &Error{Code: CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

var (
	errParse         = &Error{Code: CodeParse, Message: "parse error"}
	errNotObject     = &Error{Code: CodeInvalidRequest, Message: "invalid request: want an object"}
	errDuplicate     = &Error{Code: CodeInvalidRequest, Message: "invalid request: duplicate member"}
	errVersion       = &Error{Code: CodeInvalidRequest, Message: `invalid request: jsonrpc must be "2.0"`}
	errID            = &Error{Code: CodeInvalidRequest, Message: "invalid request: id must be a string, a number or null"}
	errMethod        = &Error{Code: CodeInvalidRequest, Message: "invalid request: method must be a non-empty string of at most 2048 bytes"}
	errEmptyBatch    = &Error{Code: CodeInvalidRequest, Message: "empty batch"}
	errBatchTooLarge = &Error{Code: CodeInvalidRequest, Message: "batch too large"}
	errNonArray      = &Error{Code: CodeInvalidParams, Message: "non-array args"}
	errTooLarge      = &Error{Code: CodeResponseTooLarge, Message: "response too large"}
	errInternal      = &Error{Code: CodeInternal, Message: "internal error"}
	errInFlight      = &Error{Code: CodeLimitExceeded, Message: "too many requests in flight"}
	errRate          = &Error{Code: CodeLimitExceeded, Message: "more requests than the API key allows"}
	errMemory        = &Error{Code: CodeLimitExceeded, Message: "too many long requests and answers at once"}

	errNoNotifications = &Error{Code: CodeMethodNotFound, Message: "notifications not supported"}
	errSubscriptions   = &Error{Code: CodeServerError, Message: "too many subscriptions"}
	errNoSubscription  = &Error{Code: CodeServerError, Message: "subscription not found"}
)

// appendResponseHead appends a response up to the name of its outcome. A nil
// id is written as null.
func appendResponseHead(dst, id []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	if id == nil {
		return append(dst, "null,"...)
	}
	return append(append(dst, id...), ',')
}

// appendErrorResponse appends a whole response that says e.
func appendErrorResponse(dst, id []byte, e *Error) []byte {
	dst = appendResponseHead(dst, id)
	dst = append(dst, `"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = append(dst, `,"message":`...)
	dst = appendString(dst, e.Message)
	if e.Data != nil {
		dst = append(dst, `,"data":`...)
		dst = append(dst, e.Data...)
	}
	return append(dst, "}}"...)
}
