// SPDX-License-Identifier: Apache-2.0

package floor

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/valyala/fasthttp"

	"glimpse/bench/workload"
)

// A Server has a chain in maps. It does not change, so requests share it.
type Server struct {
	slots map[place]workload.History
	codes map[common.Address][]byte // as hexadecimal digits
}

type place struct {
	address common.Address
	slot    common.Hash
}

// New reads what there is to answer.
func New(c *workload.Chain) (*Server, error) {
	text, err := os.ReadFile(workload.Genesis(c.Dir))
	if err != nil {
		return nil, err
	}
	genesis := new(core.Genesis)
	if err := json.Unmarshal(text, genesis); err != nil {
		return nil, fmt.Errorf("genesis: %w", err)
	}
	s := &Server{slots: make(map[place]workload.History), codes: make(map[common.Address][]byte)}
	for addr, account := range genesis.Alloc {
		s.codes[addr] = hex.AppendEncode(nil, account.Code)
	}
	c.Slots(func(addr common.Address, slot common.Hash, h workload.History) { s.slots[place{addr, slot}] = h })
	return s, nil
}

// Serve answers until the listener is closed.
func (s *Server) Serve(l net.Listener) error {
	server := &fasthttp.Server{Handler: s.handle, NoDefaultServerHeader: true, NoDefaultDate: true}
	if err := server.Serve(l); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("floor: %w", err)
	}
	return nil
}

var jsonType = []byte("application/json")

func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.SetContentTypeBytes(jsonType)
	// The answer is built in the buffer that fasthttp keeps for it.
	answer, ok := s.answer(ctx.Response.SwapBody(nil)[:0], ctx.PostBody())
	if !ok {
		ctx.Error(`{"error":"not in the one form that is known here"}`, fasthttp.StatusBadRequest)
		return
	}
	ctx.Response.SwapBody(answer)
}

// answer appends the answer to a request, or to a batch of them.
func (s *Server) answer(to, text []byte) ([]byte, bool) {
	if !bytes.HasPrefix(text, []byte("[")) {
		to, rest, ok := s.one(to, text)
		return to, ok && len(rest) == 0
	}
	for open := byte('['); ; open = ',' {
		to = append(to, open)
		var ok bool
		if to, text, ok = s.one(to, text[1:]); !ok || len(text) == 0 {
			return to, false
		}
		if text[0] == ']' {
			return append(to, ']'), len(text) == 1
		}
		if text[0] != ',' {
			return to, false
		}
	}
}

// one takes a call off the front of text and appends its answer.
func (s *Server) one(to, text []byte) (out, rest []byte, ok bool) {
	c, rest, ok := parse(text)
	if !ok {
		return to, nil, false
	}
	to = append(to, `{"jsonrpc":"2.0","id":`...)
	to = append(to, c.id...)
	to = append(to, `,"result":"0x`...)
	switch {
	case bytes.Equal(c.method, getStorageAt):
		value := s.slots[place{c.address, c.slot}].At(c.block)
		to = hex.AppendEncode(to, value[:])
	case bytes.Equal(c.method, getCode):
		to = append(to, s.codes[c.address]...)
	default:
		return to, nil, false
	}
	return append(to, `"}`...), rest, true
}
