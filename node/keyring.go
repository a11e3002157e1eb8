// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"

	"glimpse/apikey"
	"glimpse/jsonrpc"
)

// A keyring lets those in whose key is in a file.
type keyring struct {
	file string
	ring *apikey.Ring
}

var _ jsonrpc.Gate = (*keyring)(nil)

func openKeyring(file string) (*keyring, error) {
	k := &keyring{file: file, ring: apikey.NewRing(new(apikey.Keys))}
	_, err := k.load()
	return k, err
}

// load reads the file and returns how many keys it has. Where it cannot be used,
// the keys from before stay.
func (k *keyring) load() (n int, err error) {
	f, err := os.Open(k.file)
	if err != nil {
		return 0, fmt.Errorf("API keys: %w", err)
	}
	defer f.Close() // it was only read
	keys, err := apikey.Parse(f)
	if err != nil {
		return 0, fmt.Errorf("API keys of %s: %w", k.file, err)
	}
	k.ring.Replace(keys)
	return keys.Len(), nil
}

// Admit implements jsonrpc.Gate.
func (k *keyring) Admit(key []byte) (jsonrpc.Ticket, bool) {
	t, ok := k.ring.Admit(key)
	if !ok {
		return nil, false
	}
	return t, true
}
