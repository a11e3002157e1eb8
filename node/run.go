// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"sync"
)

// runAll runs parts until the first ends, stops the others, and returns when all
// have ended, with the errors of all.
func runAll(ctx context.Context, parts ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(parts))
	var running sync.WaitGroup
	for i, part := range parts {
		running.Go(func() {
			defer cancel()
			errs[i] = part(ctx)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}
