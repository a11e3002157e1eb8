// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import "sync"

// tailBytes is enough to see why a program failed.
const tailBytes = 4 << 10

// A tail keeps the last of what is written to it. It may be read meanwhile.
type tail struct {
	mu   sync.Mutex
	text []byte // guarded by mu
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
