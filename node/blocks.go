// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"glimpse/archive"
	"glimpse/chain"
)

// parseBlock reads a block as an operator writes it: a decimal or hex number, or
// a hash. Nothing gives the zero Selector.
func parseBlock(text string) (chain.Selector, error) {
	if text == "" {
		return chain.Selector{}, nil
	}
	if !strings.HasPrefix(text, "0x") {
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			return chain.Selector{}, errors.New("want a number or a hash")
		}
		return chain.ByNumber(chain.Number(n)), nil
	}
	return chain.ParseSelector(text)
}

// locate returns the height of a block of the canonical chain, by number or
// hash. One that is not there is a *chain.Miss.
func locate(r *archive.Reader, sel chain.Selector) (chain.Number, error) {
	miss := func(why chain.Reason) error {
		return &chain.Miss{Reason: why, Oldest: r.Oldest(), Latest: r.Head().Number}
	}
	if n, ok := sel.Number(); ok {
		if n > r.Head().Number {
			return 0, miss(chain.Future)
		}
		return n, nil
	}
	h, ok := sel.Hash()
	if !ok {
		return 0, fmt.Errorf("%s is neither a number nor a hash", sel)
	}
	n, canonical, err := r.Number(h)
	if err == nil && !canonical {
		err = miss(chain.NotCanonical)
	}
	return n, err
}
