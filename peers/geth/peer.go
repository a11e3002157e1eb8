// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package geth pins the geth that the end-to-end tests compare with. It is a
// module of its own because it is another version than the one glimpse is built
// on, and because its command needs far more than the library does.
package geth

import _ "github.com/ethereum/go-ethereum/cmd/geth" // built by make e2e-geth
