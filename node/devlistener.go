// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"text/tabwriter"

	"github.com/ethereum/go-ethereum/crypto"

	"glimpse/devchain"
	"glimpse/flashblock/feed"
	"glimpse/pending"
)

var _ devchain.Listener = (*devNode)(nil)

// Preconfirmed implements devchain.Listener. The node's own pending state comes
// from the feed like everybody else's.
func (d *devNode) Preconfirmed(f *devchain.Flashblock) {
	d.promised.remember(f.Transactions)
	m, err := newMessage(f)
	if err == nil {
		err = d.feed.Publish(context.Background(), m)
	}
	if err != nil {
		d.config.Log.Warn("flashblock not published", "block", f.Header.Number, "index", f.Index, "err", err)
	}
}

// Sealed implements devchain.Listener.
func (d *devNode) Sealed(s *devchain.Sealed) {
	d.announce(s, 0)
	fmt.Fprintf(d.config.Out, "block %-6d %3d transactions %10d gas %3d flashblocks  %s\n",
		s.Block.NumberU64(), len(s.Block.Transactions()), s.Block.GasUsed(), s.Flashblocks, s.Block.Hash())
	if len(s.Revoked) > 0 {
		fmt.Fprintf(d.config.Out, "             %d pre-confirmed transactions are not in it\n", len(s.Revoked))
	}
}

// Reorganised implements devchain.Listener: the new branch is published as one
// step (P6).
func (d *devNode) Reorganised(r *devchain.Reorganisation) {
	last := r.Added[len(r.Added)-1]
	d.announce(last, len(r.Removed))
	fmt.Fprintf(d.config.Out, "reorg  of %d blocks above %d, new head %s\n", len(r.Removed), r.Ancestor.Number, last.Block.Hash())
}

func (d *devNode) announce(s *devchain.Sealed, removed int) {
	if err := d.preconfirmations.seal(pending.NewSealedBlock(s.Block), removed); err != nil {
		d.config.Log.Error("sealed block is not published", "block", s.Block.NumberU64(), "err", err)
	}
}

// banner tells a person all they need to begin.
func (d *devNode) banner(rpc endpoints, subscribers net.Addr) {
	out := tabwriter.NewWriter(d.config.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "%s\n\n", ClientVersion())
	for i, a := range devchain.Accounts() {
		fmt.Fprintf(out, "(%d)\t%s\t0x%s\n", i, a.Address, hex.EncodeToString(crypto.FromECDSA(a.Key)))
	}
	fmt.Fprintf(out, "\nmnemonic\t%s\n", devchain.Mnemonic)
	fmt.Fprintf(out, "chain id\t%d\n", d.rules.ChainID())
	for _, e := range []struct {
		name, scheme string
		listener     net.Listener
	}{{"json-rpc", "http", rpc.http}, {"websocket", "ws", rpc.websocket}, {"operations", "http", rpc.ops}} {
		if e.listener != nil {
			fmt.Fprintf(out, "%s\t%s://%s\n", e.name, e.scheme, e.listener.Addr())
		}
	}
	if p := d.service.publishing; p != nil && p.server != nil {
		fmt.Fprintf(out, "nats\t%s\n", p.server.ClientURL())
	}
	fmt.Fprintf(out, "flashblocks\tws://%s%s\n\n", subscribers, feed.Path)
	_ = out.Flush() // a terminal that is gone is nobody's loss
	if rpc.http != nil {
		fmt.Fprintf(d.config.Out, "curl -s http://%s -H 'Content-Type: application/json' -d '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_getBalance\",\"params\":[\"%s\",\"pending\"]}'\n\n",
			rpc.http.Addr(), devchain.Accounts()[0].Address)
	}
}
