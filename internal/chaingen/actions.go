// SPDX-License-Identifier: Apache-2.0

package chaingen

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// salts is how many children the factory has; few, so that they meet again.
const salts = 5

// act does one thing. The actions need not know what is there: a call to a
// contract that is gone, or a creation where one is, are cases too.
func (g *generator) act() {
	salt := byte(g.random.IntN(salts))
	child := childAddr(salt)
	actions := []func(){
		g.transfer,
		func() { g.call(g.storer(), g.pairs(1+g.random.IntN(4))) },
		func() { g.call(reverterAddr, g.pairs(2)) },
		func() { g.call(callerAddr, g.forward()) },
		g.deploy,
		g.restore,
	}
	if g.rules.IsConstantinople {
		actions = append(actions,
			func() { g.create(salt) },
			func() { g.call(child, g.pairs(2)) },
			func() { g.call(child, nil) },
			func() { g.rebirth(salt) },
			func() { g.call(briefAddr, slices.Concat(word(salt), childInit)) },
		)
	}
	if g.rules.IsPrague {
		delegator := g.keys[senders+g.random.IntN(delegators)]
		targets := []common.Address{storerAddr, mortalAddr, reverterAddr, {}}
		actions = append(actions,
			func() { g.delegate(delegator, targets[g.random.IntN(len(targets))]) },
			func() { g.call(delegator.addr, g.pairs(2)) },
			func() { g.call(delegator.addr, nil) },
		)
	}
	actions[g.random.IntN(len(actions))]()
}

// transfer sends a little, or nothing, to someone who may not exist.
func (g *generator) transfer() {
	to := g.anyAddress()
	g.send(sending{to: &to, value: int64(g.random.IntN(3))})
}

// deploy creates a contract by transaction and remembers some of the storers.
func (g *generator) deploy() {
	if g.random.IntN(4) == 0 {
		g.send(sending{data: childInit})
		return
	}
	if addr, ok := g.send(sending{data: storerInit}); ok && g.random.IntN(2) == 0 {
		g.deployed = append(g.deployed, addr)
	}
}

func (g *generator) create(salt byte) {
	g.call(factoryAddr, slices.Concat(word(salt), childInit))
}

// rebirth destroys a child and creates it again in one block, and sometimes
// destroys it once more.
func (g *generator) rebirth(salt byte) {
	child := childAddr(salt)
	g.call(child, g.pairs(2))
	g.call(child, nil)
	if g.random.IntN(2) == 0 {
		g.create(salt)
		g.call(child, g.pairs(1))
	}
	if g.random.IntN(3) == 0 {
		g.call(child, nil)
	}
}

// restore sets a slot and puts it back, in one transaction or in two.
func (g *generator) restore() {
	to := g.storer()
	set := slices.Concat(word(200), word(5))
	clear := slices.Concat(word(200), word(0))
	if g.random.IntN(2) == 0 {
		g.call(to, slices.Concat(set, clear))
		return
	}
	g.call(to, set)
	g.call(to, clear)
}

// forward is call data for the caller: whom to call, and with what.
func (g *generator) forward() []byte {
	targets := []common.Address{storerAddr, reverterAddr, mortalAddr, childAddr(0)}
	to := targets[g.random.IntN(len(targets))]
	return slices.Concat(common.LeftPadBytes(to[:], 32), g.pairs(1))
}

func (g *generator) storer() common.Address {
	if len(g.deployed) > 0 && g.random.IntN(2) == 0 {
		return g.deployed[g.random.IntN(len(g.deployed))]
	}
	return storerAddr
}

func (g *generator) anyAddress() common.Address {
	switch g.random.IntN(4) {
	case 0:
		return g.keys[g.random.IntN(len(g.keys))].addr
	case 1:
		return childAddr(byte(g.random.IntN(salts)))
	case 2:
		return common.Address{0xee, byte(g.random.IntN(8))}
	}
	return common.Address{0xff, byte(g.random.IntN(256)), byte(g.random.IntN(256))}
}

// pairs are n slots with values, of which a third are zero.
func (g *generator) pairs(n int) (data []byte) {
	for range n {
		slot, value := byte(g.random.IntN(8)), byte(0)
		if g.random.IntN(3) > 0 {
			value = byte(1 + g.random.IntN(255))
		}
		data = slices.Concat(data, word(slot), word(value))
	}
	return data
}

func word(n byte) []byte { return common.LeftPadBytes([]byte{n}, 32) }
