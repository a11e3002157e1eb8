// SPDX-License-Identifier: Apache-2.0

package archive

import "github.com/cockroachdb/pebble/v2/vfs"

// An FS is the file system that a store lives on. The name lets others hold one
// without knowing Pebble.
type FS = vfs.FS
