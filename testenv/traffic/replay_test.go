package traffic

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/history"
)

func TestAMixedStreamHasEveryCommandAndCopiesOfThem(t *testing.T) {
	require.Equal(t, NewMixedStream(42, "t-").Take(500), NewMixedStream(42, "t-").Take(500))
	made, again, before := map[string]int{}, map[string]int{}, map[string]int{}
	for _, m := range NewMixedStream(1, "t-").Take(4000) {
		switch {
		case m.Type == TypeOrder:
		case m.Kind == NewCommand:
			made[m.Type]++
		default:
			again[m.Type]++
		}
		if m.Before != "" {
			before[m.Entity]++
		}
	}
	for _, do := range []string{Debit, Capture, Ship, Project, Revise, Price, Foreign} {
		require.Greater(t, made[do], 50, do)
		require.Greater(t, again[do], 20, do)
	}
	for entity, n := range before {
		require.Equal(t, 1, n, "%s is stored once", entity)
	}
}

// story is a run in the making.
type story struct {
	run      Run
	sequence int64
}

func newStory() *story {
	s := &story{run: Run{Sent: map[int64]Message{}, Queue: "orders", Documents: map[string]string{}, Records: true, Words: words}}
	for _, d := range []string{`{"id":"a","pk":"a","balance":100,"debits":0}`, `{"id":"b","pk":"b","status":"NEW","paid":0,"shipped":0,"history":[]}`, `{"id":"r","pk":"r","version":0,"note":""}`} {
		s.write("", history.Seeded, d)
	}
	return s
}

func (s *story) add(e history.Event) {
	e.Seq, e.Effect = len(s.run.Events)+1, true
	s.run.Events = append(s.run.Events, e)
}

// sent sends a command, and delivers it.
func (s *story) sent(id, do, entity string, amount int64, note ...string) *story {
	c := Command{Do: do, Entity: entity, Amount: amount, Note: fmt.Sprint(note)}
	body, _ := json.Marshal(c)
	s.sequence++
	s.run.Sent[s.sequence] = Message{ID: id, Body: body, Kind: NewCommand, Type: do, Entity: entity}
	s.add(history.Event{Op: history.Lock, Entity: "orders", Key: id, Sequence: s.sequence})
	return s
}

// write writes documents, and the record of a message when it is named.
func (s *story) write(message, note string, documents ...string) *story {
	e := history.Event{Op: history.ExecuteBatch, Entity: "orders/orders", Note: note}
	if note == history.Seeded {
		e.Op = history.CreateDocument
	}
	if message != "" {
		documents = append(documents, fmt.Sprintf(`{"id":"%s~part.inbox-record"}`, message))
	}
	for _, d := range documents {
		var id struct{ ID string }
		_ = json.Unmarshal([]byte(d), &id)
		e.Writes = append(e.Writes, history.Write{ID: id.ID, Body: json.RawMessage(d)})
		s.run.Documents[id.ID], e.Key = d, id.ID
	}
	s.add(e)
	return s
}

// completed and dead end the message that was sent last.
func (s *story) completed() *story {
	s.add(history.Event{Op: history.Complete, Entity: "orders", Sequence: s.sequence})
	return s
}

func (s *story) dead(reason string) *story {
	s.add(history.Event{Op: history.DeadLetter, Entity: "orders", Sequence: s.sequence, Note: reason})
	return s
}

const (
	debited  = `{"id":"a","pk":"a","balance":60,"debits":1}`
	captured = `{"id":"b","pk":"b","status":"PAID","paid":40,"shipped":0,"history":[]}`
	shipped  = `{"id":"b","pk":"b","status":"NEW","paid":0,"shipped":3,"history":["3"]}`
	revised  = `{"id":"r","pk":"r","version":5,"note":"[]"}`
	price    = `{"id":"p","pk":"p","do":"price","entity":"p","amount":5,"note":"[]"}`
)

