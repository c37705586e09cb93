package cosmosstore

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"
)

// attributeStatus is the name under which azcore notes the status of a response.
const attributeStatus = "http.status_code"

type expectedKey struct{}

// expecting marks the requests that follow from ctx as such that are often answered with this status, which is no failure then.
func expecting(ctx context.Context, statuses ...int) context.Context {
	return context.WithValue(ctx, expectedKey{}, statuses)
}

type spanStatusKey struct{}

// quietTracing passes spans on to p, with two changes. An answer that the store expects, such as the conflict of a duplicate, is no
// failure. And the text of a failure is its status: that of azcore quotes the URL and the body, which hold the ids of messages.
func quietTracing(p tracing.Provider) tracing.Provider {
	return tracing.NewProvider(func(module, version string) tracing.Tracer {
		t := p.NewTracer(module, version)
		if !t.Enabled() {
			return t
		}
		return tracing.WrapTracer(t, quietTracer)
	}, nil)
}

// quietTracer wraps a tracer. The span of an operation and those of its requests share the status of the last response.
func quietTracer(t tracing.Tracer) tracing.Tracer {
	return tracing.NewTracer(func(ctx context.Context, name string, o *tracing.SpanOptions) (context.Context, tracing.Span) {
		last, ok := ctx.Value(spanStatusKey{}).(*atomic.Int64)
		if ok {
			last.Store(0) // a request begins
		} else {
			last = &atomic.Int64{}
			ctx = context.WithValue(ctx, spanStatusKey{}, last)
		}
		expected, _ := ctx.Value(expectedKey{}).([]int)
		ctx, span := t.Start(ctx, name, o)
		return ctx, quietSpan(span, last, expected)
	}, &tracing.TracerOptions{SpanFromContext: t.SpanFromContext})
}

func quietSpan(span tracing.Span, last *atomic.Int64, expected []int) tracing.Span {
	return tracing.NewSpan(tracing.SpanImpl{
		End:      span.End,
		AddEvent: span.AddEvent,
		SetAttributes: func(attributes ...tracing.Attribute) {
			for _, a := range attributes {
				if status, ok := a.Value.(int); ok && a.Key == attributeStatus {
					last.Store(int64(status))
				}
			}
			span.SetAttributes(attributes...)
		},
		SetStatus: func(code tracing.SpanStatus, text string) {
			status := int(last.Load())
			switch {
			case code != tracing.SpanStatusError:
			case slices.Contains(expected, status):
				return
			case status != 0:
				text = strings.TrimSpace(strconv.Itoa(status) + " " + http.StatusText(status))
			default:
				text = "no response"
			}
			span.SetStatus(code, text)
		},
	})
}
