// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"maps"
	"slices"

	"glimpse/chain"
	"glimpse/jsonrpc"
	"glimpse/watch"
)

// Methods returns the names of all methods, sorted.
func Methods() []string {
	all := maps.Clone(reading)
	maps.Copy(all, sequencing)
	maps.Copy(all, misbehaving)
	all[SubscriptionNamespace+"_subscribe"], all[SubscriptionNamespace+"_unsubscribe"] = nil, nil
	return slices.Sorted(maps.Keys(all))
}

// Words returns what else a caller can write or be told.
func Words() []string {
	words := append(Headers(), snapshotField)
	words = slices.AppendSeq(words, maps.Keys(subscriptions))
	for _, level := range []watch.Level{watch.Preconfirmed, watch.Sealed, watch.Revoked} {
		words = append(words, string(level))
	}
	for _, reason := range []chain.Reason{chain.Future, chain.Pruned, chain.UnknownHash, chain.NotCanonical, chain.NotYet} {
		words = append(words, string(reason))
	}
	return words
}

// Codes returns every error code that a caller can be given.
func Codes() []int {
	return []int{
		codeMiss, codePruned, codeNoTag, codeTooManySlots, codeFailed, codeRevert, codeSyncTimeout, codeLate,
		jsonrpc.CodeParse, jsonrpc.CodeInvalidRequest, jsonrpc.CodeMethodNotFound,
		jsonrpc.CodeInvalidParams, jsonrpc.CodeInternal, jsonrpc.CodeResponseTooLarge, jsonrpc.CodeLimitExceeded,
	}
}
