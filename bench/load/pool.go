// SPDX-License-Identifier: Apache-2.0

package load

import "strconv"

// A Pool is requests to choose from, as the bytes that are sent. The zero value
// is empty. Once it is filled, any number of Runs can use it.
type Pool struct {
	bytes []byte // one block, which the garbage collector need not look into
	ends  []int
}

// Add adds a request with a body of JSON.
func (p *Pool) Add(body []byte) {
	p.bytes = append(p.bytes, "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: "...)
	p.bytes = strconv.AppendInt(p.bytes, int64(len(body)), 10)
	p.bytes = append(append(p.bytes, "\r\n\r\n"...), body...)
	p.ends = append(p.ends, len(p.bytes))
}

// Len returns how many requests there are.
func (p *Pool) Len() int { return len(p.ends) }

func (p *Pool) request(i int) []byte {
	if i == 0 {
		return p.bytes[:p.ends[0]]
	}
	return p.bytes[p.ends[i-1]:p.ends[i]]
}
