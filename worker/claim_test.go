package worker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/reason"
	"github.com/orderworker/orderworker/worker/storetest"
)

const lease = 30 * time.Second

// claimant is a pipeline with claims over a store in memory, and what its handler was told.
type claimant struct {
	*testing.T
	mem   *storetest.Mem
	runs  []worker.Message
	next  func(context.Context, worker.Message) (worker.Effects, error) // nil stores an order
	asked []worker.Message
}

// Handle implements [worker.Handler].
func (c *claimant) Handle(ctx context.Context, m worker.Message) (worker.Effects, error) {
	c.runs = append(c.runs, m)
	if c.next != nil {
		return c.next(ctx, m)
	}
	return order(ctx, m)
}

// reconciling is a claimant that can look what became of an earlier attempt.
type reconciling struct {
	*claimant
	found func(context.Context, worker.Message) (worker.Reconciliation, error)
}

// Reconcile implements [worker.Reconciler].
func (r reconciling) Reconcile(ctx context.Context, m worker.Message) (worker.Reconciliation, error) {
	r.asked = append(r.asked, m)
	return r.found(ctx, m)
}

// pipeline is one attempt at messages: another process, as far as the store can tell.
func (c *claimant) pipeline(h worker.Handler, policy worker.ClaimPolicy) *worker.Pipeline {
	c.Helper()
	p, err := worker.NewPipeline(worker.Config{Claim: worker.ClaimConfig{Lease: lease, OnExpired: policy}, HandlerTimeout: 10 * time.Minute}, c.mem, h)
	require.NoError(c, err)
	return p
}

func (c *claimant) process(body string, policy worker.ClaimPolicy) worker.Result {
	c.Helper()
	return c.pipeline(c, policy).Process(c.Context(), received("m", body))
}

// dies makes a claim as an attempt does that dies then.
func (c *claimant) dies(body string) {
	c.Helper()
	next := c.next
	c.next = func(context.Context, worker.Message) (worker.Effects, error) { panic("killed") }
	r := c.process(body, worker.TakeOver)
	require.Equal(c, worker.CauseHandlerPanic, r.Cause)
	c.next, c.runs = next, nil
}

func claiming(t *testing.T, f func(c *claimant)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(&claimant{T: t, mem: storetest.NewMem()}) })
}

func TestAClaimedMessageCostsOneWriteMore(t *testing.T) {
	claiming(t, func(c *claimant) {
		plain := newPipeline(t, storetest.NewMem(), nil).Process(c.Context(), received("m", `{"n":1}`))
		r := c.process(`{"n":1}`, worker.TakeOver)
		require.Equal(t, worker.Created, r.Judgement)
		require.Equal(t, plain.Calls+1, r.Calls)
		require.Equal(t, 1, c.runs[0].Claim.Attempt)
		require.False(t, c.runs[0].Claim.Previous)
		again := c.process(`{"n":1.0}`, worker.TakeOver)
		require.Equal(t, worker.Duplicate, again.Judgement)
		require.Equal(t, worker.CauseConflict, c.process(`{"n":2}`, worker.Intervene).Cause)
		require.Len(t, c.runs, 1, "a message that was processed does not run its handler")
	})
}

