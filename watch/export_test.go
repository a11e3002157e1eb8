// SPDX-License-Identifier: Apache-2.0

package watch

// LevelOf decides the level of a change.
var LevelOf = levelOf
