// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"maps"
	"slices"

	"glimpse/jsonrpc"
)

// Methods returns the names of all methods, sorted.
func Methods() []string {
	all := maps.Clone(reading)
	maps.Copy(all, sequencing)
	maps.Copy(all, misbehaving)
	return slices.Sorted(maps.Keys(all))
}

// Codes returns every error code that a caller can be given.
func Codes() []int {
	return []int{
		codeMiss, codePruned, codeNoTag, codeTooManySlots, codeFailed, codeRevert, codeSyncTimeout,
		jsonrpc.CodeParse, jsonrpc.CodeInvalidRequest, jsonrpc.CodeMethodNotFound,
		jsonrpc.CodeInvalidParams, jsonrpc.CodeInternal, jsonrpc.CodeResponseTooLarge,
	}
}
