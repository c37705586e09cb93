package worker_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
)

// sums returns the sums of counters, by name and attributes.
func sums(t require.TestingT, reader *sdkmetric.ManualReader) map[string]float64 {
	var data metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &data))
	found := map[string]float64{}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					found[m.Name+" "+p.Attributes.Encoded(attributes{})] += float64(p.Value)
				}
			case metricdata.Sum[float64]:
				for _, p := range d.DataPoints {
					found[m.Name+" "+p.Attributes.Encoded(attributes{})] += p.Value
				}
			case metricdata.Gauge[int64]:
				for _, p := range d.DataPoints {
					found[m.Name+" "+p.Attributes.Encoded(attributes{})] += float64(p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					found[m.Name+" "+p.Attributes.Encoded(attributes{})] += float64(p.Count)
				}
			}
		}
	}
	return found
}

func TestMetricsTellTheCasesApart(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		reader := sdkmetric.NewManualReader()
		w := e.start(worker.Config{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))})
		e.send("a", `{"n":1}`)
		e.await(time.Minute, "drained", e.drained)
		e.send("a", `{"n":1}`)
		e.send("a", `{"n":2}`)
		e.await(time.Minute, "drained", e.drained)
		e.send("a", `{"n":3}`)
		e.send("b", `not json`)
		e.await(time.Minute, "finished", func() bool { return e.count(worker.EventFinished) == 5 })
		var lines []string
		for name, value := range sums(e, reader) {
			lines = append(lines, fmt.Sprintf("%s = %v", name, value))
		}
		slices.Sort(lines)
		golden(e, "metrics.txt", strings.Join(lines, "\n")+"\n")
		e.end(w)
	})
}

func TestSpansContinueTheSendersTrace(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	tests := []struct {
		name       string
		properties map[string]any
		body       string
		parent     string
		failed     bool
	}{
		{"by traceparent", map[string]any{"traceparent": parent}, `{"n":1}`, "0af7651916cd43dd8448eb211c80319c", false},
		{"by Diagnostic-Id", map[string]any{"Diagnostic-Id": parent}, `{"n":1}`, "0af7651916cd43dd8448eb211c80319c", false},
		{"traceparent before Diagnostic-Id", map[string]any{"traceparent": parent, "Diagnostic-Id": strings.Replace(parent, "0af", "fff", 1)}, `{"n":1}`, "0af7651916cd43dd8448eb211c80319c", false},
		{"nonsense starts a trace of its own", map[string]any{"traceparent": "00-zz"}, `{"n":1}`, "", false},
		{"another type starts a trace of its own", map[string]any{"traceparent": int64(7)}, `{"n":1}`, "", false},
		{"of another sender", map[string]any{"traceparent": strings.Replace(parent, "0af", "fff", 1)}, `{"n":1}`, "fff7651916cd43dd8448eb211c80319c", false},
		{"a dead letter is a failed span", nil, `nonsense`, "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, servicebus.Queue{}, func(e *env) {
				spans := tracetest.NewSpanRecorder()
				w := e.start(worker.Config{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)), ServerAddress: "shop.servicebus.windows.net"})
				e.sendAll(&azservicebus.Message{MessageID: new("m"), Body: []byte(tt.body), ApplicationProperties: tt.properties})
				e.await(time.Minute, "ended", func() bool { return len(spans.Ended()) == 1 })
				span := spans.Ended()[0]
				require.Equal(e, "process orders", span.Name())
				if tt.parent != "" {
					require.Equal(e, tt.parent, span.SpanContext().TraceID().String())
					require.True(e, span.Parent().IsRemote())
					require.Len(e, span.Links(), 1)
					require.Equal(e, tt.parent, span.Links()[0].SpanContext.TraceID().String())
				} else {
					require.Empty(e, span.Links())
					require.False(e, span.Parent().IsValid())
				}
				require.Equal(e, tt.failed, span.Status().Code == codes.Error)
				attrs := map[string]string{}
				for _, a := range span.Attributes() {
					attrs[string(a.Key)] = a.Value.String()
				}
				require.Equal(e, "servicebus", attrs["messaging.system"])
				require.Equal(e, "orders", attrs["messaging.destination.name"])
				require.Equal(e, "m", attrs["messaging.message.id"])
				require.Equal(e, "process", attrs["messaging.operation.name"])
				require.Equal(e, "shop.servicebus.windows.net", attrs["server.address"])
				require.NotEmpty(e, attrs["messaging.servicebus.message.enqueued_time"])
				if tt.failed {
					require.Equal(e, "dead_letter", attrs["messaging.servicebus.disposition_status"])
					require.Equal(e, "refused", attrs["error.type"])
					require.Equal(e, "NotJSON", attrs["orderworker.reason"])
					require.Contains(e, e.logs.String(), `"trace_id":"`+span.SpanContext().TraceID().String()+`","span_id":"`+span.SpanContext().SpanID().String())
				} else {
					require.Equal(e, "complete", attrs["messaging.servicebus.disposition_status"])
					require.NotContains(e, attrs, "error.type")
				}
				e.end(w)
			})
		})
	}
}

