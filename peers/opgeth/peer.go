// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package opgeth pins the op-geth that the rules of OP-Stack chains are compared
// with. It is a module of its own because op-geth takes the place of go-ethereum,
// under its name and at an older version.
package opgeth

import _ "github.com/ethereum/go-ethereum/cmd/geth" // built by make e2e-opgeth
