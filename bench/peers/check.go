// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// check asks peers some of the requests that will be measured. All must give the
// same answers, or what is measured is not the same.
func check(ctx context.Context, p *pools, all []*peer, kinds []kind) (compared int, err error) {
	for _, k := range kinds {
		for _, asked := range all {
			if !k.askable(asked.name) {
				continue
			}
			for _, body := range p.sample(keyFor(k, asked)) {
				if err := compare(ctx, k, body, all, asked.oldest); err != nil {
					return compared, fmt.Errorf("%s: %w", k, err)
				}
				compared++
			}
		}
	}
	return compared, nil
}

var errDifferent = errors.New("peers answer differently")

// compare sends one request to all who can answer it. Those that begin later than
// the one that the request was drawn for have no say in its history.
func compare(ctx context.Context, k kind, body []byte, all []*peer, oldest uint64) error {
	var first any
	var by string
	for _, p := range all {
		if !k.askable(p.name) || k == historical && p.oldest > oldest {
			continue
		}
		text, err := post(ctx, p.addr, body)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		results, err := results(text)
		if err != nil {
			return fmt.Errorf("%s: %.300s: %w", p.name, body, err)
		}
		if by == "" {
			first, by = results, p.name
			continue
		}
		if !reflect.DeepEqual(first, results) {
			return fmt.Errorf("%w: %.300s\n%s: %.300v\n%s: %.300v", errDifferent, body, by, first, p.name, results)
		}
	}
	return nil
}

// results returns what an answer, or a batch of them, holds by id.
func results(text []byte) (any, error) {
	messages := make([]message, 1)
	var err error
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		err = json.Unmarshal(text, &messages)
	} else {
		err = json.Unmarshal(text, &messages[0])
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %.300s", err, text)
	}
	byID := make(map[string]any)
	for _, m := range messages {
		if m.Error != nil || m.Result == nil {
			return nil, fmt.Errorf("answers %.300s", text)
		}
		byID[string(m.ID)] = m.Result
	}
	return byID, nil
}
