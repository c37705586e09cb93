package history_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/history"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// script builds a log from events at one second's distance.
func script(events ...history.Event) *history.Log {
	l := history.New()
	for i, e := range events {
		if e.At.IsZero() {
			e.At = began.Add(time.Duration(i) * time.Second)
		}
		l.Add(e)
	}
	return l
}

func broker(op, key string, sequence int64, lock string) history.Event {
	return history.Event{Op: op, Entity: "orders", Key: key, Sequence: sequence, Lock: lock, Effect: true}
}

func store(op, id string, status int, documents ...string) history.Event {
	return history.Event{Op: op, Entity: "orders/orders", Key: id, Partition: `["` + id + `"]`, Status: status,
		Effect: status == 201 || (op == history.ExecuteBatch && status == 200), Documents: documents}
}

// readBatch is a batch of nothing but reads.
func readBatch(id, note string) history.Event {
	e := store(history.ExecuteBatch, id, 200)
	e.Effect, e.Note = false, note
	return e
}

// changes is a batch that changes a document, to a version, and creates others.
func changes(id string, version int, created ...string) history.Event {
	e := store(history.ExecuteBatch, id, 200, created...)
	for _, c := range created {
		e.Writes = append(e.Writes, history.Write{ID: c, Created: true, Body: []byte("{}")})
	}
	e.Partition = `["p"]`
	e.Writes = append(e.Writes, history.Write{ID: id, Body: fmt.Appendf(nil, `{"version":%d}`, version)})
	return e
}

// projection is what holds where documents change with records whose ids begin with r.
var projection = history.Expect{Record: isRecord, Version: "version", Changes: func(id string) history.Change {
	if isRecord(id) {
		return history.Never
	}
	return history.WithRecord
}}

func isRecord(id string) bool { return strings.HasPrefix(id, "r") }

func deadLetter(key string, sequence int64, lock, reason string) history.Event {
	e := broker(history.DeadLetter, key, sequence, lock)
	e.Note = reason
	return e
}

// guardOf is the rule of these tests: "a~1" belongs to "a".
func guardOf(id string) (string, bool) { g, _, further := strings.Cut(id, "~"); return g, further }