func TestAuditHoldsEveryChangeToTheCommandOfItsRecord(t *testing.T) {
	for _, tt := range []struct {
		name  string
		story func(s *story)
		want  string
	}{
		{"a debit", func(s *story) { s.sent("1", "debit", "a", 40).write("1", "", debited).completed() }, ""},
		{"a debit and its copy", func(s *story) {
			s.sent("1", "debit", "a", 40).write("1", "", debited).completed().sent("1", "debit", "a", 40).completed()
		}, ""},
		{"a debit of an old balance", func(s *story) {
			s.sent("1", "debit", "a", 40).write("1", "", debited).completed().sent("2", "debit", "a", 30).write("2", "", `{"id":"a","pk":"a","balance":70,"debits":1}`).completed()
		}, "which is not what command"},
		{"a debit below zero", func(s *story) {
			s.sent("1", "debit", "a", 140).write("1", "", `{"id":"a","pk":"a","balance":-40,"debits":1}`).completed()
		}, "which is not what command"},
		{"a debit without a record", func(s *story) { s.sent("1", "debit", "a", 40).completed() }, "and has no record"},
		{"a record without its debit", func(s *story) { s.sent("1", "debit", "a", 40).write("1", "").completed() }, "has a record and no effect"},
		{"a debit with other content after the one that was committed", func(s *story) {
			s.sent("1", "debit", "a", 40).write("1", "", debited).completed().sent("1", "debit", "a", 41).dead("ContentConflict")
		}, ""},
		{"other content that was completed", func(s *story) {
			s.sent("1", "debit", "a", 40).write("1", "", debited).completed().sent("1", "debit", "a", 41).completed()
		}, "although other content was committed"},
		{"a copy that was taken for a conflict", func(s *story) {
			s.sent("1", "debit", "a", 40).write("1", "", debited).completed().sent("1", "debit", "a", 40).dead("ContentConflict")
		}, "although it is just what was committed"},
		{"a debit that is too high", func(s *story) { s.sent("1", "debit", "a", 101).dead("InsufficientFunds") }, ""},
		{"a debit that was refused for nothing", func(s *story) { s.sent("1", "debit", "a", 40).dead("InsufficientFunds") }, "never was below 40"},
		{"a copy that was refused for what it has done itself", func(s *story) {
			s.sent("1", "debit", "a", 80).write("1", "", `{"id":"a","pk":"a","balance":20,"debits":1}`).completed().sent("1", "debit", "a", 80).dead("InsufficientFunds")
		}, "although it was committed before"},
		{"a capture and a second one", func(s *story) {
			s.sent("1", "capture", "b", 40).write("1", "", captured).completed().sent("2", "capture", "b", 40).dead("AlreadyPaid")
		}, ""},
		{"a capture that was refused for nothing", func(s *story) { s.sent("1", "capture", "b", 40).dead("AlreadyPaid") }, "nobody has paid"},
		{"two captures", func(s *story) {
			s.sent("1", "capture", "b", 40).write("1", "", captured).completed().sent("2", "capture", "b", 40).write("2", "", captured).completed()
		}, "which is not what command"},
		{"a shipment", func(s *story) { s.sent("3", "ship", "b", 3).write("3", "", shipped).completed() }, ""},
		{"a shipment that was made twice", func(s *story) {
			s.sent("3", "ship", "b", 3).write("3", "", shipped).completed().write("", "", `{"id":"b","pk":"b","status":"NEW","paid":0,"shipped":6,"history":["3","3"]}`)
		}, "which is not what command"},
		{"a version and an older one", func(s *story) {
			s.sent("1", "revise", "r", 5).write("1", "", revised).completed().sent("2", "revise", "r", 4).write("2", "").completed()
		}, ""},
		{"a newer version that was taken for stale", func(s *story) {
			s.sent("1", "revise", "r", 5).write("1", "", revised).completed().sent("2", "revise", "r", 6).write("2", "").completed()
		}, "has a record and no effect"},
		{"a price without a record", func(s *story) { s.sent("1", "price", "p", 5).write("", "", price).completed() }, ""},
		{"a price with a record", func(s *story) { s.sent("1", "price", "p", 5).write("1", "", price).completed() }, "has a record"},
		{"a price that nobody sent", func(s *story) {
			s.sent("1", "price", "p", 6).write("", "", price).completed()
		}, "which is not what command"},
		{"a message of a foreign type", func(s *story) { s.sent("1", "foreign", "f", 1).completed() }, ""},
		{"a document that was lost", func(s *story) { s.run.Documents["a"] = "" }, "is stored as"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStory()
			tt.story(s)
			wrong := s.run.Audit()
			if tt.want == "" {
				require.Empty(t, wrong)
				return
			}
			require.NotEmpty(t, wrong)
			require.Contains(t, fmt.Sprint(wrong), tt.want)
		})
	}
}
