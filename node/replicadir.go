// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// replicaDir is the datadir of a replica. It holds stores under ascending names, of
// which the last is the one to use: one that is built anew is made beside the one
// that answers, and takes its place without either being moved.
type replicaDir string

var storeName = regexp.MustCompile(`^store-[0-9]{6}$`)

// stores returns the paths of all stores, oldest first. A datadir that is not there
// has none.
func (d replicaDir) stores() (paths []string, err error) {
	entries, err := os.ReadDir(string(d))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() && storeName.MatchString(e.Name()) {
			paths = append(paths, filepath.Join(string(d), e.Name()))
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// next returns the path of a store that is to be made. After a crash it is the same
// again, so that what was downloaded is found.
func (d replicaDir) next() (string, error) {
	paths, err := d.stores()
	if err != nil {
		return "", err
	}
	n := 0
	if len(paths) > 0 {
		if _, err := fmt.Sscanf(filepath.Base(paths[len(paths)-1]), "store-%d", &n); err != nil {
			return "", err
		}
	}
	return filepath.Join(string(d), fmt.Sprintf("store-%06d", n+1)), nil
}

// newest returns the store to use; false where there is none. Those before it, which
// a crash has left, are deleted.
func (d replicaDir) newest() (path string, ok bool, err error) {
	paths, err := d.stores()
	if err != nil || len(paths) == 0 {
		return "", false, err
	}
	last := len(paths) - 1
	for _, old := range paths[:last] {
		if err := os.RemoveAll(old); err != nil {
			return "", false, err
		}
	}
	return paths[last], true, nil
}
