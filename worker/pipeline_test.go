package worker_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/reason"
	"github.com/orderworker/orderworker/worker/storetest"
)

// received is a message of its own, whatever its id.
func received(id, body string) *azservicebus.ReceivedMessage {
	return &azservicebus.ReceivedMessage{MessageID: id, Body: []byte(body), SequenceNumber: new(rand.Int64N(1<<40) + 1), EnqueuedTime: new(time.Now())}
}

func newPipeline(t *testing.T, s worker.Store, h worker.HandlerFunc) *worker.Pipeline {
	t.Helper()
	if h == nil {
		h = order
	}
	p, err := worker.NewPipeline(worker.Config{}, s, h)
	require.NoError(t, err)
	return p
}

func TestProcessMakesOnePassAndSettlesNothing(t *testing.T) {
	mem := storetest.NewMem()
	p := newPipeline(t, mem, nil)
	first := p.Process(t.Context(), received("m", `{"n":1}`))
	require.Equal(t, worker.CauseCommitted, first.Cause)
	require.Equal(t, worker.Created, first.Judgement)
	require.True(t, first.Committed())
	require.Equal(t, "m", first.Commit.DocumentID)
	require.Positive(t, first.Calls)
	require.Positive(t, first.Charge)

	again := p.Process(t.Context(), received("m", `{"n":1.0}`))
	require.Equal(t, worker.Duplicate, again.Judgement)
	require.NotEqual(t, first.Commit.Attempt, again.Commit.Attempt, "every delivery has a nonce of its own")

	other := p.Process(t.Context(), received("m", `{"n":2,"x":[1]}`))
	require.Equal(t, worker.CauseConflict, other.Cause)
	require.Equal(t, worker.Conflict, other.Judgement)
	require.Equal(t, reason.ContentConflict, other.Reason)
	require.Len(t, other.Differences, 2)
	require.Equal(t, other.ArrivedHash, other.Commit.Fingerprint.Hash)

	bad := p.Process(t.Context(), received("m", `{"n":`))
	require.Equal(t, worker.CauseRefused, bad.Cause)
	require.Equal(t, reason.NotJSON, bad.Reason)
	require.False(t, bad.Admitted)
}

func TestPreviewWritesNothingAndCallsNoHandler(t *testing.T) {
	mem := storetest.NewMem()
	p := newPipeline(t, mem, func(context.Context, worker.Message) (worker.Effects, error) {
		return worker.Effects{}, errors.New("the handler was called")
	})
	nothing := p.Preview(t.Context(), received("m", `{"n":1}`))
	require.Zero(t, nothing.Cause)
	require.Zero(t, nothing.Judgement)
	require.True(t, nothing.Admitted)
	require.Zero(t, mem.Len())

	require.Equal(t, worker.Created, newPipeline(t, mem, nil).Process(t.Context(), received("m", `{"n":1}`)).Judgement)
	require.Equal(t, worker.Duplicate, p.Preview(t.Context(), received("m", `{"n":1}`)).Judgement)
	require.Equal(t, worker.Conflict, p.Preview(t.Context(), received("m", `{"n":2}`)).Judgement)
	require.Equal(t, worker.CauseRefused, p.Preview(t.Context(), received("", `{"n":1}`)).Cause)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, worker.CauseStopped, p.Preview(ended, received("m", `{"n":1}`)).Cause)
}

func TestWhatAStoreAnswersIsClassifiedOnce(t *testing.T) {
	cause := errors.New("inner")
	tests := []struct {
		name   string
		fault  storetest.Fault
		want   worker.Cause
		reason string
		after  time.Duration
	}{
		{"unavailable with a hint", storetest.Fault{Err: &worker.UnavailableError{Cause: cause, RetryAfter: time.Second}}, worker.CauseUnavailable, "", time.Second},
		{"unavailable, wrapped", storetest.Fault{Err: errors.Join(cause, &worker.UnavailableError{Cause: cause})}, worker.CauseUnavailable, "", 0},
		{"misconfigured", storetest.Fault{Err: &worker.MisconfiguredError{Cause: cause, Fix: "Do this."}}, worker.CauseMisconfigured, "", 0},
		{"unstorable", storetest.Fault{Err: &worker.UnstorableError{Reason: reason.TooLarge, Detail: "3 MB"}}, worker.CauseUnstorable, reason.TooLarge, 0},
		{"uncertain", storetest.Fault{Err: &worker.UncertainError{Reason: reason.ConflictUnread, Detail: "gone"}}, worker.CauseUncertain, reason.ConflictUnread, 0},
		{"a panic", storetest.Fault{Panic: "nil map"}, worker.CauseUncertain, reason.NeverStorable, 0},
		{"an error of no class", storetest.Fault{Err: cause}, worker.CauseUnavailable, "", 0},
		{"a context error of its own", storetest.Fault{Err: context.DeadlineExceeded}, worker.CauseUnavailable, "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := storetest.NewFaulty(storetest.NewMem())
			s.OnCommit(func(int, worker.Commit) *storetest.Fault { return &tt.fault })
			r := newPipeline(t, s, nil).Process(t.Context(), received("m", `{"n":1}`))
			require.Equal(t, tt.want, r.Cause)
			require.Equal(t, tt.reason, r.Reason)
			require.Equal(t, tt.after, r.RetryAfter)
			require.Error(t, r.Err)
			if tt.reason != "" {
				require.NotEmpty(t, r.Detail)
			}
		})
	}
}

