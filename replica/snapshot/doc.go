// SPDX-License-Identifier: Apache-2.0

// Package snapshot puts copies of a store into an object store and gets them
// back, so that a new replica begins with one and not with the first block.
//
// A snapshot is a directory of files, as archive.DB.Checkpoint makes it. Each
// file is cut into chunks, each chunk is an object under the hash of its content,
// and a manifest names them all. Most files of a store never change after they
// were written, so what the snapshots before have in common with a new one is
// there already and is not sent again.
//
// What the package guarantees:
//
//   - S1. A manifest is written after all that it names: a snapshot that can be
//     seen is whole.
//   - S2. Nothing that was downloaded is believed. Every chunk must have the size
//     and the hash that the manifest says, every name must be one of a file in the
//     directory itself, and the manifest is bounded.
//   - S3. The directory of a download appears when everything in it is verified
//     and durable, and not before. What a download that ended early left beside it
//     is verified again, and what is whole is not fetched again.
//   - S4. The newest two snapshots are never dropped, so that whoever has begun to
//     download one can end.
//
// A manifest itself is believed as far as the object store is: whoever may write
// there can serve another chain's state. That is for credentials to prevent, and
// for the replica to notice: the chain, the head and its digest are in the
// manifest and in the store, and must agree.
//
// The package starts a few goroutines in Download, and none that outlives the
// call. A Store is safe for concurrent use.
package snapshot