// A sender that was not sampled decides for its consumers too, as everywhere in OpenTelemetry; the log lines carry its trace.
func TestAMessageOfASenderThatWasNotSampledHasNoSpan(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	for _, tt := range []struct {
		name    string
		sampler sdktrace.Sampler
		spans   int
	}{
		{"by default", sdktrace.ParentBased(sdktrace.AlwaysSample()), 0},
		{"with the sampler always_on", sdktrace.AlwaysSample(), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, servicebus.Queue{}, func(e *env) {
				spans := tracetest.NewSpanRecorder()
				w := e.start(worker.Config{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans), sdktrace.WithSampler(tt.sampler))})
				e.sendAll(&azservicebus.Message{MessageID: new("m"), Body: []byte("nonsense"), ApplicationProperties: map[string]any{"Diagnostic-Id": parent}})
				e.await(time.Minute, "finished", func() bool { return e.count(worker.EventFinished) == 1 })
				require.Contains(e, e.logs.String(), `"trace_id":"0af7651916cd43dd8448eb211c80319c"`)
				e.end(w)
				require.Len(e, spans.Ended(), tt.spans)
			})
		})
	}
}

func TestLogLinesHaveFixedKeys(t *testing.T) {
	bubble(t, servicebus.Queue{MaxDeliveryCount: 2}, func(e *env) {
		w := e.start(worker.Config{MaxDeliveryCount: 2, Retry: worker.RetryConfig{Attempts: 1}})
		e.await(time.Minute, "ready", func() bool { return w.Health().Ready })
		e.send("a", `{"secret":"s3cr3t"}`)
		e.await(time.Minute, "drained", e.drained)
		e.send("a", `{"secret":"other s3cr3t"}`)
		e.send("b", `{"secret":"s3cr3t",`)
		e.await(time.Minute, "drained", e.drained)
		e.store.Down(&worker.UnavailableError{Cause: fmt.Errorf("503 from the store")})
		e.sendOrders("c", 5)
		time.Sleep(time.Minute)
		e.store.Up()
		e.await(5*time.Minute, "drained", e.drained)
		e.end(w)
		text := e.logs.String()
		require.NotContains(e, text, "s3cr3t")
		// What depends on the moment or on the order in which messages ran is replaced.
		for pattern, by := range map[string]string{
			`"time":"[^"]*"`: `"time":"T"`, `"duration_seconds":[0-9.]+`: `"duration_seconds":0`, `[0-9a-f]{64}`: "HASH", `Z\. Stored`: "Z. Stored",
			`at 20[0-9T:Z-]+`: "at TIME",
		} {
			text = regexp.MustCompile(pattern).ReplaceAllString(text, by)
		}
		lines := strings.Split(strings.TrimSpace(text), "\n")
		slices.Sort(lines)
		golden(e, "log.jsonl", strings.Join(lines, "\n")+"\n")
	})
}

func TestHealthIsServedAsJSON(t *testing.T) {
	bubble(t, servicebus.Queue{}, func(e *env) {
		e.store.OnReady(func(int) error { time.Sleep(time.Second); return nil })
		w := e.start(worker.Config{})
		probe := func(path string) string {
			rec := httptest.NewRecorder()
			w.HealthHandler().ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
			return fmt.Sprintf("%s %d %s", path, rec.Code, rec.Body)
		}
		got := probe("/livez") + probe("/readyz")
		e.await(time.Minute, "ready", func() bool { return w.Health().Ready })
		got += probe("/readyz")
		e.store.Down(&worker.MisconfiguredError{Cause: fmt.Errorf("forbidden"), Fix: "Give the identity its role."})
		e.send("m", `{"n":1}`)
		e.await(time.Minute, "not ready", func() bool { return !w.Health().Ready })
		got += probe("/readyz")
		require.Contains(e, probe("/healthz"), "404")
		e.end(w)
		got += probe("/readyz")
		golden(e, "health.txt", regexp.MustCompile(`"20[0-9][^"]*"`).ReplaceAllString(got, `"TIME"`))
	})
}

// attributes encodes a set of attributes for people.
type attributes struct{}

func (attributes) Encode(i attribute.Iterator) string {
	var parts []string
	for i.Next() {
		kv := i.Attribute()
		parts = append(parts, string(kv.Key)+"="+kv.Value.String())
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, " ") + "}"
}

func (attributes) ID() attribute.EncoderID { return attribute.EncoderID{} }
