// SPDX-License-Identifier: Apache-2.0

package pending_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"glimpse/chain"
	"glimpse/head"
	"glimpse/pending"
)

// A stored is a link as head reads it.
type stored struct {
	*link
	refs atomic.Int64
}

func (s *stored) at(n chain.Number) error {
	switch {
	case s.refs.Load() <= 0:
		return errors.New("read after release")
	case n != s.ref().Number:
		return fmt.Errorf("block %d is not kept", n)
	}
	return nil
}
func (s *stored) Head() chain.Ref              { return s.ref() }
func (s *stored) Oldest() chain.Number         { return s.ref().Number }
func (s *stored) Safe() (chain.Ref, bool)      { return chain.Ref{}, false }
func (s *stored) Finalized() (chain.Ref, bool) { return chain.Ref{}, false }
func (s *stored) Account(n chain.Number, a chain.Address) (chain.Account, error) {
	account, _ := s.state.Account(a)
	return account, s.at(n)
}
func (s *stored) Slot(n chain.Number, a chain.Address, k chain.Slot) (chain.Value, error) {
	value, _ := s.state.Slot(a, k)
	return value, s.at(n)
}
func (s *stored) Code(h chain.Hash) ([]byte, error) { return s.state.Code(h) }
func (s *stored) Number(chain.Hash) (chain.Number, bool, error) {
	return 0, false, errors.New("not asked for")
}
func (s *stored) Header(chain.Number) ([]byte, error) { return nil, errors.New("not asked for") }
func (s *stored) Body(chain.Number) ([]byte, error)   { return nil, errors.New("not asked for") }
func (s *stored) Hash(chain.Number) (chain.Hash, error) {
	return chain.Hash{}, errors.New("not asked for")
}
func (s *stored) Diff(chain.Number) (*chain.Diff, error) { return nil, errors.New("not asked for") }
func (s *stored) SlotHistory(chain.Address, chain.Slot, chain.Number, chain.Number, int) ([]chain.SlotVersion, bool, error) {
	return nil, false, errors.New("not asked for")
}
func (s *stored) CodeHistory(chain.Address, chain.Number, chain.Number, int) ([]chain.CodeVersion, bool, error) {
	return nil, false, errors.New("not asked for")
}
func (s *stored) Slots(a chain.Address, n chain.Number, after *chain.Slot, limit int) (slots []chain.SlotDiff, more bool, err error) {
	for _, slot := range slotsOf(s.state, a) {
		if after != nil && slot.Slot.Cmp(*after) <= 0 {
			continue
		}
		if more = len(slots) == limit; more {
			break
		}
		slots = append(slots, slot)
	}
	return slots, more, s.at(n)
}
func (s *stored) Receipts(chain.Number) ([]byte, error) { return nil, errors.New("not asked for") }
func (s *stored) Transaction(chain.Hash) (chain.Number, int, bool, error) {
	return 0, 0, false, errors.New("not asked for")
}
func (s *stored) Retain() bool {
	for {
		n := s.refs.Load()
		if n == 0 {
			return false
		}
		if s.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}
func (s *stored) Release() {
	if s.refs.Add(-1) < 0 {
		panic("released too often")
	}
}

// A moment names what was published: the sealed head, and the newest block as it
// was pre-confirmed on it, which is another one whenever anything below changed.
type moment struct {
	latest chain.Hash
	newest *chain.Preconfirmed // nil where nothing was
}

func momentOf(latest chain.Ref, b *chain.Preconfirmed, ok bool) moment {
	if !ok {
		return moment{latest: latest.Hash}
	}
	return moment{latest: latest.Hash, newest: b}
}

// digest reads many things from a state.
func digest(view chain.View) (sum [32]byte, err error) {
	hash := sha256.New()
	for _, addr := range []chain.Address{mortal, child, factory} {
		account, err := view.Account(addr)
		if err != nil {
			return sum, err
		}
		hash.Write(account.CodeHash[:])
		hash.Write([]byte{byte(account.Nonce), byte(account.Balance[0])})
		for n := range uint64(8) {
			value, err := view.Slot(addr, word(n))
			if err != nil {
				return sum, err
			}
			hash.Write(value[:])
		}
	}
	return [32]byte(hash.Sum(nil)), nil
}

// P1, P3, P4 and P6: whatever happens, a reader sees one moment that there was,
// whole, on pending and latest together.
func TestReadersSeeOnlyWhatExisted(t *testing.T) {
	const readers, steps = 64, 300
	s := newStorm(t, 4711)
	var publisher head.Publisher
	var existed sync.Map // moment to the digests of pending and latest
	record := func(o *pending.Overlay) {
		onPending, err := digest(o.On(s.latest.state))
		if err != nil {
			t.Fatal(err)
		}
		onLatest, err := digest(s.latest.state)
		if err != nil {
			t.Fatal(err)
		}
		b, ok := o.Preconfirmed()
		existed.Store(momentOf(s.latest.ref(), b, ok), [2][32]byte{onPending, onLatest})
		state := &stored{link: s.latest}
		state.refs.Store(1)
		publisher.Publish(state, o, time.Time{})
	}
	record(s.tracker.Overlay())
	s.after = record

	stop := make(chan struct{})
	var group sync.WaitGroup
	var batches, onPending atomic.Int64
	for range readers {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				lease := publisher.Acquire()
				if err := readBatch(lease, &existed); err != nil {
					t.Error(err)
				}
				if _, ok := lease.Pending(); ok {
					onPending.Add(1)
				}
				lease.Release()
				batches.Add(1)
				runtime.Gosched() // on few cores the writer must have its turn
			}
		})
	}
	for range steps {
		s.step()
	}
	for batches.Load() < 10*readers || onPending.Load() == 0 {
		s.step()
	}
	close(stop)
	group.Wait()
	publisher.Close()
	s.after = nil
	s.finish()
}

// readBatch reads all twice, as the entries of a batch would.
func readBatch(lease *head.Lease, existed *sync.Map) error {
	b, ok := lease.Pending()
	at := momentOf(lease.Latest(), b, ok)
	want, known := existed.Load(at)
	if !known {
		return fmt.Errorf("read a moment that never was: %+v", at)
	}
	if ok && b.Header.Number.Uint64() <= uint64(lease.Latest().Number) {
		return fmt.Errorf("pending is %d, latest is %d", b.Header.Number, lease.Latest().Number)
	}
	for range 2 {
		var got [2][32]byte
		for i, sel := range []chain.Selector{chain.Pending, chain.Latest} {
			view, err := lease.View(sel)
			if err != nil {
				return err
			}
			if got[i], err = digest(view); err != nil {
				return err
			}
		}
		if got != want {
			return fmt.Errorf("read %x at %+v, want %x", got, at, want)
		}
	}
	return nil
}
