package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/metric"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
)

// telemetry is what the worker reports to. Without a configured exporter every provider is nil, and nothing is recorded.
type telemetry struct {
	tracers trace.TracerProvider
	meters  metric.MeterProvider
	logs    log.LoggerProvider
	stop    []func(context.Context) error
}

// newTelemetry follows the standard OTEL_* variables. A signal is exported only when one of them asks for it: an endpoint, or
// an exporter by name.
func newTelemetry(ctx context.Context, program Program, environ []string) (*telemetry, error) {
	t := &telemetry{}
	starts := map[string]func(context.Context, *resource.Resource) error{"TRACES": t.startTraces, "METRICS": t.startMetrics, "LOGS": t.startLogs}
	for signal := range starts {
		if !wantsSignal(environ, signal) {
			delete(starts, signal)
		}
	}
	if len(starts) == 0 {
		return t, nil
	}
	about, err := resource.New(ctx, resource.WithAttributes(semconv.ServiceName(program.Name), semconv.ServiceVersion(program.Version)),
		resource.WithFromEnv(), resource.WithTelemetrySDK(), resource.WithHost())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	var faults []error
	for _, start := range starts {
		faults = append(faults, start(ctx, about))
	}
	return t, errors.Join(faults...)
}

// wantsSignal reports whether a signal (TRACES, METRICS or LOGS) is to be exported: an exporter or an endpoint is set for it,
// or an endpoint for all signals, and neither the exporter none nor the SDK switched off.
func wantsSignal(environ []string, signal string) bool {
	wanted := false
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		switch {
		case name == "OTEL_SDK_DISABLED" && strings.EqualFold(value, "true"), name == "OTEL_"+signal+"_EXPORTER" && value == "none":
			return false
		case value == "":
		case name == "OTEL_"+signal+"_EXPORTER", name == "OTEL_EXPORTER_OTLP_ENDPOINT", name == "OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT":
			wanted = true
		}
	}
	return wanted
}

func (t *telemetry) startTraces(ctx context.Context, about *resource.Resource) error {
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return fmt.Errorf("OTEL_TRACES_EXPORTER: %w", err)
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	t.tracers, t.stop = p, append(t.stop, p.Shutdown)
	return nil
}

func (t *telemetry) startMetrics(ctx context.Context, about *resource.Resource) error {
	reader, err := autoexport.NewMetricReader(ctx)
	if err != nil {
		return fmt.Errorf("OTEL_METRICS_EXPORTER: %w", err)
	}
	p := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(about))
	t.meters, t.stop = p, append(t.stop, p.Shutdown)
	return nil
}

func (t *telemetry) startLogs(ctx context.Context, about *resource.Resource) error {
	exporter, err := autoexport.NewLogExporter(ctx)
	if err != nil {
		return fmt.Errorf("OTEL_LOGS_EXPORTER: %w", err)
	}
	p := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewBatchProcessor(exporter)), sdklog.WithResource(about))
	t.logs, t.stop = p, append(t.stop, p.Shutdown)
	return nil
}

// shutdown sends what is still waiting, for as long as ctx allows.
func (t *telemetry) shutdown(ctx context.Context) error {
	var errs []error
	for _, stop := range t.stop {
		errs = append(errs, stop(ctx))
	}
	return errors.Join(errs...)
}

// newLogger writes to out and, when logs are exported, there too.
func (t *telemetry) newLogger(c config, out io.Writer) *slog.Logger {
	if t.logs == nil {
		return c.logger(out)
	}
	return c.logger(out, otelslog.NewHandler(c.program.Name, otelslog.WithLoggerProvider(t.logs)))
}

// reportTelemetryFaults has OpenTelemetry report its own faults as log lines. Without that it writes plain text to the
// standard error, between our lines. Its handlers are globals of the process, so only the program that owns the process sets
// them. The lines are not exported: a collector that refuses logs would be sent one more with every refusal.
func reportTelemetryFaults(local *slog.Logger) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		local.LogAttrs(context.Background(), slog.LevelWarn, "telemetry cannot be exported", slog.String("error", err.Error()))
	}))
	otel.SetLogger(logr.FromSlogHandler(local.Handler()))
}