func TestCheckAcceptsWhatTheWorkerShouldDo(t *testing.T) {
	tests := []struct {
		name   string
		events []history.Event
		expect history.Expect
	}{
		{name: "a new order is created and completed", events: []history.Event{
			broker(history.Send, "a", 1, ""), broker(history.Lock, "a", 1, "L1"),
			store(history.CreateDocument, "a", 201), broker(history.Complete, "a", 1, "L1"),
		}, expect: history.Expect{Drained: true, Stored: []string{"a"}}},
		{name: "a duplicate is refused, read and completed", events: []history.Event{
			broker(history.Send, "a", 1, ""), broker(history.Lock, "a", 1, "L1"), store(history.CreateDocument, "a", 201), broker(history.Complete, "a", 1, "L1"),
			broker(history.Send, "a", 2, ""), broker(history.Lock, "a", 2, "L2"), store(history.CreateDocument, "a", 409), store(history.ReadDocument, "a", 200), broker(history.Complete, "a", 2, "L2"),
		}, expect: history.Expect{Drained: true}},
		{name: "a worker dies between commit and complete and another finds its document", events: []history.Event{
			broker(history.Send, "a", 1, ""), broker(history.Lock, "a", 1, "L1"), store(history.CreateDocument, "a", 201), {Op: history.LockExpired, Entity: "orders", Key: "a", Sequence: 1, Lock: "L1", Effect: true},
			broker(history.Lock, "a", 1, "L2"), store(history.CreateDocument, "a", 409), store(history.ReadDocument, "a", 200), broker(history.Complete, "a", 1, "L2"),
		}, expect: history.Expect{Drained: true}},
		{name: "a delivery that looks first with a batch of reads is completed", events: []history.Event{
			broker(history.Send, "a", 1, ""), store(history.CreateDocument, "a", 201), broker(history.Lock, "a", 1, "L1"), readBatch("a", ""), broker(history.Complete, "a", 1, "L1"),
		}},
		{name: "a delivery that looks first finds its document and is completed", events: []history.Event{
			broker(history.Send, "a", 1, ""), broker(history.Lock, "a", 1, "L1"), store(history.CreateDocument, "a", 201), broker(history.Lock, "a", 1, "L2"), store(history.ReadDocument, "a", 200), broker(history.Complete, "a", 1, "L2"),
		}},
		{name: "changes with their records, in any distance of their versions", expect: projection, events: []history.Event{
			{Op: history.CreateDocument, Entity: "orders/orders", Key: "a", Effect: true, Note: history.Seeded, Writes: []history.Write{{ID: "a", Created: true, Body: []byte(`{"version":1}`)}}},
			changes("a", 2, "r1"), changes("a", 7, "r2"), store(history.ExecuteBatch, "r3", 200, "r3"),
		}},
		{name: "a delivery that writes without a record is completed", expect: history.Expect{Changes: func(string) history.Change { return history.Freely }}, events: []history.Event{
			broker(history.Send, "a", 1, ""), broker(history.Lock, "a", 1, "L1"), changes("a", 1), broker(history.Complete, "a", 1, "L1"),
		}},
		{name: "two copies at once, one created and one read", events: []history.Event{
			broker(history.Send, "a", 1, ""), broker(history.Send, "a", 2, ""), broker(history.Lock, "a", 1, "L1"), broker(history.Lock, "a", 2, "L2"),
			store(history.CreateDocument, "a", 201), store(history.CreateDocument, "a", 409), store(history.ReadDocument, "a", 200),
			broker(history.Complete, "a", 2, "L2"), broker(history.Complete, "a", 1, "L1"),
		}, expect: history.Expect{Drained: true}},
		{name: "a batch with its lines", events: []history.Event{
			broker(history.Send, "a", 1, ""), broker(history.Lock, "a", 1, "L1"), store(history.ExecuteBatch, "a", 200, "a", "a~1", "a~2"), broker(history.Complete, "a", 1, "L1"),
		}, expect: history.Expect{Drained: true, Stored: []string{"a~2", "a", "a~1"}}},
		{name: "a refused batch is read like a refused create", events: []history.Event{
			broker(history.Send, "a", 1, ""), broker(history.Lock, "a", 1, "L1"), store(history.ExecuteBatch, "a", 207), store(history.ReadDocument, "a", 200), broker(history.Complete, "a", 1, "L1"),
		}},
		{name: "a document that no read shows is read in a batch", events: []history.Event{
			broker(history.Send, "a", 1, ""), broker(history.Lock, "a", 1, "L1"), store(history.CreateDocument, "a", 409), store(history.ReadDocument, "a", 404), readBatch("a", ""), broker(history.Complete, "a", 1, "L1"),
		}},
		{name: "a conflict is dead-lettered with its reason and later discarded by a person", events: []history.Event{
			broker(history.Send, "a", 1, ""), broker(history.Lock, "a", 1, "L1"), store(history.CreateDocument, "a", 409), store(history.ReadDocument, "a", 200), deadLetter("a", 1, "L1", "ContentConflict"),
			{Op: history.Lock, Entity: "orders/$DeadLetterQueue", Key: "a", Sequence: 1, Lock: "L2", Effect: true},
			{Op: history.Complete, Entity: "orders/$DeadLetterQueue", Key: "a", Sequence: 1, Lock: "L2", Effect: true},
		}, expect: history.Expect{Drained: true, Reasons: []string{"ContentConflict"}}},
		{name: "a long handler renews its lock", events: []history.Event{
			broker(history.Send, "a", 1, ""), broker(history.Lock, "a", 1, "L1"), broker(history.Renew, "a", 1, "L1"), broker(history.Renew, "a", 1, "L1"), broker(history.Abandon, "a", 1, "L1"),
		}, expect: history.Expect{LockDuration: time.Second}},
		{name: "a document is created again after it has expired", events: []history.Event{
			store(history.CreateDocument, "a", 201), {Op: history.ExpireDocument, Entity: "orders/orders", Key: "a", Partition: `["a"]`, Effect: true}, store(history.CreateDocument, "a", 201),
		}},
		{name: "the broker itself dead-letters without a lock", events: []history.Event{
			broker(history.Send, "a", 1, ""), deadLetter("a", 1, "", "TTLExpiredException"),
		}, expect: history.Expect{Drained: true}},
		{name: "a message that is still on the queue of a run that was not drained", events: []history.Event{broker(history.Send, "a", 1, "")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.expect.Guard = guardOf
			require.NoError(t, history.Check(script(tt.events...).Events(), tt.expect))
		})
	}
}

