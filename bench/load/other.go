// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package load

import (
	"context"
	"errors"
)

// Pin binds threads to processors on Linux only.
func Pin(int, []int) error { return errors.ErrUnsupported }

func runOnThread(context.Context, string, *Pool, Options) (*Result, error) {
	return nil, errors.ErrUnsupported
}
