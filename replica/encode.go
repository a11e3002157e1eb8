// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"glimpse/chain"
)

// The encoding of an Event:
//
//	version(1) kind(1) chain id, genesis(32), epoch, order, body
//	sealed:   ref parent(32) header body #transactions hash(32)… receipts diff marks digest(32)
//	unwound:  ref ref
//	tags:     ref marks
//	facts:    ref diff
//	pending:  ref base good-for why(1) #parts part…
//	part:     holes(1) header index first known(1) #transactions transaction… #layers layer…
//	transaction: hash(32) [bytes] [receipt]
//	layer:    first diff
//	ref:      number hash(32)
//	marks:    flags(1) [safe ref] [finalized ref]
//
// Numbers and counts are minimal uvarints; header, body, receipts, diff and bytes
// are preceded by their length; good-for is in milliseconds. Holes are the fields of
// a header that are not known although later ones are, the base fee as the lowest
// bit; they are zero in the header. Known says what there is beside the hashes of
// transactions: 1 for their bytes, 2 for receipts, and both where there are no
// transactions. Every Event has exactly one encoding, and DecodeEvent accepts
// nothing else.
const eventVersion = 1

// maxGoodFor bounds how long a replica believes what it does not hear of again.
const maxGoodFor = time.Hour

// AppendEvent appends the encoding of e. The error is of an event that is not as
// its documentation says.
func AppendEvent(dst []byte, e *Event) ([]byte, error) {
	if e.Body == nil {
		return nil, errors.New("encode event: it has no body")
	}
	dst = append(dst, eventVersion, byte(e.Body.kind()))
	dst = binary.AppendUvarint(dst, e.Chain.ChainID)
	dst = append(dst, e.Chain.Genesis[:]...)
	dst = binary.AppendUvarint(dst, e.Epoch)
	dst = binary.AppendUvarint(dst, e.Order)
	dst, err := appendBody(dst, e.Body)
	if err != nil {
		return nil, fmt.Errorf("encode event at block %s: %w", e.At(), err)
	}
	return dst, nil
}

func appendBody(dst []byte, body Body) ([]byte, error) {
	switch b := body.(type) {
	case *Sealed:
		return appendSealed(dst, b)
	case *Unwound:
		return appendRef(appendRef(dst, b.To), b.Goal), nil
	case *Tags:
		return appendMarks(appendRef(dst, b.Head), b.Marks), nil
	case *Facts:
		d, err := factsAsDiff(b.Facts)
		if err != nil {
			return nil, err
		}
		return appendDiff(appendRef(dst, b.Head), d), nil
	case *Pending:
		return appendPending(dst, b)
	default:
		return nil, fmt.Errorf("body %T", body)
	}
}

func appendSealed(dst []byte, s *Sealed) ([]byte, error) {
	if s.Diff == nil {
		return nil, errors.New("block has no diff")
	}
	dst = appendRef(dst, s.Ref)
	dst = append(dst, s.Parent[:]...)
	dst = appendBytes(dst, s.Header)
	dst = appendBytes(dst, s.Body)
	dst = binary.AppendUvarint(dst, uint64(len(s.Transactions)))
	for _, h := range s.Transactions {
		dst = append(dst, h[:]...)
	}
	dst = appendBytes(dst, s.Receipts)
	dst = appendDiff(dst, s.Diff)
	dst = appendMarks(dst, s.Marks)
	return append(dst, s.Digest[:]...), nil
}

