// SPDX-License-Identifier: Apache-2.0

package chaingen

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/core/vm"
)

// Assemble turns a listing into bytecode. A word is an instruction, a number to
// push, "name:" for a jump destination or "@name" to push where it is. It
// panics over anything else.
func Assemble(listing string) []byte {
	var code []byte
	labels := make(map[string]int)
	holes := make(map[int]string) // where the two bytes of a label go
	for _, word := range strings.Fields(listing) {
		if name, ok := strings.CutSuffix(word, ":"); ok {
			labels[name] = len(code)
			code = append(code, byte(vm.JUMPDEST))
		} else if name, ok := strings.CutPrefix(word, "@"); ok {
			holes[len(code)+1] = name
			code = append(code, byte(vm.PUSH2), 0, 0)
		} else if n, err := strconv.ParseUint(word, 0, 24); err == nil {
			code = append(code, byte(vm.PUSH3), byte(n>>16), byte(n>>8), byte(n))
		} else if op := vm.StringToOp(word); op != vm.STOP || word == "STOP" {
			code = append(code, byte(op))
		} else {
			panic(fmt.Sprintf("no instruction %q", word))
		}
	}
	for at, name := range holes {
		code[at], code[at+1] = byte(labels[name]>>8), byte(labels[name])
	}
	return code
}

// Deployer returns init code that runs a listing and then returns runtime.
func Deployer(listing string, runtime []byte) []byte {
	// The size of a PUSH3 does not depend on its number, so the prefix has the
	// same length with any offset.
	prefix := func(offset int) []byte {
		return Assemble(fmt.Sprintf("%s %d DUP1 %d 0 CODECOPY 0 RETURN", listing, len(runtime), offset))
	}
	return append(prefix(len(prefix(0))), runtime...)
}
