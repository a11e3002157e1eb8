// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"glimpse/chain"
)

// DefaultPiece is the most that one message of an event holds by default. It is
// half of what a NATS server takes by default.
const DefaultPiece = 512 << 10

// DefaultMaxEvent is the most that an event may have by default: many times what
// the largest blocks have.
const DefaultMaxEvent = 64 << 20

// A Frame is one message: an event, or a piece of one that is too large for one
// message.
//
//	version(1) epoch, block number, block hash(32), index, count, size, checksum(8), piece
//
// Numbers are minimal uvarints; size is that of the event, checksum the first
// bytes of its SHA-256. What is before the piece lets a reader find its place
// among many messages without putting events together.
type Frame struct {
	Epoch uint64
	At    chain.Ref // see Event.At

	Index, Count uint64 // which piece it is, and of how many
	Size         uint64
	Checksum     [8]byte
	Piece        []byte
}

const frameVersion = 1

// Last reports whether an event is complete with this piece.
func (f *Frame) Last() bool { return f.Index == f.Count-1 }

// Cut encodes e as the messages that carry it, of at most piece bytes beside
// their head, which is short. The error wraps ErrTooLarge where e has more than
// most bytes.
func Cut(e *Event, piece, most int) ([][]byte, error) {
	piece = max(piece, 1)
	data, err := AppendEvent(nil, e)
	if err != nil {
		return nil, err
	}
	if len(data) > most {
		return nil, fmt.Errorf("event at block %s of %d bytes: %w of %d", e.At(), len(data), ErrTooLarge, most)
	}
	sum := sha256.Sum256(data)
	f := Frame{
		Epoch: e.Epoch, At: e.At(), Size: uint64(len(data)),
		Count: uint64(max(1, (len(data)+piece-1)/piece)), Checksum: [8]byte(sum[:]),
	}
	messages := make([][]byte, f.Count)
	for i := range messages {
		f.Index, f.Piece = uint64(i), data[:min(piece, len(data))]
		data = data[len(f.Piece):]
		messages[i] = appendFrame(nil, &f)
	}
	return messages, nil
}

// ErrTooLarge refuses an event that is larger than agreed.
var ErrTooLarge = errors.New("more than the limit")

func appendFrame(dst []byte, f *Frame) []byte {
	dst = append(dst, frameVersion)
	dst = binary.AppendUvarint(dst, f.Epoch)
	dst = appendRef(dst, f.At)
	dst = binary.AppendUvarint(dst, f.Index)
	dst = binary.AppendUvarint(dst, f.Count)
	dst = binary.AppendUvarint(dst, f.Size)
	dst = append(dst, f.Checksum[:]...)
	return append(dst, f.Piece...)
}

// DecodeFrame reads one message. The Piece is a part of data.
func DecodeFrame(data []byte) (*Frame, error) {
	r := reader{rest: data}
	if v := r.byte(); v != frameVersion {
		r.fail("message of version %d, this program reads %d", v, frameVersion)
	}
	f := &Frame{Epoch: r.uvarint(), At: r.ref(), Index: r.uvarint(), Count: r.uvarint(), Size: r.uvarint()}
	copy(f.Checksum[:], r.take(len(f.Checksum)))
	f.Piece = r.rest
	if r.err == nil && (f.Index >= f.Count || len(f.Piece) == 0 || uint64(len(f.Piece)) > f.Size || f.Count > f.Size) {
		r.fail("piece %d of %d with %d of %d bytes", f.Index, f.Count, len(f.Piece), f.Size)
	}
	if r.err != nil {
		return nil, r.err
	}
	return f, nil
}

// An Assembler puts events together from messages that come in order. It holds
// one event at most. A message that begins another event discards what was not
// complete: its writer has died.
type Assembler struct {
	// Most is the most that an event may have; 0 means DefaultMaxEvent.
	Most int

	first Frame // of the event that is put together; its Count is 0 where there is none
	next  uint64
	data  []byte
}

// Add takes the next message and returns the event that is complete with it, and
// nil with ErrIncomplete where there is none yet. What cannot be part of an event
// is an error that wraps ErrEvent; the Assembler then waits for another beginning.
func (a *Assembler) Add(f *Frame) (*Event, error) {
	if f.Index == 0 {
		a.Reset()
		a.first = *f
		a.first.Piece = nil
	}
	most := a.Most
	if most == 0 {
		most = DefaultMaxEvent
	}
	switch {
	case a.first.Count == 0:
		return nil, fmt.Errorf("%w: it began before", ErrIncomplete)
	case f.Index != a.next || f.Count != a.first.Count || f.Size != a.first.Size || f.Checksum != a.first.Checksum || f.Epoch != a.first.Epoch:
		return nil, a.refuse("piece %d of another event", f.Index)
	case f.Size > uint64(most):
		return nil, a.refuse("%d bytes: %v of %d", f.Size, ErrTooLarge, most)
	case uint64(len(a.data)+len(f.Piece)) > f.Size:
		return nil, a.refuse("pieces of more than %d bytes", f.Size)
	}
	// The memory grows with what has come, not with what was announced.
	a.data = append(a.data, f.Piece...)
	a.next++
	if a.next < f.Count {
		return nil, ErrIncomplete
	}
	return a.finish(f)
}

// ErrIncomplete is the answer of an Assembler that waits for more of an event.
var ErrIncomplete = errors.New("event is not complete")

func (a *Assembler) finish(last *Frame) (*Event, error) {
	if uint64(len(a.data)) != last.Size {
		return nil, a.refuse("%d bytes, want %d", len(a.data), last.Size)
	}
	if sum := sha256.Sum256(a.data); [8]byte(sum[:]) != last.Checksum {
		return nil, a.refuse("checksum %x, want %x", sum[:8], last.Checksum)
	}
	e, err := DecodeEvent(a.data)
	a.Reset()
	if err != nil {
		return nil, err
	}
	if e.Epoch != last.Epoch || e.At() != last.At {
		return nil, fmt.Errorf("%w: message of epoch %d at %s, event of %d at %s", ErrEvent, last.Epoch, last.At, e.Epoch, e.At())
	}
	return e, nil
}

func (a *Assembler) refuse(format string, args ...any) error {
	a.Reset()
	return fmt.Errorf("%w: %s", ErrEvent, fmt.Sprintf(format, args...))
}

// Reset forgets what is not complete.
func (a *Assembler) Reset() { a.first, a.next, a.data = Frame{}, 0, nil }
