// SPDX-License-Identifier: Apache-2.0

package snapshot

import "time"

// Hurry makes the wait for an object that does not come short.
func (b *Bucket) Hurry(timeout time.Duration) { b.timeout = timeout }

// DecodeManifest reads what Upload wrote, or somebody else.
var DecodeManifest = decodeManifest

// ChunkSubject returns where the messages of an object are.
func (b *Bucket) ChunkSubject(nuid string) string { return "$O." + b.name + ".C." + nuid }
