// SPDX-License-Identifier: Apache-2.0

//go:build !race

// The race detector makes sync.Pool drop items at random.

package ethapi_test

import (
	"testing"

	"glimpse/jsonrpc"
)

func TestStorageReadDoesNotAllocate(t *testing.T) {
	api := newAPI(new(fake), nil)
	params := jsonrpc.Value(`["` + contract + `","0x7","latest"]`)
	method, dst := []byte("eth_getStorageAt"), make([]byte, 0, 256)
	var noFields jsonrpc.Header = header{}
	allocs := testing.AllocsPerRun(100, func() {
		values, _ := params.Elements()
		s := api.Begin(t.Context(), noFields)
		if _, err := s.Call(t.Context(), dst, method, values); err != nil {
			t.Fatal(err)
		}
		s.End()
	})
	// One is the fake's: its View does not fit an interface.
	if allocs > 1 {
		t.Errorf("a read allocates %v times, want at most 1", allocs)
	}
}
