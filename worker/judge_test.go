package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/admission"
	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/identity"
	"github.com/orderworker/orderworker/worker/reason"
	"github.com/orderworker/orderworker/worker/storetest"
)

func TestAStoredRecordIsJudgedInThisOrder(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	commit := worker.Commit{Key: identity.Text("m"), DocumentID: "m", Attempt: "mine", SequenceNumber: 7, EnqueuedAt: noon.Add(time.Millisecond)}
	equal := func(fingerprint.Parameters) (fingerprint.Fingerprint, error) {
		return fingerprint.Fingerprint{Hash: "aa"}, nil
	}
	stored := worker.Record{Key: "m", Attempt: "theirs", SequenceNumber: 3, EnqueuedAt: noon, Fingerprint: &fingerprint.Fingerprint{Hash: "aa"}}
	tests := []struct {
		name   string
		change func(*worker.Commit, *worker.Record)
		want   worker.Judgement
	}{
		{"equal content of another message", func(*worker.Commit, *worker.Record) {}, worker.Duplicate},
		{"other content", func(_ *worker.Commit, r *worker.Record) { r.Fingerprint.Hash = "bb" }, worker.Conflict},
		{"this delivery's own write", func(_ *worker.Commit, r *worker.Record) { r.Attempt, r.Fingerprint.Hash = "mine", "bb" }, worker.Own},
		{"the very message, delivered before", func(_ *worker.Commit, r *worker.Record) { r.SequenceNumber = 7 }, worker.Redelivered},
		{"the same sequence number of another queue", func(_ *worker.Commit, r *worker.Record) { r.SequenceNumber, r.EnqueuedAt = 7, noon.Add(time.Hour) }, worker.Duplicate},
		{"the same sequence number and other content", func(_ *worker.Commit, r *worker.Record) { r.SequenceNumber, r.Fingerprint.Hash = 7, "bb" }, worker.Conflict},
		{"no sequence number on either side", func(c *worker.Commit, r *worker.Record) { c.SequenceNumber, r.SequenceNumber = 0, 0 }, worker.Duplicate},
		{"neither side has an attempt, and other content", func(c *worker.Commit, r *worker.Record) { c.Attempt, r.Attempt, r.Fingerprint.Hash = "", "", "bb" }, worker.Conflict},
		{"another key", func(_ *worker.Commit, r *worker.Record) { r.Key = "n" }, worker.OtherKey},
		{"another key in a record of a later version", func(_ *worker.Commit, r *worker.Record) { r.Key, r.Unknown = "n", "version 2" }, worker.OtherKey},
		{"equal content in a record of a later version", func(_ *worker.Commit, r *worker.Record) { r.Unknown = "version 2" }, worker.UnknownRecord},
		{"its own write in an unknown state", func(_ *worker.Commit, r *worker.Record) { r.Attempt, r.Unknown = "mine", "state claimed" }, worker.UnknownRecord},
		{"other content in an unknown state", func(_ *worker.Commit, r *worker.Record) { r.Fingerprint.Hash, r.Unknown = "bb", "state claimed" }, worker.UnknownRecord},
		{"no hash in an unknown state", func(_ *worker.Commit, r *worker.Record) { r.Fingerprint, r.Unknown = nil, "state claimed" }, worker.UnknownRecord},
		{"no key in an unknown state", func(_ *worker.Commit, r *worker.Record) { r.Key, r.Unknown = "", "state claimed" }, worker.UnknownRecord},
		{"missing documents in an unknown state", func(_ *worker.Commit, r *worker.Record) { r.MissingParts, r.Unknown = []string{"x"}, "state claimed" }, worker.UnknownRecord},
		{"no hash", func(_ *worker.Commit, r *worker.Record) { r.Fingerprint = nil }, worker.HashMissing},
		{"no key", func(_ *worker.Commit, r *worker.Record) { r.Key = "" }, worker.HashMissing},
		{"equal content in progress", func(_ *worker.Commit, r *worker.Record) { r.Claim = &worker.ClaimRecord{Number: 1} }, worker.InProgress},
		{"other content in progress", func(_ *worker.Commit, r *worker.Record) {
			r.Fingerprint.Hash, r.Claim = "bb", &worker.ClaimRecord{Number: 1}
		}, worker.InProgress},
		{"its own claim in progress", func(_ *worker.Commit, r *worker.Record) { r.Attempt, r.Claim = "mine", &worker.ClaimRecord{Number: 1} }, worker.InProgress},
		{"equal content whose claim is over", func(_ *worker.Commit, r *worker.Record) { r.Claim = &worker.ClaimRecord{Over: true} }, worker.ClaimExpired},
		{"the very message, whose claim is over", func(_ *worker.Commit, r *worker.Record) {
			r.SequenceNumber, r.Claim = 7, &worker.ClaimRecord{Over: true}
		}, worker.ClaimExpired},
		{"its own claim that is over", func(_ *worker.Commit, r *worker.Record) { r.Attempt, r.Claim = "mine", &worker.ClaimRecord{Over: true} }, worker.ClaimExpired},
		{"other content whose claim is over", func(_ *worker.Commit, r *worker.Record) {
			r.Fingerprint.Hash, r.Claim = "bb", &worker.ClaimRecord{Over: true}
		}, worker.Conflict},
		{"a claim of another key", func(_ *worker.Commit, r *worker.Record) { r.Key, r.Claim = "n", &worker.ClaimRecord{} }, worker.OtherKey},
		{"a claim in a record of a later version", func(_ *worker.Commit, r *worker.Record) { r.Unknown, r.Claim = "version 2", &worker.ClaimRecord{} }, worker.UnknownRecord},
		{"missing documents", func(_ *worker.Commit, r *worker.Record) { r.MissingParts = []string{"line-1"} }, worker.Incomplete},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, r := commit, stored
			r.Fingerprint = &fingerprint.Fingerprint{Hash: stored.Fingerprint.Hash}
			tt.change(&c, &r)
			require.Equal(t, tt.want, worker.JudgeRecord(c, r, equal))
		})
	}
}

