package worker_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/admission"
	"github.com/orderworker/orderworker/worker/storetest"
)

func update() bool {
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}

func TestMain(m *testing.M) {
	flag.Bool("update", false, "write golden files anew")
	flag.Parse()
	os.Exit(m.Run())
}

// golden compares got with a file in testdata, or writes it with -update.
func golden(t require.TestingT, name, got string) {
	path := filepath.Join("testdata", name)
	if update() {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func newWorker(c worker.Config) error {
	_, err := worker.New(c, &fakeBroker{}, storetest.NewMem(), worker.HandlerFunc(order))
	return err
}

func TestTheZeroConfigIsGood(t *testing.T) { require.NoError(t, newWorker(worker.Config{})) }

func TestShortLocksHaveDefaultsThatFit(t *testing.T) {
	for _, d := range []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 5 * time.Minute} {
		require.NoError(t, newWorker(worker.Config{LockDuration: d}))
	}
}

func TestEveryFaultOfAConfigIsReportedAtOnce(t *testing.T) {
	err := newWorker(worker.Config{
		Concurrency:      6000,
		LockDuration:     time.Hour,
		MaxDeliveryCount: -1,
		HandlerTimeout:   -time.Second,
		StoreTimeout:     2 * time.Hour,
		DrainTimeout:     -time.Second,
		Retry:            worker.RetryConfig{Attempts: -1, Base: time.Minute, Max: time.Second, HoldFor: 48 * time.Hour},
		Breaker:          worker.BreakerConfig{Failures: -1, ProbeBase: time.Minute, ProbeMax: time.Second},
		Watchdog:         worker.WatchdogConfig{Silence: time.Millisecond, Stuck: -1, NotReceiving: time.Microsecond},
		Admission:        admission.Config{Content: "xml"},
	})
	require.Error(t, err)
	golden(t, "config-faults.txt", err.Error()+"\n")
}

func TestPartsThatAreMissingAreNamed(t *testing.T) {
	_, err := worker.New(worker.Config{}, nil, storetest.NewMem(), worker.HandlerFunc(order))
	require.ErrorContains(t, err, "broker")
	_, err = worker.New(worker.Config{}, &fakeBroker{}, nil, worker.HandlerFunc(order))
	require.ErrorContains(t, err, "store")
	_, err = worker.NewPipeline(worker.Config{}, storetest.NewMem(), nil)
	require.ErrorContains(t, err, "handler")
}

func TestHandlersErrorsKeepTheirCause(t *testing.T) {
	require.NoError(t, worker.Reject("x", nil))
	require.NoError(t, worker.RetryAfter(time.Second, nil))
	require.ErrorIs(t, worker.Reject("x", context.Canceled), context.Canceled)
	require.ErrorIs(t, worker.RetryAfter(time.Second, context.Canceled), context.Canceled)
}