func TestWhatAHandlerEndsWithSaysWhetherItMayHaveHadAnEffect(t *testing.T) {
	lost := errors.New("the answer was lost")
	for _, tt := range []struct {
		name  string
		next  func(context.Context, worker.Message) (worker.Effects, error)
		cause worker.Cause
		doubt bool
	}{
		{"an error", func(context.Context, worker.Message) (worker.Effects, error) { return worker.Effects{}, lost }, worker.CauseHandlerError, false},
		{"an error in doubt", func(context.Context, worker.Message) (worker.Effects, error) {
			return worker.Effects{}, worker.InDoubt(lost)
		}, worker.CauseHandlerError, true},
		{"a later retry", func(context.Context, worker.Message) (worker.Effects, error) {
			return worker.Effects{}, worker.RetryAfter(time.Second, lost)
		}, worker.CauseRetryLater, false},
		{"a later retry in doubt", func(context.Context, worker.Message) (worker.Effects, error) {
			return worker.Effects{}, worker.RetryAfter(time.Second, worker.InDoubt(lost))
		}, worker.CauseRetryLater, true},
		{"a rejection", func(context.Context, worker.Message) (worker.Effects, error) {
			return worker.Effects{}, worker.Reject("No", lost)
		}, worker.CauseRejected, false},
		{"a rejection in doubt", func(context.Context, worker.Message) (worker.Effects, error) {
			return worker.Effects{}, worker.Reject("No", worker.InDoubt(lost))
		}, worker.CauseRejected, true},
		{"ignoring it", func(context.Context, worker.Message) (worker.Effects, error) { return worker.Ignore("NotOurs"), nil }, worker.CauseIgnored, false},
		{"a panic", func(context.Context, worker.Message) (worker.Effects, error) { panic(lost) }, worker.CauseHandlerPanic, true},
		{"its timeout", func(ctx context.Context, _ worker.Message) (worker.Effects, error) {
			<-ctx.Done()
			return worker.Effects{}, ctx.Err()
		}, worker.CauseHandlerTimeout, true},
		{"effects that cannot be stored", func(context.Context, worker.Message) (worker.Effects, error) {
			return worker.Create(worker.Document{Type: "order", Content: []byte(`[]`)}), nil
		}, worker.CauseInvalidEffects, true},
		{"a read that fails", func(context.Context, worker.Message) (worker.Effects, error) {
			return worker.Effects{}, &worker.UnavailableError{Cause: lost}
		}, worker.CauseUnavailable, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			claiming(t, func(c *claimant) {
				c.next = tt.next
				require.Equal(t, tt.cause, c.process(`{"n":1}`, worker.TakeOver).Cause)
				record, err := c.mem.Find(c.Context(), "", "m")
				if tt.doubt {
					require.NoError(t, err)
					require.True(t, record.Claim.Over, "the next attempt need not wait")
				} else {
					require.ErrorIs(t, err, worker.ErrNotFound)
				}
				c.next = nil
				r := c.process(`{"n":1}`, worker.TakeOver)
				require.Equal(t, worker.Created, r.Judgement)
				require.Equal(t, 2, c.runs[1].Claim.Attempt, "the number never goes down")
				require.Equal(t, tt.doubt, c.runs[1].Claim.Previous)
			})
			claiming(t, func(c *claimant) {
				c.next = tt.next
				r := c.process(`{"n":1}`, worker.Intervene)
				if tt.doubt && tt.cause != worker.CauseRejected && tt.cause != worker.CauseInvalidEffects {
					require.Equal(t, worker.CauseClaimExpired, r.Cause, "a person is to find out")
					require.Equal(t, reason.ClaimExpired, r.Reason)
					require.Contains(t, r.Detail, "find out")
				} else {
					require.Equal(t, tt.cause, r.Cause)
				}
				c.next = nil
				r = c.process(`{"n":1}`, worker.Intervene)
				if tt.doubt {
					require.Equal(t, worker.CauseClaimExpired, r.Cause)
					require.Len(t, c.runs, 1)
				} else {
					require.Equal(t, worker.Created, r.Judgement)
				}
			})
		})
	}
}

func TestADoubtStaysUntilSomebodyHasLooked(t *testing.T) {
	claiming(t, func(c *claimant) {
		c.dies(`{"n":1}`)
		c.next = func(context.Context, worker.Message) (worker.Effects, error) {
			return worker.Effects{}, errors.New("declined")
		}
		require.Equal(t, worker.CauseHandlerError, c.process(`{"n":1}`, worker.TakeOver).Cause)
		require.Equal(t, worker.CauseClaimExpired, c.process(`{"n":1}`, worker.Intervene).Cause, "the second attempt knows nothing of the first")
		c.next = nil
		c.process(`{"n":1}`, worker.TakeOver)
		require.Equal(t, 3, c.runs[1].Claim.Attempt)
		require.True(t, c.runs[1].Claim.Previous)
	})
}

