package history

import (
	"fmt"
	"slices"
)

// document identifies a document in a container.
type document struct{ entity, partition, id string }

func noDocumentHasTwoEffects(v *view, _ Expect) (checked int, broken []Violation) {
	standing := map[document]Event{}
	for _, e := range v.events {
		if !e.Effect {
			continue
		}
		for _, id := range created(e) {
			checked++
			at := document{e.Entity, e.Partition, id}
			if before, ok := standing[at]; ok {
				broken = append(broken, Violation{What: fmt.Sprintf("document %q was created twice", id), Events: []Event{before, e}})
			}
			standing[at] = e
		}
		switch e.Op {
		case DeleteDocument, ExpireDocument:
			delete(standing, document{e.Entity, e.Partition, e.Key})
		case UpsertDocument, ReplaceDocument, PatchDocument:
			checked++
			broken = append(broken, Violation{What: fmt.Sprintf("document %q was overwritten or changed", e.Key), Events: []Event{e}})
		}
	}
	return checked, broken
}

// documentsAreCreatedTogether holds that a further document is created in the same event as its guard, and that every batch
// is stored as a whole.
func documentsAreCreatedTogether(v *view, expect Expect) (checked int, broken []Violation) {
	for _, e := range v.events {
		ids := created(e)
		for _, id := range ids {
			guard, further := expect.Guard(id)
			if !further {
				continue
			}
			checked++
			if !slices.Contains(ids, guard) {
				broken = append(broken, Violation{What: fmt.Sprintf("document %q was created without %q", id, guard), Events: []Event{e}})
			}
		}
	}
	more, parts := batchesAreWhole(v, expect)
	return checked + more, append(broken, parts...)
}

// batchesAreWhole compares every batch with what is stored at the end.
func batchesAreWhole(v *view, expect Expect) (checked int, broken []Violation) {
	if expect.Stored == nil {
		return 0, nil
	}
	stored := set(expect.Stored)
	gone := goneDocuments(v)
	for _, e := range v.events {
		ids := created(e)
		if e.Op != ExecuteBatch || len(ids) == 0 {
			continue
		}
		checked++
		found := 0
		for _, id := range ids {
			if stored[id] || gone[id] {
				found++
			}
		}
		if found != len(ids) {
			broken = append(broken, Violation{What: fmt.Sprintf("of the %d documents of %q only %d are there", len(ids), e.Key, found), Events: []Event{e}})
		}
	}
	return checked, broken
}

func storeHoldsWhatWasCreated(v *view, expect Expect) (checked int, broken []Violation) {
	if expect.Stored == nil {
		return 0, nil
	}
	stored, gone := set(expect.Stored), goneDocuments(v)
	wanted := map[string]bool{}
	for _, e := range v.events {
		for _, id := range created(e) {
			if checked++; !stored[id] && !gone[id] {
				broken = append(broken, Violation{What: fmt.Sprintf("document %q was created and is not there", id), Events: []Event{e}})
			}
			wanted[id] = true
		}
	}
	for _, id := range expect.Stored {
		if !wanted[id] {
			broken = append(broken, Violation{What: fmt.Sprintf("document %q is there and nobody created it", id)})
		}
	}
	return checked, broken
}

func set(ids []string) map[string]bool {
	m := make(map[string]bool, len(ids))
	for _, id := range ids {
		m[id] = true
	}
	return m
}

// goneDocuments are those that were deleted or have expired at some time.
func goneDocuments(v *view) map[string]bool {
	gone := map[string]bool{}
	for _, e := range v.events {
		if e.Effect && (e.Op == DeleteDocument || e.Op == ExpireDocument) {
			gone[e.Key] = true
		}
	}
	return gone
}

func nothingUnimplemented(v *view, expect Expect) (checked int, broken []Violation) {
	for _, e := range v.events {
		checked++
		if !expect.Unimplemented && (e.Op == Refused || e.Op == RefusedByCosmos) {
			broken = append(broken, Violation{What: fmt.Sprintf("not implemented: %s %s", e.Entity, e.Error), Events: []Event{e}})
		}
	}
	return checked, broken
}
