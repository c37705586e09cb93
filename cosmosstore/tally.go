package cosmosstore

import (
	"context"
	"sync"
)

// tally counts the requests of one call of the store and remembers how its writes fared. It travels in the context, since
// azcosmos sends requests of its own for one operation. Safe for concurrent use.
type tally struct {
	mu sync.Mutex
	// guarded by mu
	calls   int
	charge  float64
	unknown int    // writes that were sent and may have happened
	last    answer // what the last request got
}

type tallyKey struct{}

func withTally(ctx context.Context) (context.Context, *tally) {
	t := &tally{}
	return context.WithValue(ctx, tallyKey{}, t), t
}

// tallyOf returns the tally of ctx, or nil. A nil tally counts nothing.
func tallyOf(ctx context.Context) *tally {
	t, _ := ctx.Value(tallyKey{}).(*tally)
	return t
}

// note records what one request got. A write that may have happened stays so whatever a later request gets.
func (t *tally) note(a answer, charge float64, unknownWrite bool) {
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
func (t *tally) known() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unknown--
}

func (t *tally) sum() (calls int, charge float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls, t.charge
}

func (t *tally) ambiguous() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.unknown > 0
}

func (t *tally) lastAnswer() answer {
	if t == nil {
		return answer{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}
