// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"

	"glimpse/chain"
	"glimpse/follow/upstream"
	"glimpse/internal/chaingen"
	"glimpse/internal/memview"
)

const (
	anna = "0x00000000000000000000000000000000000000aa"
	bert = "0x00000000000000000000000000000000000000bb"
	one  = "0x0000000000000000000000000000000000000000000000000000000000000001"
	two  = "0x0000000000000000000000000000000000000000000000000000000000000002"
	five = "0x0000000000000000000000000000000000000000000000000000000000000005"
	six  = "0x0000000000000000000000000000000000000000000000000000000000000006"
)

func addressOf(text string) (a chain.Address) { copy(a[:], hexutil.MustDecode(text)); return a }
func hashOf(text string) (h chain.Hash)       { copy(h[:], hexutil.MustDecode(text)); return h }

// before is the state that the traces of the tests are about: anna is a
// contract with a slot, bert does not exist.
func before(t *testing.T) *memview.State {
	t.Helper()
	s := memview.New()
	code := chain.NewCode([]byte{1})
	err := s.Apply(&chain.Diff{
		Accounts: []chain.AccountDiff{{
			Address: addressOf(anna), Changed: true, Account: chain.Account{Exists: true, Nonce: 1, Balance: *uint256.NewInt(100), CodeHash: code.Hash},
			Slots: []chain.SlotDiff{{Slot: hashOf(one), Value: hashOf(five)}},
		}},
		Codes: []chain.Code{code},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tracedBlock is a block with n transactions, after Cancun where cancun is set.
func tracedBlock(n int, cancun bool) *upstream.Block {
	b := &upstream.Block{Header: &types.Header{Number: big.NewInt(5), Difficulty: new(big.Int), Time: 1000}}
	if cancun {
		b.Header.ParentBeaconRoot = &chain.Hash{9}
	}
	for i := range byte(n) {
		b.Transactions = append(b.Transactions, upstream.Transaction{Hash: chain.Hash{i + 1}})
	}
	return b
}

func traceOf(results ...string) json.RawMessage {
	var list []string
	for i, r := range results {
		list = append(list, fmt.Sprintf(`{"txHash":"%s","result":%s}`, chain.Hash{byte(i) + 1}, r))
	}
	return json.RawMessage("[" + strings.Join(list, ",") + "]")
}

func TestTraceDiff(t *testing.T) {
	annaPre := `"` + anna + `":{"balance":"0x64","nonce":1,"code":"0x01"`
	codeOne, codeTwo := chain.NewCode([]byte{1}), chain.NewCode([]byte{2})
	was := chain.Account{Exists: true, Nonce: 1, Balance: *uint256.NewInt(100), CodeHash: codeOne.Hash}
	with := func(change func(*chain.Account)) chain.Account { a := was; change(&a); return a }
	diff := func(accounts ...chain.AccountDiff) *chain.Diff { return &chain.Diff{Accounts: accounts} }
	gone := diff(chain.AccountDiff{Address: addressOf(anna), Changed: true, Wiped: true})
	tests := []struct {
		name   string
		traces []string
		want   *chain.Diff
	}{
		{"nothing", nil, diff()},
		{"a transaction without a change", []string{`{"pre":{},"post":{}}`}, diff()},
		{"only a balance", []string{`{"pre":{` + annaPre + `}},"post":{"` + anna + `":{"balance":"0x65"}}}`},
			diff(chain.AccountDiff{Address: addressOf(anna), Changed: true, Account: with(func(a *chain.Account) { a.Balance = *uint256.NewInt(101) })})},
		{"a slot is set and another one cleared", []string{
			`{"pre":{` + annaPre + `,"storage":{"` + one + `":"` + five + `"}}},"post":{"` + anna + `":{"storage":{"` + two + `":"` + six + `"}}}}`},
			diff(chain.AccountDiff{Address: addressOf(anna), Slots: []chain.SlotDiff{{Slot: hashOf(one)}, {Slot: hashOf(two), Value: hashOf(six)}}})},
		{"the last of two transactions counts", []string{
			`{"pre":{` + annaPre + `}},"post":{"` + anna + `":{"balance":"0x65","storage":{"` + two + `":"` + five + `"}}}}`,
			`{"pre":{"` + anna + `":{"balance":"0x65","nonce":1,"code":"0x01","storage":{"` + two + `":"` + five + `"}}},"post":{"` + anna + `":{"nonce":2,"storage":{"` + two + `":"` + six + `"}}}}`},
			diff(chain.AccountDiff{Address: addressOf(anna), Changed: true,
				Account: with(func(a *chain.Account) { a.Balance, a.Nonce = *uint256.NewInt(101), 2 }),
				Slots:   []chain.SlotDiff{{Slot: hashOf(two), Value: hashOf(six)}}})},
		{"what is put back is no change", []string{
			`{"pre":{` + annaPre + `,"storage":{"` + one + `":"` + five + `"}}},"post":{"` + anna + `":{"balance":"0x65","storage":{"` + one + `":"` + six + `"}}}}`,
			`{"pre":{"` + anna + `":{"balance":"0x65","nonce":1,"code":"0x01","storage":{"` + one + `":"` + six + `"}}},"post":{"` + anna + `":{"balance":"0x64","storage":{"` + one + `":"` + five + `"}}}}`},
			diff()},
		{"an account is created", []string{`{"pre":{},"post":{"` + bert + `":{"nonce":1,"code":"0x02","storage":{"` + one + `":"` + six + `"}}}}`},
			&chain.Diff{Accounts: []chain.AccountDiff{{Address: addressOf(bert), Changed: true,
				Account: chain.Account{Exists: true, Nonce: 1, CodeHash: codeTwo.Hash}, Slots: []chain.SlotDiff{{Slot: hashOf(one), Value: hashOf(six)}}}},
				Codes: []chain.Code{codeTwo}}},
		{"an account is created with a nonce in hex", []string{`{"pre":{},"post":{"` + bert + `":{"nonce":"0xa"}}}`},
			diff(chain.AccountDiff{Address: addressOf(bert), Changed: true, Account: chain.Account{Exists: true, Nonce: 10}})},
		{"code is replaced", []string{`{"pre":{` + annaPre + `}},"post":{"` + anna + `":{"code":"0x02"}}}`},
			&chain.Diff{Accounts: []chain.AccountDiff{{Address: addressOf(anna), Changed: true, Account: with(func(a *chain.Account) { a.CodeHash = codeTwo.Hash })}},
				Codes: []chain.Code{codeTwo}}},
		{"code is taken away", []string{`{"pre":{` + annaPre + `}},"post":{"` + anna + `":{"code":"0x"}}}`},
			diff(chain.AccountDiff{Address: addressOf(anna), Changed: true, Account: with(func(a *chain.Account) { a.CodeHash = chain.Hash{} })})},
		{"code is taken away, told by its hash", []string{`{"pre":{` + annaPre + `}},"post":{"` + anna + `":{"codeHash":"` + types.EmptyCodeHash.Hex() + `"}}}`},
			diff(chain.AccountDiff{Address: addressOf(anna), Changed: true, Account: with(func(a *chain.Account) { a.CodeHash = chain.Hash{} })})},
		{"an account is destroyed", []string{`{"pre":{` + annaPre + `}},"post":{}}`}, gone},
		{"an account is created and destroyed", []string{
			`{"pre":{},"post":{"` + bert + `":{"nonce":1}}}`, `{"pre":{"` + bert + `":{"balance":"0x0","nonce":1}},"post":{}}`}, diff()},
		{"an account is destroyed and created again", []string{
			`{"pre":{` + annaPre + `,"storage":{"` + one + `":"` + five + `"}}},"post":{}}`,
			`{"pre":{},"post":{"` + anna + `":{"balance":"0x64","nonce":1,"code":"0x01","storage":{"` + two + `":"` + six + `"}}}}`},
			diff(chain.AccountDiff{Address: addressOf(anna), Wiped: true, Slots: []chain.SlotDiff{{Slot: hashOf(two), Value: hashOf(six)}}})},
		{"all goes, and so does the account", []string{`{"pre":{"` + bert + `":{"balance":"0x5"}},"post":{"` + bert + `":{"balance":"0x0"}}}`}, diff()},
		{"what was before is not what is held", []string{
			`{"pre":{"` + anna + `":{"balance":"0xc8","nonce":4,"code":"0x01"}},"post":{"` + anna + `":{"balance":"0xc9"}}}`},
			diff(chain.AccountDiff{Address: addressOf(anna), Changed: true, Account: with(func(a *chain.Account) { a.Balance, a.Nonce = *uint256.NewInt(201), 4 })})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := upstream.TraceDiff(tracedBlock(len(tt.traces), false), traceOf(tt.traces...), before(t), upstream.TraceRules{})
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(chain.AppendDiff(nil, got), chain.AppendDiff(nil, tt.want)) {
				t.Errorf("got %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// geth calls an account destroyed also where the call that did it was reverted.
// The state after the block knows better.
func TestReportedDestructionIsLookedUp(t *testing.T) {
	trace := traceOf(`{"pre":{"` + anna + `":{"balance":"0x64","nonce":1,"code":"0x01","storage":{"` + one + `":"` + five + `","` + two + `":"0x` + strings.Repeat("00", 32) + `"}}},"post":{}}`)
	after := before(t)
	lives := chain.Diff{Accounts: []chain.AccountDiff{{Address: addressOf(anna), Slots: []chain.SlotDiff{{Slot: hashOf(two), Value: hashOf(six)}}}}}
	if err := after.Apply(&lives); err != nil {
		t.Fatal(err)
	}
	got, err := upstream.TraceDiff(tracedBlock(1, true), trace, before(t), upstream.TraceRules{After: after})
	if err != nil || !reflect.DeepEqual(*got, lives) {
		t.Errorf("it lives: got %+v, %v, want %+v", got, err, lives)
	}
	got, err = upstream.TraceDiff(tracedBlock(1, true), trace, before(t), upstream.TraceRules{After: memview.New()})
	if err != nil || len(got.Accounts) != 1 || !got.Accounts[0].Wiped || got.Accounts[0].Account.Exists {
		t.Errorf("it is gone: got %+v, %v, want that it is wiped", got, err)
	}
	if got, err := upstream.TraceDiff(tracedBlock(1, false), trace, before(t), upstream.TraceRules{After: after}); !errors.Is(err, upstream.ErrTrace) {
		t.Errorf("before Cancun: got %+v, %v, want ErrTrace", got, err)
	}
}

// A vault that no trace shows is read from the state after the block.
func TestUnseenAccountsAreRead(t *testing.T) {
	after := before(t)
	paid := chain.Diff{Accounts: []chain.AccountDiff{{Address: addressOf(bert), Changed: true, Account: chain.Account{Exists: true, Balance: *uint256.NewInt(8)}}}}
	if err := after.Apply(&paid); err != nil {
		t.Fatal(err)
	}
	rules := upstream.TraceRules{After: after, Unseen: []chain.Address{addressOf(bert), addressOf(anna)}}
	got, err := upstream.TraceDiff(tracedBlock(0, true), traceOf(), before(t), rules)
	if err != nil || !reflect.DeepEqual(*got, paid) {
		t.Errorf("got %+v, %v, want %+v", got, err, paid)
	}
	rules.After = nil
	if got, err := upstream.TraceDiff(tracedBlock(0, true), traceOf(), before(t), rules); err == nil {
		t.Errorf("nothing to read from: got %+v, want an error", got)
	}
}

func TestTracesThatTellNothing(t *testing.T) {
	tests := []struct {
		name, trace  string
		transactions int
	}{
		{"null", `null`, 1},
		{"an object", `{}`, 1},
		{"too few", `[]`, 1},
		{"too many", string(traceOf(`{"pre":{},"post":{}}`, `{"pre":{},"post":{}}`)), 1},
		{"of another transaction", strings.Replace(string(traceOf(`{"pre":{},"post":{}}`)), "0x01", "0x02", 1), 1},
		{"an error", `[{"error":"execution timeout"}]`, 1},
		{"not in diff mode", string(traceOf(`{"` + anna + `":{"balance":"0x1"}}`)), 1},
		{"without post", string(traceOf(`{"pre":{}}`)), 1},
		{"a null account", string(traceOf(`{"pre":{},"post":{"` + anna + `":null}}`)), 1},
		{"a balance that is none", string(traceOf(`{"pre":{},"post":{"` + anna + `":{"balance":"x"}}}`)), 1},
		{"code by its hash only", string(traceOf(`{"pre":{},"post":{"` + bert + `":{"nonce":1,"codeHash":"` + one + `"}}}`)), 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := upstream.TraceDiff(tracedBlock(tt.transactions, true), json.RawMessage(tt.trace), before(t), upstream.TraceRules{})
			if !errors.Is(err, upstream.ErrTrace) {
				t.Errorf("got %+v, %v, want ErrTrace", got, err)
			}
		})
	}
	mined := tracedBlock(0, false)
	mined.Header.Difficulty = big.NewInt(1)
	if got, err := upstream.TraceDiff(mined, traceOf(), before(t), upstream.TraceRules{}); !errors.Is(err, upstream.ErrTrace) {
		t.Errorf("proof of work: got %+v, %v, want ErrTrace", got, err)
	}
	broken := errors.New("disk")
	if got, err := upstream.TraceDiff(tracedBlock(1, false), traceOf(`{"pre":{},"post":{"`+anna+`":{"nonce":4}}}`), failing{broken}, upstream.TraceRules{}); !errors.Is(err, broken) {
		t.Errorf("a state that cannot be read: got %+v, %v, want its error", got, err)
	}
}

// failing is a View that knows nothing.
type failing struct{ err error }

func (f failing) Account(chain.Address) (chain.Account, error)        { return chain.Account{}, f.err }
func (f failing) Slot(chain.Address, chain.Slot) (chain.Value, error) { return chain.Value{}, f.err }
func (f failing) Code(chain.Hash) ([]byte, error)                     { return nil, f.err }

// Blocks without transactions change what the system does alone: beacon roots,
// parent hashes, withdrawals and request queues. Executing them says what.
func TestSystemWrites(t *testing.T) {
	text, _ := chaingen.Generate(1, 8, chaingen.Options{}) // all forks begin within eight blocks
	blocks, err := chaingen.Empty(text, 12)
	if err != nil {
		t.Fatal(err)
	}
	w := worldOf(t, text, blocks)
	if w.blocks[12].Header().RequestsHash == nil {
		t.Fatal("the chain does not reach Prague")
	}
	for n, b := range w.blocks[1:] {
		fetched := &upstream.Block{Header: b.Header(), Withdrawals: b.Withdrawals()}
		diff, err := upstream.TraceDiff(fetched, traceOf(), w.states[n], upstream.TraceRules{Requests: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.leadsTo(n+1, diff); err != nil {
			t.Errorf("block %d: %v", n+1, err)
		}
	}
}

func TestWithdrawalsAreCreditedOnTop(t *testing.T) {
	b := tracedBlock(1, false)
	b.Withdrawals = types.Withdrawals{{Address: addressOf(anna), Amount: 2}, {Address: addressOf(bert), Amount: 0}, {Address: addressOf(anna), Amount: 1}}
	trace := traceOf(`{"pre":{"` + anna + `":{"balance":"0x64","nonce":1,"code":"0x01"}},"post":{"` + anna + `":{"balance":"0x65"}}}`)
	got, err := upstream.TraceDiff(b, trace, before(t), upstream.TraceRules{})
	if err != nil {
		t.Fatal(err)
	}
	want := uint256.NewInt(3*params.GWei + 0x65)
	if len(got.Accounts) != 1 || !got.Accounts[0].Account.Balance.Eq(want) {
		t.Errorf("got %+v, want one balance of %s", got, want)
	}
}

// A queue whose numbers are all above zero, at the end of a block.
func TestRequestQueues(t *testing.T) {
	const inhibited = math.MaxUint64 // the excess of a contract that was never called
	tests := []struct {
		name          string
		queue         chain.Address
		before, after [4]uint64 // excess, count, head, tail
	}{
		{"withdrawals: some are handed over", params.WithdrawalQueueAddress, [4]uint64{5, 4, 10, 40}, [4]uint64{7, 0, 26, 40}},
		{"withdrawals: all are", params.WithdrawalQueueAddress, [4]uint64{0, 1, 10, 26}, [4]uint64{0, 0, 0, 0}},
		{"withdrawals: the first system call", params.WithdrawalQueueAddress, [4]uint64{inhibited, 5, 0, 5}, [4]uint64{3, 0, 0, 0}},
		{"consolidations: some are handed over", params.ConsolidationQueueAddress, [4]uint64{5, 4, 10, 40}, [4]uint64{8, 0, 12, 40}},
		{"consolidations: all are", params.ConsolidationQueueAddress, [4]uint64{0, 1, 10, 12}, [4]uint64{0, 0, 0, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, code := memview.New(), chain.NewCode([]byte{1})
			account := chain.AccountDiff{Address: tt.queue, Changed: true, Account: chain.Account{Exists: true, Nonce: 1, CodeHash: code.Hash}}
			for i, n := range tt.before {
				value := chain.Value{31: byte(n)}
				if n == inhibited {
					value = new(uint256.Int).SetAllOne().Bytes32()
				}
				if n > 0 {
					account.Slots = append(account.Slots, chain.SlotDiff{Slot: chain.Slot{31: byte(i)}, Value: value})
				}
			}
			if err := s.Apply(&chain.Diff{Accounts: []chain.AccountDiff{account}, Codes: []chain.Code{code}}); err != nil {
				t.Fatal(err)
			}
			b := tracedBlock(0, true)
			b.Header.RequestsHash = &chain.Hash{}
			diff, err := upstream.TraceDiff(b, traceOf(), s, upstream.TraceRules{Requests: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Apply(diff); err != nil {
				t.Fatal(err)
			}
			for i, n := range tt.after {
				if got, _ := s.Slot(tt.queue, chain.Slot{31: byte(i)}); got != (chain.Value{31: byte(n)}) {
					t.Errorf("slot %d = %s, want %d", i, got, n)
				}
			}
		})
	}
}

// Access lists of executed blocks say what the blocks changed, in every form.
func TestAccessListDiff(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			w := newWorld(t, seed, 30, chaingen.Options{Forks: chaingen.Amsterdam})
			for n, result := range w.results[1:] {
				for name, form := range forms(t, *result.AccessList) {
					list, err := upstream.ParseAccessList(form.text, form.hash)
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					diff, err := upstream.AccessListDiff(list, w.states[n])
					if err != nil {
						t.Fatal(err)
					}
					if err := w.leadsTo(n+1, diff); err != nil {
						t.Errorf("block %d, %s: %v", n+1, name, err)
					}
					other := form.hash
					other[0]++
					if list, err := upstream.ParseAccessList(form.text, other); !errors.Is(err, upstream.ErrAccessList) {
						t.Errorf("%s with another hash: got %v, %v, want ErrAccessList", name, list, err)
					}
				}
			}
		})
	}
}

type form struct {
	text json.RawMessage
	hash chain.Hash
}

// forms are the ways in which an access list is sent.
func forms(t *testing.T, list bal.BlockAccessList) map[string]form {
	t.Helper()
	must := func(v any, err error) []byte {
		if err != nil {
			t.Fatal(err)
		}
		return v.([]byte)
	}
	raw := must(rlp.EncodeToBytes(list))
	object := must(json.Marshal(list))
	if list == nil {
		object = []byte("[]")
	}
	// The names and numbers that other senders use.
	renamed := strings.NewReplacer("storageChanges", "storage_changes", "slotChanges", "changes", "blockAccessIndex", "block_access_index",
		"postValue", "new_value", "postNonce", "new_nonce", "postBalance", "post_balance").Replace(string(object))
	ranged := must(rlp.EncodeToBytes([]any{list, uint64(3), uint64(9)}))
	return map[string]form{
		"rlp":         {must(json.Marshal(hexutil.Bytes(raw))), crypto.Keccak256Hash(raw)},
		"array":       {object, crypto.Keccak256Hash(raw)},
		"world chain": {json.RawMessage(`{"changes":` + renamed + `,"min_tx_index":3,"max_tx_index":"0x9"}`), crypto.Keccak256Hash(ranged)},
		"base":        {json.RawMessage(`{"account_changes":` + renamed + `,"min_tx_index":3,"max_tx_index":9,"fal_hash":"` + crypto.Keccak256Hash(raw).Hex() + `"}`), crypto.Keccak256Hash(raw)},
	}
}

func TestOddAccessListsAreErrors(t *testing.T) {
	change := func(text string) string { return `[{"address":"` + anna + `",` + text + `}]` }
	tests := []struct{ name, text string }{
		{"null", `null`},
		{"a number", `5`},
		{"an empty object", `{}`},
		{"text", `"abc"`},
		{"rlp of something else", `"0x83646f67"`},
		{"bytes after the end", `"0xc000"`},
		{"an unknown member", change(`"balances":[]`)},
		{"no address", `[{"storageReads":[]}]`},
		{"an address that is none", `[{"address":"0x1"}]`},
		{"no value", change(`"storageChanges":[{"slot":"0x1","slotChanges":[{"blockAccessIndex":"0x1"}]}]`)},
		{"a null value", change(`"storageChanges":[{"slot":"0x1","slotChanges":[{"blockAccessIndex":"0x1","postValue":null}]}]`)},
		{"no slot", change(`"storageChanges":[{"slotChanges":[{"blockAccessIndex":"0x1","postValue":"0x1"}]}]`)},
		{"no writes", change(`"storageChanges":[{"slot":"0x1","slotChanges":[]}]`)},
		{"a slot twice", change(`"storageChanges":[{"slot":"0x1","slotChanges":[{"blockAccessIndex":"0x1","postValue":"0x1"}]},{"slot":"0x1","slotChanges":[{"blockAccessIndex":"0x1","postValue":"0x2"}]}]`)},
		{"writes out of order", change(`"storageChanges":[{"slot":"0x1","slotChanges":[{"blockAccessIndex":"0x2","postValue":"0x1"},{"blockAccessIndex":"0x1","postValue":"0x2"}]}]`)},
		{"no nonce", change(`"nonceChanges":[{"blockAccessIndex":"0x1"}]`)},
		{"a nonce that is too large", change(`"nonceChanges":[{"blockAccessIndex":"0x1","postNonce":"0x10000000000000000"}]`)},
		{"an index that is too large", change(`"nonceChanges":[{"blockAccessIndex":"0x100000001","postNonce":"0x1"}]`)},
		{"an index with a sign", change(`"nonceChanges":[{"blockAccessIndex":-1,"postNonce":"0x1"}]`)},
		{"balances out of order", change(`"balanceChanges":[{"blockAccessIndex":"0x2","postBalance":"0x1"},{"blockAccessIndex":"0x2","postBalance":"0x2"}]`)},
		{"an account twice", `[{"address":"` + anna + `"},{"address":"` + anna + `"}]`},
		{"a null read", change(`"storageReads":[null]`)},
		{"nested without end", strings.Repeat("[", 100) + strings.Repeat("]", 100)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			list, err := upstream.ParseAccessList(json.RawMessage(tt.text), chain.Hash{})
			if err == nil {
				_, err = upstream.AccessListDiff(list, memview.New())
			}
			if !errors.Is(err, upstream.ErrAccessList) {
				t.Errorf("got %+v, %v, want ErrAccessList", list, err)
			}
		})
	}
	if _, err := upstream.AccessListDiff(bal.BlockAccessList{{Address: addressOf(anna)}}, failing{errors.New("disk")}); err == nil || errors.Is(err, upstream.ErrAccessList) {
		t.Errorf("a state that cannot be read: got %v, want its error", err)
	}
}

func FuzzParseAccessList(f *testing.F) {
	f.Add([]byte(`[{"address":"` + anna + `","storageChanges":[{"slot":"0x1","slotChanges":[{"blockAccessIndex":"0x1","postValue":"0x1"}]}]}]`))
	f.Add([]byte(`{"changes":[],"min_tx_index":0,"max_tx_index":"0x1"}`))
	f.Add([]byte(`"0xc0"`))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := upstream.ParseAccessList(text, chain.Hash{})
		if err != nil {
			return
		}
		diff, err := upstream.AccessListDiff(list, memview.New())
		if err != nil {
			return
		}
		if _, err := chain.DecodeDiff(chain.AppendDiff(nil, diff)); err != nil {
			t.Errorf("%s gives a Diff that is not canonical: %v", text, err)
		}
	})
}

func FuzzTraceDiff(f *testing.F) {
	f.Add([]byte(`{"pre":{"` + anna + `":{"balance":"0x64","nonce":1,"code":"0x01","storage":{"` + one + `":"` + five + `"}}},"post":{}}`))
	f.Add([]byte(`{"pre":{},"post":{"` + bert + `":{"nonce":1,"code":"0x02","storage":{"` + one + `":"` + six + `"}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		diff, err := upstream.TraceDiff(tracedBlock(1, true), json.RawMessage(`[{"result":`+string(text)+`}]`), memview.New(), upstream.TraceRules{})
		if err != nil {
			return
		}
		if _, err := chain.DecodeDiff(chain.AppendDiff(nil, diff)); err != nil {
			t.Errorf("%s gives a Diff that is not canonical: %v", text, err)
		}
	})
}
