package worker_test

import (
	"errors"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/reason"
	"github.com/orderworker/orderworker/worker/storetest"
)

// TestAnErrorOfAStoreNeedsNoMoreThanItsKind is about stores that others write.
func TestAnErrorOfAStoreNeedsNoMoreThanItsKind(t *testing.T) {
	t.Parallel()
	cause := errors.New("column too short")
	for _, tt := range []struct {
		name         string
		err          error
		cause        worker.Cause
		reason, says string
	}{
		{"unstorable, and why", &worker.UnstorableError{Cause: cause}, worker.CauseUnstorable, reason.NeverStorable, "can never take this message: column too short."},
		{"unstorable", &worker.UnstorableError{}, worker.CauseUnstorable, reason.NeverStorable, "no cause was given"},
		{"unstorable in words of its own", &worker.UnstorableError{Reason: "TooLong", Detail: "Shorten it.", Cause: cause}, worker.CauseUnstorable, "TooLong", "Shorten it."},
		{"uncertain, and why", &worker.UncertainError{Cause: cause}, worker.CauseUncertain, reason.NeverStorable, "could not commit this message: column too short."},
		{"uncertain", &worker.UncertainError{}, worker.CauseUncertain, reason.NeverStorable, "no cause was given"},
		{"an error of no kind blames no message", cause, worker.CauseUnavailable, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			store := storetest.NewFaulty(storetest.NewMem())
			store.Down(tt.err)
			p, err := worker.NewPipeline(worker.Config{}, store, worker.HandlerFunc(order))
			require.NoError(t, err)
			r := p.Process(t.Context(), &azservicebus.ReceivedMessage{MessageID: "1", Body: []byte(`{}`)})
			require.Equal(t, tt.cause, r.Cause)
			require.Equal(t, tt.reason, r.Reason)
			require.Contains(t, r.Detail, tt.says)
		})
	}
}
