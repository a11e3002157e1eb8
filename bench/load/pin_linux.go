// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"
	"syscall"
	"unsafe"
)

// A processorSet is which processors a thread may run on, a bit for each.
type processorSet [16]uint64

// Pin binds a thread to processors, and what it starts from then on. 0 is the
// calling thread.
func Pin(thread int, cores []int) error {
	var set processorSet
	for _, c := range cores {
		if c < 0 || c >= 64*len(set) {
			return fmt.Errorf("there is no processor %d", c)
		}
		set[c/64] |= 1 << (c % 64)
	}
	if errno := affinity(syscall.SYS_SCHED_SETAFFINITY, thread, &set); errno != 0 {
		return fmt.Errorf("bind thread %d to processors %v: %w", thread, cores, errno)
	}
	return nil
}

// pinHere binds the calling thread to a processor until it is undone.
func pinHere(core int) (undo func() error, err error) {
	var before processorSet
	if errno := affinity(syscall.SYS_SCHED_GETAFFINITY, 0, &before); errno != 0 {
		return nil, fmt.Errorf("processors of this thread: %w", errno)
	}
	undo = func() error {
		if errno := affinity(syscall.SYS_SCHED_SETAFFINITY, 0, &before); errno != 0 {
			return fmt.Errorf("processors of this thread: %w", errno)
		}
		return nil
	}
	return undo, Pin(0, []int{core})
}

func affinity(call uintptr, thread int, set *processorSet) syscall.Errno {
	_, _, errno := syscall.RawSyscall(call, uintptr(thread), unsafe.Sizeof(*set), uintptr(unsafe.Pointer(set)))
	return errno
}
