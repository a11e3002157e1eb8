// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"slices"
	"testing"

	"glimpse/chain"
)

func TestWipeHidesEarlierStorage(t *testing.T) {
	s := newScript(t)
	s.commit(write(alice, slot1, 5)) // 1
	s.commit(wipe(alice))            // 2
	s.commit()                       // 3
	s.slots(alice, slot1, 0, 0, 5, 0, 0)
}

func TestWipeLeavesOtherAccountsAlone(t *testing.T) {
	s := newScript(t)
	s.commit(write(alice, slot1, 5), write(bob, slot1, 6))
	s.commit(wipe(alice))
	s.slots(bob, slot1, 0, 0, 6, 6)
}

func TestAccountCreatedAgainLaterHasOnlyItsNewStorage(t *testing.T) {
	s := newScript(t)
	s.commit(write(alice, slot1, 5), write(bob, slot2, 1)) // 1
	s.commit(wipe(alice))                                  // 2
	s.commit(create(alice, true))                          // 3
	s.commit(write(alice, slot2, 7))                       // 4
	s.commit(wipe(alice))                                  // 5
	s.commit(write(alice, slot1, 9))                       // 6
	s.slots(alice, slot1, 0, 0, 5, 0, 0, 0, 0, 9)
	s.slots(alice, slot2, 0, 0, 0, 0, 0, 7, 0, 0)
}

func TestWriteInTheBlockOfAWipeSurvivesIt(t *testing.T) {
	s := newScript(t)
	s.commit(write(alice, slot1, 5), write(bob, slot1, 5))
	both := wipeAndWrite(alice, slot1, 6)
	s.commit(both)
	s.commit(wipe(alice))
	s.slots(alice, slot1, 0, 0, 5, 6, 0)
	s.slots(alice, slot2, 0, 0, 0, 0, 0)
}

func TestSlotWrittenBackToZero(t *testing.T) {
	s := newScript(t)
	s.commit(write(alice, slot1, 5))
	s.commit(write(alice, slot1, 0))
	s.commit(write(alice, slot1, 5))
	s.slots(alice, slot1, 0, 0, 5, 0, 5)
	slots, more, err := s.reader().Slots(alice, 2, nil, 10)
	if err != nil || more || len(slots) != 0 {
		t.Errorf("slots at 2: got %v, %v, %v, want none", slots, more, err)
	}
}

func TestPruneAcrossAWipe(t *testing.T) {
	s := newScript(t)
	s.commit(write(alice, slot1, 5)) // 1
	s.commit(write(alice, slot2, 6)) // 2
	s.commit(wipe(alice))            // 3
	s.commit(write(alice, slot2, 7)) // 4
	s.commit(wipe(alice))            // 5
	if err := s.db.Prune(3); err != nil {
		t.Fatal(err)
	}
	s.slots(alice, slot1, 3, 0, 0, 0)
	s.slots(alice, slot2, 3, 0, 7, 0)
	report, err := s.db.Check(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if report.Slots != 1 || report.Wipes != 1 {
		t.Errorf("after prune: got %d slot versions and %d wipes, want those of blocks 4 and 5 alone", report.Slots, report.Wipes)
	}
}

func TestUnwindAcrossAWipe(t *testing.T) {
	s := newScript(t)
	s.commit(write(alice, slot1, 5)) // 1
	s.commit(wipe(alice))            // 2
	s.commit(write(alice, slot1, 8)) // 3
	if err := s.db.Unwind(1, nil); err != nil {
		t.Fatal(err)
	}
	s.slots(alice, slot1, 0, 0, 5)
	s.commit(write(alice, slot2, 1))
	s.slots(alice, slot1, 0, 0, 5, 5)
}

func TestWipeOfAnAccountWithoutStorageLeavesNoMark(t *testing.T) {
	s := newScript(t)
	s.commit(create(alice, false))
	s.commit(wipe(alice))
	report, err := s.db.Check(t.Context(), nil)
	if err != nil || report.Wipes != 0 {
		t.Errorf("wipes: got %d, %v, want 0", report.Wipes, err)
	}
}

func TestSlotHistoryShowsWipesAsZero(t *testing.T) {
	s := newScript(t)
	s.commit(write(alice, slot1, 5))        // 1
	s.commit(wipe(alice))                   // 2
	s.commit(wipe(alice))                   // 3: already zero
	s.commit(write(alice, slot1, 5))        // 4
	s.commit(wipeAndWrite(alice, slot1, 5)) // 5: wiped and the same again
	s.commit(wipeAndWrite(alice, slot1, 6)) // 6
	got, more, err := s.reader().SlotHistory(alice, slot1, 0, 6, 10)
	want := []chain.SlotVersion{
		{Block: 0},
		{Block: 1, Value: chain.Value{31: 5}},
		{Block: 2},
		{Block: 4, Value: chain.Value{31: 5}},
		{Block: 6, Value: chain.Value{31: 6}},
	}
	if err != nil || more || !slices.Equal(got, want) {
		t.Errorf("history: got %v, %v, %v, want %v", got, more, err, want)
	}
}
