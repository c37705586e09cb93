package cosmosstore

import (
	"context"
	"sync"
)

// requestStats count the requests of one call of the store and remember how its writes fared. They travel in the context, since
// azcosmos sends requests of its own for one operation. Safe for concurrent use. Nil counts nothing.
type requestStats struct {
	mu sync.Mutex
	requests
}

// requests is what the requests of one call came to.
type requests struct {
	calls   int
	charge  float64
	unknown int    // writes that were sent and may have happened
	last    answer // what the last request got
}

type statsKey struct{}

func withStats(ctx context.Context) (context.Context, *requestStats) {
	t := &requestStats{}
	return context.WithValue(ctx, statsKey{}, t), t
}

// statsOf returns the stats of ctx, or nil.
func statsOf(ctx context.Context) *requestStats {
	t, _ := ctx.Value(statsKey{}).(*requestStats)
	return t
}

// withoutCall returns a context for work that outlives the call which began it, and is not counted as the call's.
func withoutCall(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), statsKey{}, nil)
}

// note records what one request got. A write that may have happened stays so whatever a later request gets.
func (t *requestStats) note(a answer, charge float64, unknownWrite bool) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls++
	t.charge += charge
	t.last = a
	if unknownWrite {
		t.unknown++
	}
}

// known takes back one unknown write: its answer has been understood, and it did not happen.
func (t *requestStats) known() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unknown--
}

func (t *requestStats) soFar() requests {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.requests
}

func (t *requestStats) ambiguous() bool { return t.soFar().unknown > 0 }

func (t *requestStats) sum() (calls int, charge float64) {
	r := t.soFar()
	return r.calls, r.charge
}
