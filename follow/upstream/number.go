// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/json"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// flexibleNumber is written in decimal by some nodes and in hex by others.
type flexibleNumber uint64

// UnmarshalJSON implements json.Unmarshaler.
func (n *flexibleNumber) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, (*hexutil.Uint64)(n))
	}
	return json.Unmarshal(text, (*uint64)(n))
}
