package worker

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDecide(t *testing.T) {
	first := func(f facts) facts { f.deliveries, f.maxDeliveries = 1, 10; return f }
	last := func(f facts) facts { f.deliveries, f.maxDeliveries = 10, 10; return f }
	unknown := func(f facts) facts { f.deliveries, f.maxDeliveries = 0, 1; return f }
	tests := []struct {
		name  string
		facts facts
		want  action
	}{
		{"committed documents complete the message", first(facts{cause: CauseCommitted}), complete},
		{"committed documents complete the message while the worker stops", last(facts{cause: CauseCommitted, stopping: true}), complete},
		{"a message whose lock is lost after the commit is left alone", first(facts{cause: CauseCommitted, lockLost: true}), leave},
		{"a message whose lock is lost before the commit is left alone", first(facts{cause: CauseLockLost}), leave},
		{"a refused message whose lock is lost is left alone", first(facts{cause: CauseRefused, lockLost: true}), leave},

		{"a message that cannot be admitted is dead-lettered", first(facts{cause: CauseRefused}), deadLetter},
		{"a message that its handler rejects is dead-lettered", first(facts{cause: CauseRejected}), deadLetter},
		{"a message that the store contradicts is dead-lettered", first(facts{cause: CauseConflict}), deadLetter},
		{"a message that can never be stored is dead-lettered", first(facts{cause: CauseUnstorable}), deadLetter},
		{"a message for which the handler returns what can never be stored is dead-lettered", first(facts{cause: CauseInvalidEffects, triesLeft: true}), deadLetter},
		{"a message that cannot be admitted is dead-lettered while the worker stops", unknown(facts{cause: CauseRefused, stopping: true}), deadLetter},

		{"a failed handler is tried again in place", first(facts{cause: CauseHandlerError, triesLeft: true}), retry},
		{"a failed handler is tried again in place at the last delivery too", last(facts{cause: CauseHandlerError, triesLeft: true}), retry},
		{"a handler that failed too often in place waits for the next delivery", first(facts{cause: CauseHandlerError}), delay},
		{"a handler that failed too often in place is left to the next delivery after the wait", first(facts{cause: CauseHandlerError, delayed: true}), abandon},
		{"nothing waits for another delivery at the last one", last(facts{cause: CauseHandlerError}), deadLetter},
		{"a message is held while what the handler calls is away", first(facts{cause: CauseHandlerOutage, holdLeft: true}), hold},
		{"the delivery before the last is held for as long as what the handler calls is away", facts{cause: CauseHandlerOutage, deliveries: 9, maxDeliveries: 10}, hold},
		{"a last delivery is not settled for what the handler calls when the worker stops", last(facts{cause: CauseHandlerOutage, stopping: true}), leave},
		{"a handler that failed at the last delivery too is dead-lettered", last(facts{cause: CauseHandlerError}), deadLetter},
		{"a failed handler is not tried again while the worker stops", first(facts{cause: CauseHandlerError, triesLeft: true, stopping: true}), abandon},
		{"a handler that fails at the last delivery while the worker stops is dead-lettered", last(facts{cause: CauseHandlerPanic, triesLeft: true, stopping: true}), deadLetter},
		{"an unknown delivery is never taken for the last", unknown(facts{cause: CauseHandlerError, delayed: true}), abandon},
		{"a panic is treated like an error", first(facts{cause: CauseHandlerPanic, triesLeft: true}), retry},
		{"a slow handler waits for the next delivery", first(facts{cause: CauseHandlerTimeout, triesLeft: true}), delay},
		{"a slow handler that has not returned is left to the next delivery at once", first(facts{cause: CauseHandlerTimeout, triesLeft: true, delayed: true}), abandon},
		{"a handler that is slow at the last delivery too is dead-lettered", last(facts{cause: CauseHandlerTimeout, triesLeft: true}), deadLetter},
		{"a message that the store cannot judge is tried again in place", first(facts{cause: CauseUncertain, triesLeft: true}), retry},
		{"a message that the store never could judge is dead-lettered at last", last(facts{cause: CauseUncertain}), deadLetter},

		{"a later retry is waited for in place", first(facts{cause: CauseRetryLater, holdLeft: true}), retry},
		{"a later retry that is too late is abandoned", first(facts{cause: CauseRetryLater}), abandon},
		{"a later retry at the last delivery ends with the real cause", last(facts{cause: CauseRetryLater}), deadLetter},
		{"a later retry is abandoned while the worker stops", first(facts{cause: CauseRetryLater, holdLeft: true, stopping: true}), abandon},
		{"a later retry at the last delivery is left alone while the worker stops", last(facts{cause: CauseRetryLater, stopping: true}), leave},

		{"a message is held while the store is unavailable", first(facts{cause: CauseUnavailable, holdLeft: true}), hold},
		{"a message is abandoned once when it was held for too long", first(facts{cause: CauseUnavailable}), abandon},
		{"the delivery before the last is held for as long as the store is unavailable", facts{cause: CauseUnavailable, deliveries: 9, maxDeliveries: 10}, hold},
		{"the one before that is not", facts{cause: CauseUnavailable, deliveries: 8, maxDeliveries: 10}, abandon},
		{"the last delivery is held for as long as the store is unavailable", last(facts{cause: CauseUnavailable}), hold},
		{"an unknown delivery is held for as long as the store is unavailable", unknown(facts{cause: CauseUnavailable}), hold},
		{"a held message is abandoned when the worker stops", first(facts{cause: CauseUnavailable, holdLeft: true, stopping: true}), abandon},
		{"a held last delivery is left alone when the worker stops", last(facts{cause: CauseUnavailable, holdLeft: true, stopping: true}), leave},
		{"nothing is settled when nothing can be stored", last(facts{cause: CauseMisconfigured, holdLeft: true}), hold},
		{"a message whose lock is too short is abandoned", first(facts{cause: CauseLockTooShort}), abandon},
		{"a last delivery whose lock is too short is left alone", last(facts{cause: CauseLockTooShort}), leave},
		{"a message whose work was cut is abandoned", first(facts{cause: CauseStopped, stopping: true}), abandon},
		{"a last delivery whose work was cut is left alone", last(facts{cause: CauseStopped, stopping: true}), leave},
		{"a message that is claimed elsewhere is waited for", last(facts{cause: CauseInProgress, holdLeft: true}), retry},
		{"a message that is claimed elsewhere for too long is abandoned", first(facts{cause: CauseInProgress}), abandon},
		{"a last delivery that is claimed elsewhere for too long is left alone", last(facts{cause: CauseInProgress, triesLeft: true}), leave},
		{"a message that may have got half way is left to a person", first(facts{cause: CauseClaimExpired, triesLeft: true, holdLeft: true}), deadLetter},
		{"no cause at all leaves the message alone", first(facts{}), leave},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, decide(tt.facts)) })
	}
}