func TestAnAnswerWithoutSenseIsUncertain(t *testing.T) {
	r := newPipeline(t, senseless{storetest.NewMem()}, nil).Process(t.Context(), received("m", `{"n":1}`))
	require.Equal(t, worker.CauseUncertain, r.Cause)
	require.Equal(t, reason.ConflictUnread, r.Reason)
}

// senseless answers neither that it created anything nor what stands in the way.
type senseless struct{ worker.Store }

func (senseless) Commit(context.Context, worker.Commit) (worker.Outcome, error) {
	return worker.Outcome{Calls: 1}, nil
}

func TestDocumentsThatNoStoreCouldTakeAreTheHandlersFault(t *testing.T) {
	good := worker.Document{Type: "order", Content: []byte(`{}`)}
	line := worker.Document{Name: "line-1", Type: "line", Content: []byte(`{}`)}
	for name, documents := range map[string][]worker.Document{
		"none":              {},
		"a named guard":     {line},
		"a nameless line":   {good, good},
		"one name twice":    {good, line, line},
		"no type":           {{Content: []byte(`{}`)}},
		"no content":        {{Type: "order"}},
		"a list":            {{Type: "order", Content: []byte(`[{}]`)}},
		"a text":            {{Type: "order", Content: []byte(`"{}"`)}},
		"half an object":    {{Type: "order", Content: []byte(`{"a":1`)}},
		"half a second":     {{Type: "order", Content: []byte(`{}`), TTL: time.Second / 2}},
		"a negative life":   {{Type: "order", Content: []byte(`{}`), TTL: -time.Second}},
		"a line of no type": {good, {Name: "x", Content: []byte(`{}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := storetest.NewFaulty(storetest.NewMem())
			p := newPipeline(t, s, func(context.Context, worker.Message) (worker.Effects, error) { return worker.Create(documents...), nil })
			r := p.Process(t.Context(), received("m", `{"n":1}`))
			require.Equal(t, worker.CauseInvalidEffects, r.Cause)
			require.Equal(t, reason.InvalidEffects, r.Reason)
			require.Contains(t, r.Detail, "The handler returned ")
			require.Zero(t, s.Commits(), "the store was not asked")
		})
	}
}

func TestAHandlerThatReturnsNothingSinceItsTimeIsUpIsSlowAndNotAtFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipeline(t, storetest.NewMem(), func(ctx context.Context, _ worker.Message) (worker.Effects, error) {
			<-ctx.Done()
			return worker.Effects{}, nil
		})
		require.Equal(t, worker.CauseHandlerTimeout, p.Process(t.Context(), received("m", `{"n":1}`)).Cause)
	})
}

func TestWhatAStoreRefusesOfTheDocumentsThemselvesIsTheHandlersFault(t *testing.T) {
	s := storetest.NewFaulty(storetest.NewMem())
	s.OnCommit(func(int, worker.Commit) *storetest.Fault {
		return &storetest.Fault{Err: &worker.UnstorableError{Reason: reason.InvalidEffects, Detail: "The handler returned a reserved type."}}
	})
	require.Equal(t, worker.CauseInvalidEffects, newPipeline(t, s, nil).Process(t.Context(), received("m", `{"n":1}`)).Cause)
}

func TestTheWordOfARejectionIsMadeOfLettersAndDigits(t *testing.T) {
	for given, want := range map[string]string{
		"UnknownCustomer":         "UnknownCustomer",
		"Unknown customer!":       "Unknowncustomer",
		" \n\t ":                  reason.Rejected,
		"":                        reason.Rejected,
		"Größe\r\nX-Injected: 1":  "GreXInjected1",
		strings.Repeat("a1", 100): strings.Repeat("a1", 32),
	} {
		for name, err := range map[string]error{
			"by the function": worker.Reject(given, errors.New("no")),
			"by hand":         &worker.RejectError{Reason: given, Err: errors.New("no")},
		} {
			p := newPipeline(t, storetest.NewMem(), func(context.Context, worker.Message) (worker.Effects, error) { return worker.Effects{}, err })
			require.Equal(t, want, p.Process(t.Context(), received("m", `{"n":1}`)).Reason, "%q %s", given, name)
		}
	}
}

func TestSteeringErrorsWithoutACauseDoNoHarm(t *testing.T) {
	for want, err := range map[worker.Cause]error{
		worker.CauseRejected:   &worker.RejectError{},
		worker.CauseRetryLater: &worker.RetryError{},
	} {
		p := newPipeline(t, storetest.NewMem(), func(context.Context, worker.Message) (worker.Effects, error) { return worker.Effects{}, err })
		r := p.Process(t.Context(), received("m", `{"n":1}`))
		require.Equal(t, want, r.Cause)
		require.Contains(t, r.Detail, "no cause was given")
		require.NotEmpty(t, err.Error())
	}
}
