// SPDX-License-Identifier: Apache-2.0

// Package floor answers eth_getStorageAt and eth_getCode from maps in memory, with
// a parser that knows one way to write a request and an answer that is put
// together by hand. It is the least that a server on fasthttp can do and still
// answer, so it shows what carrying the bytes costs.
package floor
