// SPDX-License-Identifier: Apache-2.0

package merkle

// DecodeStored returns what is under a key whose path has depth nibbles: a node,
// and the leaves with it.
func DecodeStored(stored []byte, depth int) (node []byte, leaves [16][]byte, err error) {
	p, err := decodeStored(stored, depth)
	if err != nil {
		return nil, leaves, err
	}
	return p.node, p.leaves, nil
}

// EncodeStored returns how a node is stored with the leaves that go with it.
func EncodeStored(node []byte, leaves [16][]byte, depth int) []byte {
	hashes, ok := childHashes(node)
	if !ok {
		return node
	}
	return encodePage(depth, &hashes, &leaves)
}

// FitsPage tells whether a node is a leaf that goes into a page at a depth.
func FitsPage(node []byte, depth int) bool {
	_, _, ok := splitLeaf(node, depth)
	return ok
}