func TestARecordOfALaterVersionIsNeverEqualAndNeverDeadLettersBeforeTheLastDelivery(t *testing.T) {
	mem := storetest.NewMem()
	p := newPipeline(t, mem, nil)
	m := received("m", `{"n":1}`)
	first := p.Process(t.Context(), m)
	mem.Plant("m", worker.Record{Key: "m", Attempt: first.Commit.Attempt, Fingerprint: &first.Commit.Fingerprint, Unknown: "version 2"})
	for name, r := range map[string]worker.Result{"process": p.Process(t.Context(), m), "preview": p.Preview(t.Context(), m)} {
		require.Equal(t, worker.UnknownRecord, r.Judgement, name)
		require.Equal(t, worker.CauseUncertain, r.Cause, name)
		require.Equal(t, reason.StoredRecordUnknown, r.Reason, name)
		require.Contains(t, r.Detail, "version 2", name)
		require.False(t, r.Committed(), name)
	}

	bubble(t, servicebus.Queue{MaxDeliveryCount: 3}, func(e *env) {
		e.mem.Plant("m", worker.Record{Key: "m", Fingerprint: &first.Commit.Fingerprint, Unknown: "state claimed"})
		e.send("m", `{"n":1}`)
		w := e.start(worker.Config{MaxDeliveryCount: 3, Retry: worker.RetryConfig{Attempts: 1}})
		e.await(time.Hour, "dead-lettered", func() bool { return len(e.deadLetters()) == 1 })
		require.Equal(e, reason.StoredRecordUnknown, e.deadLetters()[0].DeadLetterReason)
		require.Equal(e, 2, e.count(worker.EventAbandoned))
		e.end(w)
	})
}

// TestTheStoredParametersDecideWhateverIsConfiguredNow runs the real pipeline with another configuration than the one that stored.
func TestTheStoredParametersDecideWhateverIsConfiguredNow(t *testing.T) {
	mem := storetest.NewMem()
	ignoring := admission.Config{Ignore: []string{"/sentAt"}}
	before, err := worker.NewPipeline(worker.Config{Admission: ignoring}, mem, worker.HandlerFunc(order))
	require.NoError(t, err)
	require.Equal(t, worker.Created, before.Process(t.Context(), received("m", `{"n":1,"sentAt":1}`)).Judgement)

	now := newPipeline(t, mem, nil)
	require.Equal(t, worker.Duplicate, now.Process(t.Context(), received("m", `{"n":1,"sentAt":2}`)).Judgement)
	require.Equal(t, worker.Duplicate, now.Preview(t.Context(), received("m", `{"n":1,"sentAt":3}`)).Judgement)
	require.Equal(t, worker.Conflict, now.Process(t.Context(), received("m", `{"n":2,"sentAt":1}`)).Judgement)
}

func TestARedeliveryAfterACommitIsNoDuplicate(t *testing.T) {
	mem := storetest.NewMem()
	p := newPipeline(t, mem, nil)
	m := received("m", `{"n":1}`)
	require.Equal(t, worker.Created, p.Process(t.Context(), m).Judgement)
	again := p.Process(t.Context(), m)
	require.Equal(t, worker.Redelivered, again.Judgement)
	require.True(t, again.Committed())
	require.Equal(t, worker.Duplicate, p.Process(t.Context(), received("m", `{"n":1}`)).Judgement)
}

func TestNoCommitStartsUnderALockThatDoesNotCoverIt(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		b := &fakeBroker{open: func(int) *fakeReceiver {
			return &fakeReceiver{renew: func(_ context.Context, m *azservicebus.ReceivedMessage) error {
				if m.LockToken == [16]byte{15: 1} {
					return &azservicebus.Error{Code: azservicebus.CodeLockLost}
				}
				return errors.New("busy")
			}}
		}}
		m := fakeMessage("m", `{"n":1}`)
		m.LockedUntil = new(time.Now().Add(20 * time.Second))
		b.queue = []*azservicebus.ReceivedMessage{m}
		e.handler = worker.HandlerFunc(func(ctx context.Context, m worker.Message) (worker.Effects, error) {
			time.Sleep(18 * time.Second) // two seconds of the lock are left
			return order(ctx, m)
		})
		w := e.startOver(worker.Config{LockDuration: 20 * time.Second, StoreTimeout: 10 * time.Second}, b)
		e.await(time.Minute, "finished", func() bool { return e.count(worker.EventFinished) == 1 })
		require.Zero(e, e.mem.Len())
		require.Equal(e, worker.CauseLockTooShort, e.seen(worker.EventFinished)[0].Cause)
		e.end(w)
	})
}