func TestDecideKeepsItsPromisesForEveryCombinationOfFacts(t *testing.T) {
	for f := range everyFacts() {
		a := decide(f)
		name := fmt.Sprintf("%+v gives %v", f, a)
		if a == complete {
			require.Contains(t, []Cause{CauseCommitted, CauseIgnored}, f.cause, "completed without a judgement: "+name)
		}
		if f.lockLost {
			require.Equal(t, leave, a, "settled without a lock: "+name)
		}
		if f.stopping {
			require.NotContains(t, []action{retry, hold, delay}, a, "waits although the worker stops: "+name)
		}
		switch f.cause {
		case CauseUnavailable, CauseMisconfigured, CauseHandlerOutage, CauseStopped, CauseInProgress, CauseLockTooShort, CauseLockLost:
			require.NotEqual(t, deadLetter, a, "dead-lettered for no fault of its own: "+name)
		}
		if a == abandon {
			require.False(t, f.last(), "abandoned to be dead-lettered by the broker: "+name)
		}
		if a == delay {
			require.False(t, f.delayed || f.last(), "waits twice, or for a delivery that there is not: "+name)
		}
		if a == retry {
			require.True(t, f.triesLeft || f.holdLeft, "retried without end: "+name)
		}
	}
}

// everyFacts yields every combination, with causes beyond the known ones.
func everyFacts() func(func(facts) bool) {
	return func(yield func(facts) bool) {
		for cause := Cause(-1); cause <= CauseHandlerOutage+1; cause++ {
			for bits := range 32 {
				for _, d := range []uint32{0, 1, 8, 9, 10, 11} {
					f := facts{
						cause: cause, lockLost: bits&1 > 0, stopping: bits&2 > 0, triesLeft: bits&4 > 0, holdLeft: bits&8 > 0, delayed: bits&16 > 0,
						deliveries: d, maxDeliveries: 10,
					}
					if !yield(f) {
						return
					}
				}
			}
		}
	}
}

func TestEveryCauseHasAName(t *testing.T) {
	seen := map[string]bool{}
	for c := CauseCommitted; c <= CauseHandlerOutage; c++ {
		require.NotEqual(t, "unknown", c.String())
		require.False(t, seen[c.String()], c.String())
		seen[c.String()] = true
	}
	require.Equal(t, "unknown", (CauseHandlerOutage + 1).String())
}
