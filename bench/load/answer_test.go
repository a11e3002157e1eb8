// SPDX-License-Identifier: Apache-2.0

package load

import "testing"

// How the bytes of an answer come is up to the network, so each way is tried.
func TestAnswersMayComeInAnyPieces(t *testing.T) {
	for name, c := range map[string]struct{ text, body string }{
		"of a given length":    {"HTTP/1.1 200 OK\r\nX: y\r\ncontent-length: 5\r\n\r\n{1,2}", "{1,2}"},
		"in chunks":            {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{1,\r\nA\r\n0123456789\r\n2\r\n2}\r\n0\r\n\r\n", "{1,01234567892}"},
		"in chunks of nothing": {"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n0\r\n\r\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for size := 1; size <= len(c.text); size++ {
				var a answer
				// The second answer is as the first: nothing of that is left.
				for range 2 {
					a.reset()
					for at := 0; at < len(c.text); at += size {
						end := min(at+size, len(c.text))
						a.raw = append(a.raw, c.text[at:end]...)
						done, err := a.complete()
						if err != nil {
							t.Fatal(err)
						}
						if done != (end == len(c.text)) {
							t.Fatalf("pieces of %d: complete is %v after %d of %d bytes", size, done, end, len(c.text))
						}
					}
					if string(a.body) != c.body || a.status != 200 {
						t.Fatalf("pieces of %d: got status %d and %q", size, a.status, a.body)
					}
				}
			}
		})
	}
}
