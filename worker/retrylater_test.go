package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/storetest"
)

// This one runs by the real clock, which goes on between two looks at it, as that of a bubble does not.
func TestALaterRetryThanAMessageMayBeHeldIsWaitedForByARealClockToo(t *testing.T) {
	outcome := make(chan worker.EventKind, 1)
	observer := worker.ObserverFunc(func(e worker.Event) {
		if e.Kind == worker.EventRetried || e.Kind == worker.EventAbandoned {
			select {
			case outcome <- e.Kind:
			default:
			}
		}
	})
	handler := worker.HandlerFunc(func(context.Context, worker.Message) (worker.Effects, error) {
		return worker.Effects{}, worker.RetryAfter(24*time.Hour, errors.New("the other side is closed"))
	})
	b := &fakeBroker{queue: []*azservicebus.ReceivedMessage{fakeMessage("m", `{"n":1}`)}}
	w, err := worker.New(worker.Config{Observer: observer, Logger: slog.New(slog.DiscardHandler)}, b, storetest.NewMem(), handler)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	require.Equal(t, worker.EventRetried, <-outcome)
	stop()
	require.NoError(t, <-done)
}
