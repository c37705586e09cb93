package page_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/deadletter"
)

// gate is a ledger that keeps an action waiting until it is opened.
type gate struct {
	deadletter.Ledger
	reached, open chan struct{}
}

func (g gate) Append(ctx context.Context, e deadletter.Entry) error {
	select {
	case g.reached <- struct{}{}:
	default:
	}
	select {
	case <-g.open:
	case <-ctx.Done():
		return ctx.Err()
	}
	return g.Ledger.Append(ctx, e)
}

func TestAPlanWaitsForTheOneThatIsAppliedAndCanBeStopped(t *testing.T) {
	kept := &memoryLedger{}
	g := gate{kept, make(chan struct{}, 1), make(chan struct{})}
	w := startWith(t, kept, g, nil)
	w.story()
	v := w.visit()
	token := v.token("/")
	apply := func(sequence string) string {
		_, body := v.do(http.MethodPost, "/plans", url.Values{"token": {token}, "scope": {"ticked"}, "sequence": {sequence}}, nil)
		path := jobPath(t, body)
		v.until(path, "Apply it")
		status, _ := v.do(http.MethodPost, path+"/apply", url.Values{"token": {token}, "why": {"x"}, "confirm": {"yes"}, "rate": {"100"}}, nil)
		require.Equal(t, http.StatusOK, status)
		return path
	}
	first := apply("1")
	<-g.reached
	second, third := apply("2"), apply("3")
	for _, path := range []string{second, third} {
		_, body := v.get(path)
		require.Contains(t, body, "waits for its turn")
	}
	_, body := v.get("/")
	require.Contains(t, body, "waits for its turn")
	require.Contains(t, body, "is being applied")
	v.do(http.MethodPost, third+"/stop", url.Values{"token": {token}}, nil)
	require.Contains(t, v.until(third, "not finished"), "before its turn came")
	close(g.open)
	v.until(first, ": done")
	v.until(second, ": done")
	require.Equal(t, 3, w.dead(), "the plan that was stopped did nothing")
	require.NotContains(t, kept.said(), "3 reprocess")
}
