// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// post sends a body to a server at a host and port.
func post(ctx context.Context, addr string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Result any             `json:"result"`
	Error  json.RawMessage `json:"error,omitempty"`
}

// call makes one call and returns its result.
func call[T any](ctx context.Context, addr, method string, params ...any) (result T, err error) {
	if params == nil {
		params = []any{}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return result, fmt.Errorf("%s: %w", method, err)
	}
	answer, err := post(ctx, addr, body)
	if err != nil {
		return result, fmt.Errorf("%s: %w", method, err)
	}
	m := message{Result: &result}
	if err := json.Unmarshal(answer, &m); err != nil {
		return result, fmt.Errorf("%s: %w: %.200s", method, err, answer)
	}
	if m.Error != nil {
		return result, fmt.Errorf("%s: %s", method, m.Error)
	}
	return result, nil
}