func TestAReconcilerIsAskedBeforeATakeOver(t *testing.T) {
	for _, policy := range []worker.ClaimPolicy{worker.TakeOver, worker.Intervene} {
		for _, tt := range []struct {
			name  string
			found worker.Reconciliation
			err   error
			check func(c *claimant, r worker.Result)
		}{
			{"done", worker.Done(worker.Effects{Outcome: []byte(`{"charge":"ch_1"}`)}), nil, func(c *claimant, r worker.Result) {
				require.Equal(c, worker.Created, r.Judgement)
				require.Empty(c, c.runs)
				record, err := c.mem.Find(c.Context(), "", "m")
				require.NoError(c, err)
				require.JSONEq(c, `{"charge":"ch_1"}`, string(record.Outcome))
				require.False(c, record.Stale)
				require.Equal(c, worker.Duplicate, c.process(`{"n":1}`, policy).Judgement)
			}},
			{"done, with documents", worker.Done(worker.Create(worker.Document{Type: "order", Content: []byte(`{"n":1}`)})), nil, func(c *claimant, r worker.Result) {
				require.Equal(c, worker.Created, r.Judgement)
				require.Len(c, c.mem.Documents("m"), 1)
			}},
			{"done, with documents that cannot be stored", worker.Done(worker.Create(worker.Document{})), nil, func(c *claimant, r worker.Result) {
				require.Equal(c, worker.CauseInvalidEffects, r.Cause)
			}},
			{"not done", worker.NotDone(), nil, func(c *claimant, r worker.Result) {
				require.Equal(c, worker.Created, r.Judgement)
				require.Equal(c, 2, c.runs[0].Claim.Attempt)
				require.False(c, c.runs[0].Claim.Previous)
			}},
			{"unknown", worker.Unknown(), nil, func(c *claimant, r worker.Result) {
				require.Equal(c, worker.CauseClaimExpired, r.Cause)
				require.Empty(c, c.runs)
			}},
			{"an error", worker.Reconciliation{}, errors.New("no answer"), func(c *claimant, r worker.Result) {
				require.Equal(c, worker.CauseHandlerError, r.Cause)
				require.Empty(c, c.runs)
			}},
		} {
			t.Run(tt.name, func(t *testing.T) {
				claiming(t, func(c *claimant) {
					c.dies(`{"n":1}`)
					h := reconciling{c, func(context.Context, worker.Message) (worker.Reconciliation, error) { return tt.found, tt.err }}
					r := c.pipeline(h, policy).Process(c.Context(), received("m", `{"n":1}`))
					require.Len(t, c.asked, 1)
					require.Equal(t, "m~part.charge", c.asked[0].IdempotencyKey("charge"))
					tt.check(c, r)
				})
			})
		}
	}
}

func TestARouterAsksTheReconcilerOfTheType(t *testing.T) {
	claiming(t, func(c *claimant) {
		c.dies(`{"type":"a"}`)
		h := reconciling{c, func(context.Context, worker.Message) (worker.Reconciliation, error) { return worker.Unknown(), nil }}
		router := worker.Route(worker.ByBody("/type"), map[string]worker.Handler{"a": h, "b": c}, worker.RejectUnknown)
		require.Equal(t, worker.CauseClaimExpired, c.pipeline(router, worker.TakeOver).Process(c.Context(), received("m", `{"type":"a"}`)).Cause)
		router = worker.Route(worker.ByBody("/type"), map[string]worker.Handler{"a": c}, worker.RejectUnknown)
		require.Equal(t, worker.Created, c.pipeline(router, worker.TakeOver).Process(c.Context(), received("m", `{"type":"a"}`)).Judgement)
		require.Len(t, c.asked, 1)
	})
}

func TestAHandlerThatTakesLongKeepsItsClaim(t *testing.T) {
	claiming(t, func(c *claimant) {
		c.next = func(ctx context.Context, m worker.Message) (worker.Effects, error) {
			for range 8 {
				time.Sleep(lease / 2)
				r := c.pipeline(worker.HandlerFunc(order), worker.TakeOver).Process(c.Context(), received("m", `{"n":1}`))
				require.Equal(t, worker.CauseInProgress, r.Cause)
			}
			time.Sleep(time.Second)
			return order(ctx, m)
		}
		r := c.process(`{"n":1}`, worker.TakeOver)
		require.Equal(t, worker.Created, r.Judgement)
		require.Equal(t, 2+12, r.Calls, "a renewal for each third of the lease")
	})
}

