package deadletter_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/reason"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// messageOf is a message with these properties that came in at this time.
func messageOf(enqueued time.Time, properties map[string]any) *deadletter.DeadLetter {
	m := amqp.NewMessage([]byte(`{"a":1}`))
	m.Properties = &amqp.MessageProperties{MessageID: "m1"}
	m.ApplicationProperties = properties
	m.Annotations = amqp.Annotations{"x-opt-sequence-number": int64(7)}
	if !enqueued.IsZero() {
		m.Annotations["x-opt-enqueued-time"] = enqueued
	}
	encoded, err := m.MarshalBinary()
	if err != nil {
		panic(err)
	}
	return deadletter.Parse(encoded)
}

func judged(j worker.Judgement) worker.Result {
	c := worker.CauseConflict
	if j.Committed() {
		c = worker.CauseCommitted
	}
	return worker.Result{
		Admitted: true, Cause: c, Judgement: j, ArrivedHash: "arrived",
		Outcome: worker.Outcome{Existing: &worker.Record{CommittedAt: noon, Fingerprint: &fingerprint.Fingerprint{Hash: "stored"}, MissingParts: []string{"line-2"}}},
	}
}

func stale(j worker.Judgement) worker.Result {
	r := judged(j)
	r.Outcome.Existing.Stale = true
	return r
}

func TestARecordThatCannotBeReadIsNotTakenForAStoreThatIsSilent(t *testing.T) {
	v := deadletter.Verdict{Kind: deadletter.Undecided, Reason: reason.StoredRecordUnknown, Detail: "Process it with that version."}
	require.NotContains(t, v.Meaning(), "no answer")
	for _, o := range deadletter.Offers(messageOf(noon, nil), v, deadletter.Settings{}, deadletter.Choice{}, noon) {
		require.Contains(t, o.Refused, "Process it with that version.")
	}
}

func TestDecide(t *testing.T) {
	nothing := worker.Result{Admitted: true, Commit: worker.Commit{Fingerprint: fingerprint.Fingerprint{Hash: "configured"}}}
	hour := deadletter.Settings{KeyMemory: time.Hour}
	for _, tt := range []struct {
		name    string
		message *deadletter.DeadLetter
		result  worker.Result
		s       deadletter.Settings
		want    deadletter.Kind
	}{
		{"equal content is stored", messageOf(noon, nil), judged(worker.Duplicate), hour, deadletter.AlreadyApplied},
		{"equal content was stale", messageOf(noon, nil), stale(worker.Duplicate), hour, deadletter.Stale},
		{"an earlier delivery was stale", messageOf(noon, nil), stale(worker.Redelivered), hour, deadletter.Stale},
		{"other content was stale", messageOf(noon, nil), stale(worker.Conflict), hour, deadletter.Conflict},
		{"a record of a later version is stored", messageOf(noon, nil), worker.Result{Admitted: true, Cause: worker.CauseUncertain, Judgement: worker.UnknownRecord, Reason: reason.StoredRecordUnknown}, hour, deadletter.Undecided},
		{"other content is stored", messageOf(noon, nil), judged(worker.Conflict), hour, deadletter.Conflict},
		{"documents are missing", messageOf(noon, nil), judged(worker.Incomplete), hour, deadletter.Incomplete},
		{"what is stored has no hash", messageOf(noon, nil), judged(worker.HashMissing), hour, deadletter.HashMissing},
		{"the id belongs to another key", messageOf(noon, nil), judged(worker.OtherKey), hour, deadletter.OtherKey},
		{"it cannot be admitted", messageOf(noon, nil), worker.Result{Cause: worker.CauseRefused, Reason: reason.NotJSON}, hour, deadletter.Unreadable},
		{"the store is down", messageOf(noon, nil), worker.Result{Admitted: true, Cause: worker.CauseUnavailable, Err: errors.New("503")}, hour, deadletter.Undecided},
		{"the store may not be used", messageOf(noon, nil), worker.Result{Admitted: true, Cause: worker.CauseMisconfigured, Err: errors.New("403")}, hour, deadletter.Undecided},
		{"the caller gave up", messageOf(noon, nil), worker.Result{Admitted: true, Cause: worker.CauseStopped, Err: context.Canceled}, hour, deadletter.Undecided},
		{"nothing came of it at all", messageOf(noon, nil), worker.Result{}, hour, deadletter.Undecided},
		{"nothing is stored", messageOf(noon.Add(-59*time.Minute), nil), nothing, hour, deadletter.NeverApplied},
		{"nothing is stored and keys are remembered for ever", messageOf(noon.Add(-9999*time.Hour), nil), nothing, deadletter.Settings{}, deadletter.NeverApplied},
		{"nothing is stored any more", messageOf(noon.Add(-time.Hour), nil), nothing, hour, deadletter.KeyForgotten},
		{"nothing is stored and the age is not known", messageOf(time.Time{}, nil), nothing, hour, deadletter.KeyForgotten},
		{"nothing is stored where a conflict was", messageOf(noon, map[string]any{"DeadLetterReason": reason.ContentConflict}), nothing, hour, deadletter.KeyForgotten},
		{"nothing is stored where something was compared", messageOf(noon, map[string]any{worker.PropertyStoredHash: "ab"}), nothing, hour, deadletter.KeyForgotten},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := deadletter.Decide(tt.message, tt.result, tt.s, noon)
			require.Equal(t, tt.want, got.Kind)
			require.NotEmpty(t, got.Meaning())
			for _, o := range deadletter.Offers(tt.message, got, deadletter.Settings{Duplicates: deadletter.DuplicateDetection{Known: true}}, deadletter.Choice{}, noon) {
				require.NotEmpty(t, o.Label)
				require.NotEmpty(t, o.Sentence)
			}
		})
	}
}

