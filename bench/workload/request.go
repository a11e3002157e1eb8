// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
)

// Blocks by name.
const (
	Latest  = "latest"
	Pending = "pending"
)

// A Drawer draws requests at random: contracts by a Zipf distribution, their
// slots evenly. One goroutine may use it.
type Drawer struct {
	chain   *Chain
	random  *rand.Rand
	popular *rand.Zipf
	id      int
}

// popularity is the exponent of the Zipf distribution.
const popularity = 1.1

// NewDrawer returns a Drawer whose requests are the same for the same seed.
func (c *Chain) NewDrawer(seed uint64) *Drawer {
	random := rand.New(rand.NewPCG(seed, 3))
	return &Drawer{chain: c, random: random, popular: rand.NewZipf(random, popularity, 1, uint64(len(c.contracts)-1))}
}

// A read is one slot to ask for.
type read struct {
	contract int
	slot     common.Hash
}

func (d *Drawer) present() read {
	n := int(d.popular.Uint64())
	keys := d.chain.contracts[n].keys
	return read{n, keys[d.random.IntN(len(keys))]}
}

// absent is a slot that no block sets, of a contract that has others.
func (d *Drawer) absent() read {
	r := read{contract: int(d.popular.Uint64())}
	for i := range r.slot {
		r.slot[i] = byte(d.random.Uint32())
	}
	return r
}

func (d *Drawer) call(method string, params string) []byte {
	d.id++
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"%s","params":[%s]}`, d.id, method, params)
}

func (d *Drawer) storageAt(r read, block string) []byte {
	return d.call("eth_getStorageAt", fmt.Sprintf(`"%#x","%#x","%s"`, d.chain.contracts[r.contract].address, r.slot, block))
}

// Present asks for a slot that has a value at a block by name.
func (d *Drawer) Present(block string) []byte { return d.storageAt(d.present(), block) }

// Absent asks for a slot without a value.
func (d *Drawer) Absent(block string) []byte { return d.storageAt(d.absent(), block) }

// Historical asks for a slot that has a value at a block by number, any from
// oldest on.
func (d *Drawer) Historical(oldest uint64) []byte {
	r, n := d.historical(oldest)
	return d.storageAt(r, number(n))
}

func (d *Drawer) historical(oldest uint64) (read, uint64) {
	n := oldest + d.random.Uint64N(d.chain.Head()-oldest+1)
	for {
		r := d.present()
		if d.chain.Value(r.contract, r.slot, n) != (common.Hash{}) {
			return r, n
		}
		// In the first blocks few slots are there; a later one will do.
		n += d.random.Uint64N(d.chain.Head() - n + 1)
	}
}

// Code asks for the code of a contract that is as large as can be.
func (d *Drawer) Code(block string) []byte {
	n := d.random.IntN(d.chain.Shape.Large)
	return d.call("eth_getCode", fmt.Sprintf(`"%#x","%s"`, d.chain.contracts[n].address, block))
}

// Batch asks for many slots that have a value, each by a call of its own.
func (d *Drawer) Batch(size int, block string) []byte {
	body := []byte{'['}
	for range size {
		body = append(append(body, d.Present(block)...), ',')
	}
	body[len(body)-1] = ']'
	return body
}

// valuesContracts is of how many contracts the slots are that one call asks for.
const valuesContracts = 10

// PresentValues asks for many slots in one call, all of which have a value if
// their contracts have as many.
func (d *Drawer) PresentValues(size int, block string) []byte {
	return d.values(size, block, func(n int) common.Hash {
		keys := d.chain.contracts[n].keys
		return keys[d.random.IntN(len(keys))]
	})
}

// AbsentValues asks for many slots in one call, none of which has a value.
func (d *Drawer) AbsentValues(size int, block string) []byte {
	return d.values(size, block, func(int) common.Hash { return d.absent().slot })
}

func (d *Drawer) values(size int, block string, draw func(contract int) common.Hash) []byte {
	perContract := max(size/valuesContracts, 1)
	var params strings.Builder
	params.WriteByte('{')
	chosen := make(map[int]bool)
	for left := size; left > 0; left -= perContract {
		n := d.other(chosen)
		if len(chosen) > 0 {
			params.WriteByte(',')
		}
		chosen[n] = true
		fmt.Fprintf(&params, `"%#x":[`, d.chain.contracts[n].address)
		for i := range min(left, perContract) {
			if i > 0 {
				params.WriteByte(',')
			}
			fmt.Fprintf(&params, `"%#x"`, draw(n))
		}
		params.WriteByte(']')
	}
	params.WriteByte('}')
	return d.call("eth_getStorageValues", params.String()+`,"`+block+`"`)
}

// other draws a contract that was not drawn before, while there is one.
func (d *Drawer) other(chosen map[int]bool) int {
	n := int(d.popular.Uint64())
	for range d.chain.contracts {
		if !chosen[n] {
			break
		}
		n = (n + 1) % len(d.chain.contracts)
	}
	return n
}

func number(n uint64) string { return "0x" + strconv.FormatUint(n, 16) }

// Draw returns the number of a contract, popular ones more often, and some of its
// slots.
func (c *Chain) Draw(random *rand.Rand, slots int) (contract int, keys []common.Hash) {
	contract = int(rand.NewZipf(random, popularity, 1, uint64(len(c.contracts)-1)).Uint64())
	of := c.contracts[contract].keys
	for range slots {
		keys = append(keys, of[random.IntN(len(of))])
	}
	return contract, keys
}
