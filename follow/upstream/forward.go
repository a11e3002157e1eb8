// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"errors"
)

// Forward asks for anything on behalf of somebody else, who gets the answer as it
// is: null too, and the upstream's own error as an *RPCError.
func (p *Pool) Forward(ctx context.Context, method string, params ...any) (result json.RawMessage, err error) {
	err = p.on(ctx, nil, func(ctx context.Context, e *endpoint) (err error) {
		result, err = e.call(ctx, method, params...)
		if errors.Is(err, errNull) {
			result, err = json.RawMessage("null"), nil
		}
		return err
	})
	return result, err
}
