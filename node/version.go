// SPDX-License-Identifier: Apache-2.0

package node

import (
	"runtime"
	"runtime/debug"
)

// Version is the release that this tree is on the way to.
const Version = "0.1.0-dev"

// ClientVersion names the program as web3_clientVersion does: name, version
// with the revision where it is known, system, Go release.
func ClientVersion() string {
	version := "v" + Version
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 8 {
				version += "-" + s.Value[:8]
			}
		}
	}
	return "glimpse/" + version + "/" + runtime.GOOS + "-" + runtime.GOARCH + "/" + runtime.Version()
}
