package worker

import (
	"context"
	"math/rand/v2"
	"time"
)

// fullJitter returns a wait drawn evenly below base doubled n times, bounded by limit. Full jitter spreads the retries of
// many workers more evenly than a fixed wait with a small variation.
func fullJitter(base, limit time.Duration, n int) time.Duration {
	bound := doubled(base, limit, n)
	if bound <= 0 {
		return 0
	}
	return rand.N(bound) + 1
}

// doubled returns base doubled n times, at most limit.
func doubled(base, limit time.Duration, n int) time.Duration {
	for ; n > 0 && base < limit; n-- {
		base *= 2
	}
	return min(base, limit)
}

// sleep waits for d, or until ctx ends. It reports whether it waited for all of d.
func sleep(ctx context.Context, d time.Duration) bool { return sleepUnless(ctx, nil, d) }

// sleepUnless is sleep that also ends when stop is closed.
func sleepUnless(ctx context.Context, stop <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-stop:
	}
	return false
}
