// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"sync"
)

// compressAbove is the size of an answer from which gzip is worth its time.
const compressAbove = 1 << 10

// acceptsGzip reports whether an Accept-Encoding asks for gzip. A weight of
// zero refuses it, and naming it counts for more than the star.
func acceptsGzip(accept []byte) bool {
	star := false
	for len(accept) > 0 {
		var item []byte
		item, accept, _ = bytes.Cut(accept, []byte{','})
		coding, params, _ := bytes.Cut(item, []byte{';'})
		switch coding = trim(coding); {
		case equalFold(coding, "gzip"), equalFold(coding, "x-gzip"):
			return hasWeight(params)
		case string(coding) == "*":
			star = hasWeight(params)
		}
	}
	return star
}

// hasWeight reports whether the parameters of a coding leave it a weight above
// zero. A weight that is not a number is one that nobody asked for.
func hasWeight(params []byte) bool {
	name, value, found := bytes.Cut(trim(params), []byte{'='})
	if !found {
		return true
	}
	if !equalFold(trim(name), "q") {
		return false
	}
	positive := false
	for _, c := range trim(value) {
		if !isDigit(c) && c != '.' {
			return false
		}
		positive = positive || '1' <= c && c <= '9'
	}
	return positive
}

// A zipper compresses answers. It is safe for concurrent use.
type zipper struct {
	writers sync.Pool // of *gzip.Writer
}

// append appends src, compressed.
func (z *zipper) append(dst, src []byte) ([]byte, error) {
	out := bytes.NewBuffer(dst)
	w, ok := z.writers.Get().(*gzip.Writer)
	if !ok {
		var err error
		if w, err = gzip.NewWriterLevel(out, gzip.BestSpeed); err != nil {
			return dst, fmt.Errorf("open gzip: %w", err)
		}
	}
	defer z.writers.Put(w)
	w.Reset(out)
	if _, err := w.Write(src); err != nil {
		return dst, fmt.Errorf("compress: %w", err)
	}
	if err := w.Close(); err != nil {
		return dst, fmt.Errorf("compress: %w", err)
	}
	return out.Bytes(), nil
}