func appendPending(dst []byte, p *Pending) ([]byte, error) {
	if p.GoodFor < 0 || p.GoodFor > maxGoodFor {
		return nil, fmt.Errorf("good for %v, want up to %v", p.GoodFor, maxGoodFor)
	}
	dst = appendRef(dst, p.Parent)
	dst = binary.AppendUvarint(dst, p.Base)
	dst = binary.AppendUvarint(dst, uint64(p.GoodFor.Milliseconds()))
	dst = append(dst, byte(p.Why))
	dst = binary.AppendUvarint(dst, uint64(len(p.Blocks)))
	for i := range p.Blocks {
		var err error
		if dst, err = appendPart(dst, &p.Blocks[i]); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

const (
	knownTransactions = 1 << iota
	knownReceipts
)

func appendPart(dst []byte, p *Part) ([]byte, error) {
	dst, err := appendHeader(dst, p.Header)
	if err != nil {
		return nil, err
	}
	bodies, receipts := len(p.Transactions) == len(p.Hashes), len(p.Receipts) == len(p.Hashes)
	if !bodies && p.Transactions != nil || !receipts && p.Receipts != nil {
		return nil, fmt.Errorf("%d transactions and %d receipts for %d hashes", len(p.Transactions), len(p.Receipts), len(p.Hashes))
	}
	dst = binary.AppendUvarint(dst, p.Index)
	dst = binary.AppendUvarint(dst, uint64(p.First))
	dst = append(dst, flag(bodies)*knownTransactions|flag(receipts)*knownReceipts)
	dst = binary.AppendUvarint(dst, uint64(len(p.Hashes)))
	for i, h := range p.Hashes {
		dst = append(dst, h[:]...)
		if bodies {
			raw, err := p.Transactions[i].MarshalBinary()
			if err != nil {
				return nil, fmt.Errorf("transaction %s: %w", h, err)
			}
			dst = appendBytes(dst, raw)
		}
		if receipts {
			dst = appendReceipt(dst, p.Receipts[i])
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(p.Layers)))
	for _, l := range p.Layers {
		dst = binary.AppendUvarint(dst, uint64(l.First))
		dst = appendDiff(dst, l.Diff)
	}
	return dst, nil
}

// appendReceipt leaves out what the block, the hash and the logs say already.
// The index of the first log is kept, because the receipts before may not be
// here.
func appendReceipt(dst []byte, r *types.Receipt) []byte {
	dst = append(dst, r.Type)
	dst = appendBytes(dst, r.PostState)
	dst = binary.AppendUvarint(dst, r.Status)
	dst = binary.AppendUvarint(dst, r.CumulativeGasUsed)
	dst = binary.AppendUvarint(dst, r.GasUsed)
	dst = binary.AppendUvarint(dst, r.BlobGasUsed)
	dst = appendBig(dst, r.EffectiveGasPrice)
	dst = appendBig(dst, r.BlobGasPrice)
	dst = append(dst, r.ContractAddress[:]...)
	dst = binary.AppendUvarint(dst, uint64(len(r.Logs)))
	if len(r.Logs) > 0 {
		dst = binary.AppendUvarint(dst, uint64(r.Logs[0].Index))
	}
	for _, l := range r.Logs {
		dst = append(dst, l.Address[:]...)
		dst = binary.AppendUvarint(dst, uint64(len(l.Topics)))
		for _, t := range l.Topics {
			dst = append(dst, t[:]...)
		}
		dst = appendBytes(dst, l.Data)
	}
	return dst
}

// appendBig writes 0 for nil, and else one more than the length before the bytes.
func appendBig(dst []byte, v *big.Int) []byte {
	if v == nil {
		return append(dst, 0)
	}
	b := v.Bytes()
	return append(binary.AppendUvarint(dst, uint64(len(b))+1), b...)
}

func appendDiff(dst []byte, d *chain.Diff) []byte { return appendBytes(dst, chain.AppendDiff(nil, d)) }

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

func appendRef(dst []byte, r chain.Ref) []byte {
	return append(binary.AppendUvarint(dst, uint64(r.Number)), r.Hash[:]...)
}

const (
	markSafe = 1 << iota
	markFinalized
)

func appendMarks(dst []byte, m Marks) []byte {
	dst = append(dst, flag(m.Safe != nil)*markSafe|flag(m.Finalized != nil)*markFinalized)
	for _, r := range []*chain.Ref{m.Safe, m.Finalized} {
		if r != nil {
			dst = appendRef(dst, *r)
		}
	}
	return dst
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}
