package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
)

func TestASignalIsExportedOnlyWhenItIsAskedFor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		environ []string
		want    []string
	}{
		{"nothing is set", nil, nil},
		{"the exporter of one", []string{"OTEL_TRACES_EXPORTER=console"}, []string{"TRACES"}},
		{"the endpoint of one", []string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://127.0.0.1:4318"}, []string{"METRICS"}},
		{"the endpoint of all", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318"}, []string{"TRACES", "METRICS", "LOGS"}},
		{"the endpoint of all but one", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318", "OTEL_LOGS_EXPORTER=none"}, []string{"TRACES", "METRICS"}},
		{"an empty endpoint", []string{"OTEL_EXPORTER_OTLP_ENDPOINT="}, nil},
		{"the SDK is off", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318", "OTEL_SDK_DISABLED=true"}, nil},
		{"something else is set", []string{"OTEL_SERVICE_NAME=orders"}, nil},
		{"none is no exporter", []string{"OTEL_TRACES_EXPORTER=none"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, signal := range []string{"TRACES", "METRICS", "LOGS"} {
				if wantsSignal(tt.environ, signal) {
					got = append(got, signal)
				}
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestOneExporterStartsOneSignal(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "console")
	tm, err := newTelemetry(t.Context(), testProgram(), []string{"OTEL_TRACES_EXPORTER=console"})
	require.NoError(t, err)
	require.NotNil(t, tm.tracers)
	require.Nil(t, tm.meters)
	require.Nil(t, tm.logs)
	require.NoError(t, tm.shutdown(t.Context()))
}

// The handlers of OpenTelemetry are globals, so this test does not run beside others.
func TestFaultsOfTelemetryAreLogLines(t *testing.T) {
	var out bytes.Buffer
	reportTelemetryFaults(config{logFormat: formatJSON}.logger(&out))
	defer reportTelemetryFaults(slog.New(slog.DiscardHandler))
	otel.Handle(errors.New("the collector is away"))
	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	require.Equal(t, "telemetry cannot be exported", line["msg"])
	require.Equal(t, "the collector is away", line["error"])
}

func TestASilentCollectorDelaysAStopForALittle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		silent := &telemetry{stop: []func(context.Context) error{func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}}
		began := time.Now()
		flush(silent, slog.New(slog.DiscardHandler))
		require.Equal(t, flushTimeout, time.Since(began))
	})
}
