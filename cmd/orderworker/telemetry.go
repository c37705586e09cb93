package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/contrib/exporters/autoexport"
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

// newTelemetry follows the standard OTEL_* variables. Nothing is exported unless one of them asks for it: an endpoint, or an
// exporter by name.
func newTelemetry(ctx context.Context, environ []string) (*telemetry, error) {
	t := &telemetry{}
	if !wantsTelemetry(environ) {
		return t, nil
	}
	about, err := resource.New(ctx, resource.WithAttributes(semconv.ServiceName(applicationID), semconv.ServiceVersion(version())),
		resource.WithFromEnv(), resource.WithTelemetrySDK(), resource.WithHost())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return t, errors.Join(t.startTraces(ctx, about), t.startMetrics(ctx, about), t.startLogs(ctx, about))
}

// wantsTelemetry reports whether a variable names an endpoint or an exporter, and the SDK is not switched off.
func wantsTelemetry(environ []string) bool {
	wanted := false
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		switch {
		case name == "OTEL_SDK_DISABLED" && strings.EqualFold(value, "true"):
			return false
		case value == "" || !strings.HasPrefix(name, "OTEL_"):
		case strings.HasSuffix(name, "_ENDPOINT"), strings.HasSuffix(name, "_EXPORTER"):
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
	var level slog.Level
	// The settings allow only words that UnmarshalText knows.
	_ = level.UnmarshalText([]byte(c.logLevel))
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewJSONHandler(out, options)
	if c.logFormat == "text" {
		handler = slog.NewTextHandler(out, options)
	}
	if t.logs != nil {
		handler = slog.NewMultiHandler(handler, otelslog.NewHandler(applicationID, otelslog.WithLoggerProvider(t.logs)))
	}
	return slog.New(handler)
}