func TestDecideSaysWhatItWasDecidedFrom(t *testing.T) {
	v := deadletter.Decide(messageOf(noon, nil), judged(worker.Conflict), deadletter.Settings{}, noon)
	require.Equal(t, "stored", v.StoredHash)
	require.Equal(t, "arrived", v.ArrivedHash)
	require.Equal(t, noon, v.CommittedAt)
	v = deadletter.Decide(messageOf(noon, nil), worker.Result{Admitted: true, Commit: worker.Commit{Fingerprint: fingerprint.Fingerprint{Hash: "configured"}}}, deadletter.Settings{}, noon)
	require.Equal(t, "configured", v.ArrivedHash)
	require.Empty(t, v.StoredHash)
}

func TestAConflictOfWhatCannotBeHashedAlikeHasNoHashOfItsOwn(t *testing.T) {
	r := judged(worker.Conflict)
	r.ArrivedHash, r.Commit.Fingerprint.Hash = "", "configured"
	v := deadletter.Decide(messageOf(noon, nil), r, deadletter.Settings{}, noon)
	require.Equal(t, "stored", v.StoredHash)
	require.Empty(t, v.ArrivedHash, "a hash by another parameters says nothing beside the stored one")
}

func TestOnlyAMessageOfAnotherQueueWasForwarded(t *testing.T) {
	l := messageOf(noon, nil)
	for source, want := range map[string][]deadletter.Fact{"": nil, "Orders": nil, "returns": {{Name: "Forwarded from", Value: "returns"}}} {
		l.Message.Annotations["x-opt-deadletter-source"] = source
		require.Equal(t, want, l.Facts("orders"), source)
	}
}

func TestADamagedMessageIsUnreadableWhateverIsStored(t *testing.T) {
	l := messageOf(noon, nil)
	l.Damage = []string{"application properties: decimal128 not implemented"}
	v := deadletter.Decide(l, judged(worker.Duplicate), deadletter.Settings{}, noon)
	require.Equal(t, deadletter.Unreadable, v.Kind)
	require.Contains(t, v.Detail, "decimal128")
}

// refused and warned name the actions that a verdict refuses or warns about; everything else is plainly offered.
func TestOffersByVerdict(t *testing.T) {
	const re, send, drop = deadletter.Reprocess, deadletter.Resubmit, deadletter.Discard
	for kind, tt := range map[deadletter.Kind]struct {
		first   deadletter.Action
		refused []deadletter.Action
		warned  []deadletter.Action
	}{
		deadletter.NeverApplied:   {re, nil, []deadletter.Action{drop}},
		deadletter.AlreadyApplied: {drop, []deadletter.Action{send}, nil},
		deadletter.AppliedUnsent:  {re, []deadletter.Action{send}, nil},
		deadletter.Stale:          {drop, []deadletter.Action{send}, nil},
		deadletter.InProgress:     {deadletter.Export, []deadletter.Action{re, send}, []deadletter.Action{drop}},
		deadletter.ClaimExpired:   {deadletter.Resolve, nil, []deadletter.Action{re, send, drop}},
		deadletter.Conflict:       {deadletter.Compare, []deadletter.Action{re, send}, []deadletter.Action{drop}},
		deadletter.KeyForgotten:   {deadletter.Export, nil, []deadletter.Action{re, send, drop}},
		deadletter.Incomplete:     {deadletter.Compare, []deadletter.Action{re, send}, []deadletter.Action{drop}},
		deadletter.HashMissing:    {deadletter.Compare, []deadletter.Action{re, send}, []deadletter.Action{drop}},
		deadletter.OtherKey:       {deadletter.Compare, []deadletter.Action{re, send}, []deadletter.Action{drop}},
		deadletter.Unreadable:     {deadletter.Export, []deadletter.Action{re, send}, []deadletter.Action{drop}},
		deadletter.OtherProgram:   {deadletter.Export, []deadletter.Action{re, send, drop}, []deadletter.Action{drop}},
		deadletter.OtherSettings:  {deadletter.Export, []deadletter.Action{re, send}, []deadletter.Action{drop}},
		deadletter.Undecided:      {deadletter.Export, []deadletter.Action{re, send, drop}, nil},
	} {
		t.Run(string(kind), func(t *testing.T) {
			v := deadletter.Verdict{Kind: kind, Program: "other"}
			require.Equal(t, tt.first, v.First())
			offers := deadletter.Offers(messageOf(noon, nil), v, deadletter.Settings{Queue: "orders", Duplicates: deadletter.DuplicateDetection{Known: true}}, deadletter.Choice{}, noon)
			var refused, warned []deadletter.Action
			for _, o := range offers {
				if o.Refused != "" {
					refused = append(refused, o.Action)
				}
				if o.Warning != "" {
					warned = append(warned, o.Action)
				}
			}
			require.ElementsMatch(t, tt.refused, refused)
			require.ElementsMatch(t, tt.warned, warned)
			if v.First().Changes() {
				require.Equal(t, v.First(), offers[0].Action)
			}
		})
	}
	require.Len(t, deadletter.Kinds(), 15)
}

func TestKindsAreReadAsTheyAreWritten(t *testing.T) {
	for _, k := range deadletter.Kinds() {
		for _, text := range []string{string(k), strings.ReplaceAll(string(k), "-", " "), " " + string(k) + " "} {
			got, ok := deadletter.ParseKind(text)
			require.True(t, ok)
			require.Equal(t, k, got)
		}
	}
	_, ok := deadletter.ParseKind("applied")
	require.False(t, ok)
}
