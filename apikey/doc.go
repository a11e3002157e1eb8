// SPDX-License-Identifier: Apache-2.0

// Package apikey says who may ask, and how often: a file of keys, a Ring that
// looks them up and can be given a new file while it is in use, and the rate
// that a key is held to.
//
// A key is a secret. No error and no method of this package shows one.
package apikey
