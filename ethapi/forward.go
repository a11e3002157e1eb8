// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"glimpse/chain"
)

// A Forwarder asks another node what this one does not serve. It is safe for
// concurrent use.
type Forwarder interface {
	// Forward returns the result of a call, whose params are a JSON array, as
	// JSON. An error that the other node answers with is a *jsonrpc.Error; that
	// it could not be asked is chain.ErrUnavailable.
	Forward(ctx context.Context, method string, params []byte) ([]byte, error)
}

// forwarded reports whether a method may be sent on. What administers, debugs or
// drives a node is nobody's business who asks another one, and subscriptions
// belong to a connection.
func forwarded(name []byte) bool {
	for _, prefix := range []string{"eth_", "net_", "web3_"} {
		if bytes.HasPrefix(name, []byte(prefix)) {
			return !bytes.HasSuffix(name, []byte("subscribe"))
		}
	}
	return false
}

// isElsewhere reports whether something was not found that another node may have.
func isElsewhere(err error) bool {
	var miss *chain.Miss
	return errors.Is(err, errElsewhere) ||
		errors.As(err, &miss) && (miss.Reason == chain.Pruned || miss.Reason == chain.UnknownHash)
}

// errElsewhere is for what only another node can tell.
var errElsewhere = errors.New("this node keeps only the header of this block")

// forward answers a call by asking the other node. The answer is of whatever state
// that has.
func forward(s *session, dst []byte, args *arguments) ([]byte, error) {
	ctx, cancel := context.WithDeadline(s.ctx, s.limit())
	defer cancel()
	params := []byte{'['}
	for v, ok := args.rest.Next(); ok; v, ok = args.rest.Next() {
		if len(params) > 1 {
			params = append(params, ',')
		}
		params = append(params, v...)
	}
	result, err := s.api.config.Forwarder.Forward(ctx, string(s.sentOn), append(params, ']'))
	if err != nil {
		return nil, err
	}
	if s.isAhead(result) {
		return appendNull(dst), nil
	}
	return append(dst, result...), nil
}

// isAhead reports whether a transaction or receipt is of a block that is not here
// yet: who is told of it would read the state from before it.
func (s *session) isAhead(result []byte) bool {
	if !bytes.HasPrefix(s.sentOn, []byte("eth_getTransaction")) {
		return false
	}
	var found struct {
		BlockNumber *hexutil.Uint64 `json:"blockNumber"`
	}
	return json.Unmarshal(result, &found) == nil && found.BlockNumber != nil && chain.Number(*found.BlockNumber) > s.Latest().Number
}
