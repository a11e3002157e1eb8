// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFlags(t *testing.T) {
	c, err := parseConfig(strings.Fields("-peers anvil -connections 4,64 -growth= -data some/where -pin none"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.peers, []string{anvilName}) || !slices.Equal(c.connections, []int{4, 64}) || len(c.growth) != 0 {
		t.Errorf("got peers %v, connections %v, growth %v", c.peers, c.connections, c.growth)
	}
	if !filepath.IsAbs(c.data) || !filepath.IsAbs(c.geth) || c.anvil != "anvil" {
		t.Errorf("got %s, %s and %s: want paths from the root, and a name to look for", c.data, c.geth, c.anvil)
	}
	if c.generatorCore() != -1 || c.serverCores() != nil {
		t.Error("something keeps to a processor though nothing is to")
	}
}

func TestFlagsThatCannotBeMeasured(t *testing.T) {
	for name, args := range map[string]string{
		"an unknown peer":               "-peers reth",
		"no connections":                "-connections=",
		"zero connections":              "-connections 0",
		"connections that are words":    "-connections many",
		"growth below the least":        "-growth 10",
		"few contracts":                 "-contracts 2",
		"none that is large":            "-large 0",
		"more for anvil than there are": "-blocks 5 -anvil-blocks 6",
		"no rounds":                     "-rounds 0",
		"no time":                       "-seconds 0s",
		"an unknown way to pin":         "-pin hard",
		"an argument":                   "now",
		"an unknown flag":               "-faster",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseConfig(strings.Fields(args), io.Discard); err == nil {
				t.Error("got no error")
			}
		})
	}
}

func TestCasesCoverEveryLoad(t *testing.T) {
	got := cases([]int{1, 8, 32, 128})
	want := map[loadCase]bool{{batch, 32}: true, {code, 32}: true, {valuesAbsent, 32}: true, {valuesPresent, 32}: true, {latestLive, 32}: true}
	for _, k := range singles {
		for _, n := range []int{1, 8, 32, 128} {
			want[loadCase{k, n}] = true
		}
	}
	for _, c := range got {
		if !want[c] {
			t.Errorf("%v is there twice or not wanted", c)
		}
		delete(want, c)
	}
	for c := range want {
		t.Errorf("%v is missing", c)
	}
	if reference([]int{1, 4}) != 4 {
		t.Error("without 32 connections the most are to be taken")
	}
}