func TestAHandlerWhoseClaimIsTakenOverIsStoppedAndItsResultDiscarded(t *testing.T) {
	for _, heeds := range []bool{true, false} {
		claiming(t, func(c *claimant) {
			var cause error
			c.next = func(ctx context.Context, m worker.Message) (worker.Effects, error) {
				record, err := c.mem.Find(c.Context(), "", "m")
				require.NoError(t, err)
				taken := worker.Commit{Key: m.Key, DocumentID: "m", Attempt: "another", Fingerprint: m.Fingerprint,
					Claim: &worker.ClaimRecord{Number: 2, Lease: lease, ETag: record.Claim.ETag}}
				o, err := c.mem.Claim(c.Context(), taken)
				require.NoError(t, err)
				require.NotNil(t, o.Claim)
				if heeds {
					<-ctx.Done()
					cause = context.Cause(ctx)
					return worker.Effects{}, cause
				}
				return order(ctx, m)
			}
			r := c.process(`{"n":1}`, worker.TakeOver)
			require.Equal(t, worker.CauseInProgress, r.Cause)
			require.Empty(t, c.mem.Documents("m"))
			if heeds {
				require.ErrorIs(t, cause, worker.ErrClaimLost)
			}
			record, err := c.mem.Find(c.Context(), "", "m")
			require.NoError(t, err)
			require.Equal(t, 2, record.Claim.Number, "the claim of the other is left alone")
			require.Equal(t, "another", record.Attempt)
		})
	}
}

// TestAProgramWithoutClaimsNeverTakesOneForACommit is a worker of the same program beside one with claims, as while claims are
// switched on or off.
func TestAProgramWithoutClaimsNeverTakesOneForACommit(t *testing.T) {
	claiming(t, func(c *claimant) {
		plain := newPipeline(t, c.mem, nil)
		c.next = func(ctx context.Context, m worker.Message) (worker.Effects, error) {
			require.Equal(t, worker.CauseInProgress, plain.Process(c.Context(), received("m", `{"n":1}`)).Cause)
			require.Equal(t, worker.CauseInProgress, plain.Preview(c.Context(), received("m", `{"n":1}`)).Cause)
			return worker.Effects{}, worker.InDoubt(errors.New("no answer"))
		}
		c.process(`{"n":1}`, worker.TakeOver)
		r := plain.Process(c.Context(), received("m", `{"n":1}`))
		require.Equal(t, worker.CauseUncertain, r.Cause, "another worker may take over, until the last delivery")
		require.Equal(t, reason.ClaimExpired, r.Reason)
		require.Equal(t, worker.ClaimExpired, plain.Preview(c.Context(), received("m", `{"n":1}`)).Judgement)
		require.Empty(t, c.mem.Documents("m"))
	})
	claiming(t, func(c *claimant) {
		c.next = func(context.Context, worker.Message) (worker.Effects, error) {
			return worker.Effects{}, errors.New("no")
		}
		c.process(`{"n":1}`, worker.TakeOver)
		require.Equal(t, worker.Created, newPipeline(t, c.mem, nil).Process(c.Context(), received("m", `{"n":2}`)).Judgement, "a claim that was released is none")
	})
}

func TestAClaimIsConfiguredToOutlastARenewalThatFails(t *testing.T) {
	for text, c := range map[string]worker.ClaimConfig{
		"claim lease is 29s": {Lease: 29 * time.Second}, "claim lease is 30.5s": {Lease: 30500 * time.Millisecond},
		"no claim lease":     {OnExpired: worker.Intervene},
		"claim lease is 25h": {Lease: 25 * time.Hour}, "claim policy is 2": {Lease: lease, OnExpired: 2},
	} {
		require.ErrorContains(t, worker.Config{Claim: c}.Validate(), text)
	}
	require.NoError(t, worker.Config{Claim: worker.ClaimConfig{Lease: lease, OnExpired: worker.Intervene}}.Validate())
	require.NoError(t, worker.InDoubt(nil))
}
