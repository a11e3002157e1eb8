// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"strconv"
)

func blockNumber(s *session, dst []byte, args *arguments) ([]byte, error) {
	return appendQuantity(dst, uint64(s.Latest().Number)), args.done()
}

func chainID(s *session, dst []byte, args *arguments) ([]byte, error) {
	return appendQuantity(dst, s.api.config.ChainID), args.done()
}

func netVersion(s *session, dst []byte, args *arguments) ([]byte, error) {
	dst = append(dst, '"')
	dst = strconv.AppendUint(dst, s.api.config.ChainID, 10)
	return append(dst, '"'), args.done()
}

func clientVersion(s *session, dst []byte, args *arguments) ([]byte, error) {
	return strconv.AppendQuote(dst, s.api.config.Version), args.done()
}

// syncing is always false: what is not in the store is not on its way.
func syncing(_ *session, dst []byte, args *arguments) ([]byte, error) {
	return append(dst, "false"...), args.done()
}

// capabilities tells a router which requests it may send here. Pruning takes state
// alone; proofs are not served.
func capabilities(s *session, dst []byte, args *arguments) ([]byte, error) {
	if err := args.done(); err != nil {
		return nil, err
	}
	head := s.Latest()
	dst = append(dst, `{"head":{"number":`...)
	dst = appendQuantity(dst, uint64(head.Number))
	dst = append(dst, `,"hash":`...)
	dst = appendData(dst, head.Hash[:])
	dst = append(dst, `},"state":{"disabled":false,"oldestBlock":`...)
	dst = appendQuantity(dst, uint64(s.Oldest()))
	dst = append(dst, '}')
	for _, whole := range []string{"blocks", "tx", "logs", "receipts"} {
		dst = append(dst, `,"`+whole+`":{"disabled":false,"oldestBlock":"0x0"}`...)
	}
	return append(dst, `,"stateproofs":{"disabled":true}}`...), nil
}
