// SPDX-License-Identifier: Apache-2.0

package merkle

// DecodeStored returns what is under one key: a node, and the leaves with it.
func DecodeStored(stored []byte) (node []byte, leaves [16][]byte, err error) {
	p, err := decodeStored(stored)
	if err != nil {
		return nil, leaves, err
	}
	return p.node, p.leaves, nil
}