func TestCheckFindsEveryBrokenPromise(t *testing.T) {
	tests := []struct {
		name   string
		events []history.Event
		expect history.Expect
		want   string
	}{
		{name: "a message that stays on the queue", want: `message "a" (sequence number 1 of orders) is still on the queue`,
			events: []history.Event{broker(history.Send, "a", 1, ""), broker(history.Lock, "a", 1, "L1"), broker(history.Abandon, "a", 1, "L1")}, expect: history.Expect{Drained: true}},
		{name: "a message that expired away", want: "left the queue in another way",
			events: []history.Event{broker(history.Send, "a", 1, ""), broker(history.Expired, "a", 1, "")}, expect: history.Expect{Drained: true}},
		{name: "a message that ends twice", want: "ended more than once",
			events: []history.Event{broker(history.Send, "a", 1, ""), broker(history.Lock, "a", 1, "L1"), deadLetter("a", 1, "L1", "NotJSON"), broker(history.Lock, "a", 1, "L2"), deadLetter("a", 1, "L2", "NotJSON")}},
		{name: "a completion without any judgement", want: "learnt nothing of document a",
			events: []history.Event{broker(history.Send, "a", 1, ""), broker(history.Lock, "a", 1, "L1"), broker(history.Complete, "a", 1, "L1")}},
		{name: "a completion after a refused create that nobody read", want: "learnt nothing of document a",
			events: []history.Event{broker(history.Lock, "a", 1, "L1"), store(history.CreateDocument, "a", 409), broker(history.Complete, "a", 1, "L1")}},
		{name: "a completion after a throttled create", want: "learnt nothing of document a",
			events: []history.Event{broker(history.Lock, "a", 1, "L1"), store(history.CreateDocument, "a", 429), broker(history.Complete, "a", 1, "L1")}},
		{name: "a completion after a read that found nothing", want: "learnt nothing of document a",
			events: []history.Event{broker(history.Lock, "a", 1, "L1"), store(history.CreateDocument, "a", 409), store(history.ReadDocument, "a", 404), broker(history.Complete, "a", 1, "L1")}},
		{name: "a completion after a batch whose reply was made up", want: "learnt nothing of document a",
			events: []history.Event{broker(history.Lock, "a", 1, "L1"), store(history.CreateDocument, "a", 409), readBatch("a", "fault before the effect: refuse"), broker(history.Complete, "a", 1, "L1")}},
		{name: "a completion on the judgement of the delivery before", want: "learnt nothing of document a",
			events: []history.Event{broker(history.Lock, "a", 1, "L1"), store(history.CreateDocument, "a", 201), broker(history.Abandon, "a", 1, "L1"), broker(history.Lock, "a", 1, "L2"), broker(history.Complete, "a", 1, "L2")}},
		{name: "two completions on one judgement", want: "(1 of 2)",
			events: []history.Event{broker(history.Lock, "a", 1, "L1"), broker(history.Lock, "a", 2, "L2"), store(history.CreateDocument, "a", 201), broker(history.Complete, "a", 1, "L1"), broker(history.Complete, "a", 2, "L2")}},
		{name: "a message taken without a lock", want: "learnt nothing of document a",
			events: []history.Event{broker(history.Send, "a", 1, ""), broker(history.Take, "a", 1, "")}},
		{name: "a completion for the document of another key", want: "learnt nothing of document doc-a", expect: history.Expect{DocumentID: func(id string) string { return "doc-" + id }},
			events: []history.Event{broker(history.Lock, "a", 1, "L1"), store(history.CreateDocument, "a", 201), broker(history.Complete, "a", 1, "L1")}},
		{name: "a settle after the lock expired", want: "without a lock",
			events: []history.Event{broker(history.Lock, "a", 1, "L1"), broker(history.LockExpired, "a", 1, "L1"), broker(history.Abandon, "a", 1, "L1")}},
		{name: "a settle with the lock of an earlier delivery", want: "with the lock of another delivery",
			events: []history.Event{broker(history.Lock, "a", 1, "L1"), broker(history.Lock, "a", 1, "L2"), broker(history.Abandon, "a", 1, "L1")}},
		{name: "a settle of a message that was settled", want: "without a lock",
			events: []history.Event{broker(history.Lock, "a", 1, "L1"), broker(history.Abandon, "a", 1, "L1"), broker(history.Abandon, "a", 1, "L1")}},
		{name: "a settle later than the lock can have lasted", want: "3s after its lock began", expect: history.Expect{LockDuration: time.Second},
			events: []history.Event{broker(history.Lock, "a", 1, "L1"), {Op: history.Peek}, {Op: history.Peek}, broker(history.Abandon, "a", 1, "L1")}},
		{name: "a dead letter without a reason", want: "dead-lettered without a reason", events: []history.Event{broker(history.Lock, "a", 1, "L1"), deadLetter("a", 1, "L1", "")}},
		{name: "a dead letter for a reason that this run may not give", want: "dead-lettered for MaxDeliveryCountExceeded", expect: history.Expect{Reasons: []string{"NotJSON"}},
			events: []history.Event{deadLetter("a", 1, "", "MaxDeliveryCountExceeded")}},
		{name: "a second create", want: `document "a" was created twice [#1 cosmosdb.create, #2 cosmosdb.create]`, events: []history.Event{store(history.CreateDocument, "a", 201), store(history.CreateDocument, "a", 201)}},
		{name: "a create and a batch of one document", want: `document "a" was created twice`, events: []history.Event{store(history.CreateDocument, "a", 201), store(history.ExecuteBatch, "a", 200, "a")}},
		{name: "an overwrite", want: "overwritten or changed", events: []history.Event{{Op: history.UpsertDocument, Key: "a", Effect: true}}},
		{name: "a change in a batch of what must not change", want: "overwritten or changed", events: []history.Event{changes("a", 1, "r")}, expect: history.Expect{Record: isRecord}},
		{name: "a change without a record", want: `document "a" was written with 0 new records`, expect: projection, events: []history.Event{changes("a", 1)}},
		{name: "a change before its record", want: `document "a" was written with 0 new records`, expect: projection, events: []history.Event{changes("a", 1), store(history.ExecuteBatch, "r", 200, "r")}},
		{name: "a change with the records of two messages", want: `document "a" was written with 2 new records`, expect: projection, events: []history.Event{changes("a", 1, "r1", "r2")}},
		{name: "a version that goes backwards", want: `document "a" went from version 2 to 1`, expect: projection, events: []history.Event{changes("a", 2, "r1"), changes("a", 1, "r2")}},
		{name: "a version that comes again", want: `document "a" went from version 2 to 2`, expect: projection, events: []history.Event{changes("a", 2, "r1"), changes("a", 2, "r2")}},
		{name: "a line without its order", want: `document "a~1" was created without "a"`, events: []history.Event{store(history.CreateDocument, "a~1", 201)}},
		{name: "a line that was created after its order", want: `document "a~1" was created without "a"`, events: []history.Event{store(history.CreateDocument, "a", 201), store(history.CreateDocument, "a~1", 201)}},
		{name: "a batch of which a part is missing", want: `of the 2 documents of "a" only 1 are there`, expect: history.Expect{Stored: []string{"a"}}, events: []history.Event{store(history.ExecuteBatch, "a", 200, "a", "a~1")}},
		{name: "a document that vanished", want: `document "a" was created and is not there`, expect: history.Expect{Stored: []string{}}, events: []history.Event{store(history.CreateDocument, "a", 201)}},
		{name: "a document from nowhere", want: `document "b" is there and nobody created it`, expect: history.Expect{Stored: []string{"b"}}},
		{name: "a request that the broker does not imitate", want: "not implemented: topics", events: []history.Event{{Op: history.Refused, Entity: "topics"}}},
		{name: "a request that the store does not imitate", want: "not implemented: triggers", events: []history.Event{{Op: history.RefusedByCosmos, Entity: "triggers"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.expect.Guard = guardOf
			err := history.Check(script(tt.events...).Events(), tt.expect)
			require.ErrorContains(t, err, "broken promise")
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestEveryPromiseHasAPlantedViolation(t *testing.T) {
	events := script(
		broker(history.Send, "left", 9, ""),
		broker(history.Lock, "a", 1, "L1"), broker(history.Complete, "a", 1, "L1"), broker(history.Complete, "a", 1, "L1"),
		deadLetter("b", 2, "", ""),
		store(history.CreateDocument, "c~1", 201), store(history.CreateDocument, "c~1", 201),
		changes("d", 2), changes("d", 1),
		history.Event{Op: history.Refused, Entity: "sessions"},
	).Events()
	expect := projection
	expect.Drained, expect.Guard, expect.Stored = true, guardOf, []string{}
	report := history.Examine(events, expect)
	for _, p := range report {
		require.NotEmpty(t, p.Broken, "no violation was found of: %s", p.Sentence)
		require.Positive(t, p.Checked, p.Sentence)
		require.ErrorContains(t, report.Err(), p.Sentence)
	}
}

func TestAnErrorStaysShortWhenEverythingIsBroken(t *testing.T) {
	var events []history.Event
	for i := range 1000 {
		events = append(events, deadLetter(fmt.Sprint(i), int64(i+1), "", ""))
	}
	err := history.Check(script(events...).Events(), history.Expect{})
	require.ErrorContains(t, err, "(1000 of 1000)")
	require.ErrorContains(t, err, "and 995 more")
	require.Less(t, len(err.Error()), 2000)
}

func TestVerifyKeepsTheEvidenceOnlyWhenItIsNeeded(t *testing.T) {
	dir := t.TempDir()
	good := script(store(history.CreateDocument, "a", 201))
	require.NoError(t, history.Verify(good, history.Expect{}, 7, dir))
	kept, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, kept)

	bad := script(store(history.CreateDocument, "a", 201), store(history.CreateDocument, "a", 201))
	err = history.Verify(bad, history.Expect{}, 7, dir)
	require.ErrorContains(t, err, "seed 7; the history is in "+dir)
	kept, readErr := os.ReadDir(dir)
	require.NoError(t, readErr)
	require.Len(t, kept, 1)
	text, readErr := os.ReadFile(dir + "/" + kept[0].Name())
	require.NoError(t, readErr)
	require.Equal(t, 2, strings.Count(string(text), `"op":"cosmosdb.create"`))
}

func TestVerifySaysSoWhenTheEvidenceCannotBeKept(t *testing.T) {
	bad := script(store(history.CreateDocument, "a", 201), store(history.CreateDocument, "a", 201))
	err := history.Verify(bad, history.Expect{}, 7, t.TempDir()+"/missing")
	require.ErrorContains(t, err, "created twice")
	require.ErrorContains(t, err, "could not be saved")
}
