// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// A transport carries bodies to one upstream and back. It is safe for
// concurrent use. Its errors do not name the URL.
type transport interface {
	// exchange sends one object or batch, with n ids from first, and returns
	// the body of the answer.
	exchange(ctx context.Context, body []byte, first uint64, n int) ([]byte, error)
	close()
}

type httpTransport struct {
	url    *url.URL
	client *http.Client
	limit  int64 // of one answer, in bytes
}

func (t *httpTransport) exchange(ctx context.Context, body []byte, _ uint64, n int) ([]byte, error) {
	r := &http.Request{
		Method:        http.MethodPost,
		URL:           t.url,
		Header:        http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}},
		Body:          io.NopCloser(bytes.NewReader(body)),
		GetBody:       func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil },
		ContentLength: int64(len(body)),
	}
	response, err := t.client.Do(r.WithContext(ctx))
	if err != nil {
		return nil, withoutURL(err)
	}
	defer response.Body.Close()
	if n > 1 && refusesBatch(response.StatusCode) {
		return nil, fmt.Errorf("%w: HTTP status %d", errBatchRefused, response.StatusCode)
	}
	// Some nodes give a JSON-RPC error together with a status that is not 200;
	// what such a body says is more than what the status does.
	if s := response.StatusCode; s != http.StatusOK && s != http.StatusBadRequest && s != http.StatusNotFound {
		return nil, &StatusError{Status: s, RetryAfter: retryAfter(response.Header)}
	}
	answer, err := readAll(response.Body, t.limit)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK && !bytes.HasPrefix(bytes.TrimSpace(answer), []byte("{")) {
		return nil, &StatusError{Status: response.StatusCode}
	}
	return answer, nil
}

func refusesBatch(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge
}

func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.ParseUint(h.Get("Retry-After"), 10, 16)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

func (t *httpTransport) close() { t.client.CloseIdleConnections() }

func readAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%w: more than %d bytes", errTooLarge, limit)
	}
	return data, nil
}
