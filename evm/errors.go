// SPDX-License-Identifier: Apache-2.0

package evm

import (
	"errors"
	"fmt"

	"glimpse/chain"
)

var (
	// ErrStateRead is wrapped, together with the cause, by the error of an
	// execution that could not read the state or an ancestor's hash. It says
	// nothing about the block, which may be executed again.
	ErrStateRead = errors.New("state read failed")

	// ErrUnsupported is wrapped by errors about chains and blocks whose rules
	// are not known here. Guessing would publish wrong state.
	ErrUnsupported = errors.New("unsupported rules")
)

// An InvalidBlockError says that a block breaks the rules of its chain.
type InvalidBlockError struct {
	Ref  chain.Ref // zero hash where the block is still being built
	What string    // what is wrong, such as "gas used" or "transaction 3"

	// Want and Got are what was expected and found, empty where the
	// comparison is not between two values.
	Want, Got string

	// Cause is go-ethereum's own reason, nil where there is none.
	Cause error
}

func (e *InvalidBlockError) Error() string {
	text := fmt.Sprintf("invalid block %s: %s", e.Ref, e.What)
	if e.Want != "" || e.Got != "" {
		text += fmt.Sprintf(": got %s, want %s", e.Got, e.Want)
	}
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

func (e *InvalidBlockError) Unwrap() error { return e.Cause }

func stateReadError(cause error) error {
	return fmt.Errorf("%w: %w", ErrStateRead, cause)
}
