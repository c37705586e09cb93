package history

import (
	"encoding/json"
	"fmt"
	"slices"
)

// document identifies a document in a container.
type document struct{ entity, partition, id string }

func noDocumentHasTwoEffects(v *view, expect Expect) (checked int, broken []Violation) {
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
		if e.Op == DeleteDocument || e.Op == ExpireDocument {
			delete(standing, document{e.Entity, e.Partition, e.Key})
			continue
		}
		for _, id := range changed(e) {
			checked++
			if expect.Changes(id) == Never {
				broken = append(broken, Violation{What: fmt.Sprintf("document %q was overwritten or changed", id), Events: []Event{e}})
			}
		}
	}
	return checked, broken
}

// changed are the ids of the documents that an event changed, replaced or deleted.
func changed(e Event) []string {
	switch {
	case !e.Effect || e.Note == Seeded:
		return nil
	case len(e.Writes) == 0 && (e.Op == UpsertDocument || e.Op == ReplaceDocument || e.Op == PatchDocument):
		return []string{e.Key}
	}
	var ids []string
	for _, w := range e.Writes {
		if !w.Created {
			ids = append(ids, w.ID)
		}
	}
	return ids
}

// changesHaveTheirRecord holds that whatever is written to a document that changes is written together with a new inbox record:
// then the record proves the change, and forbids to make it again.
func changesHaveTheirRecord(v *view, expect Expect) (checked int, broken []Violation) {
	for _, e := range v.events {
		if !e.Effect || e.Note == Seeded {
			continue
		}
		for _, w := range e.Writes {
			if expect.Changes(w.ID) != WithRecord {
				continue
			}
			checked++
			if n := len(slices.DeleteFunc(slices.Clone(created(e)), func(id string) bool { return !expect.Record(id) })); n != 1 {
				broken = append(broken, Violation{What: fmt.Sprintf("document %q was written with %d new records", w.ID, n), Events: []Event{e}})
			}
		}
	}
	return checked, broken
}

// versionsGrow holds that each write of a document with a version has a greater one than the write before.
func versionsGrow(v *view, expect Expect) (checked int, broken []Violation) {
	if expect.Version == "" {
		return 0, nil
	}
	newest := map[document]float64{}
	for _, e := range v.events {
		for _, w := range e.Writes {
			now, ok := version(w.Body, expect.Version)
			if !ok {
				continue
			}
			checked++
			at := document{e.Entity, e.Partition, w.ID}
			if before, known := newest[at]; known && now <= before {
				broken = append(broken, Violation{What: fmt.Sprintf("document %q went from version %v to %v", w.ID, before, now), Events: []Event{e}})
			}
			newest[at] = now
		}
	}
	return checked, broken
}

// version is the number that a document has as a member.
func version(body []byte, member string) (n float64, ok bool) {
	var members map[string]any
	if json.Unmarshal(body, &members) != nil {
		return 0, false
	}
	n, ok = members[member].(float64)
	return n, ok
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
