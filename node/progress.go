// SPDX-License-Identifier: Apache-2.0

package node

import (
	"glimpse/archive"
	"glimpse/importer"
)

// ImportProgress and VerifyProgress are how far an Import and a Verify have
// come.
type (
	ImportProgress = importer.Progress
	VerifyProgress = archive.Progress
)
