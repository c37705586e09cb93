// Package backoff spaces retries: an exponential bound with full jitter, and a sleep that ends with its context.
//
// With full jitter, each wait is drawn evenly below its bound. That spreads the retries of many processes more evenly than a
// fixed wait with a small variation does: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// A Policy is an exponential backoff. It is a value without state, safe for concurrent use.
type Policy struct {
	// Base bounds the first wait, and each further bound is twice the one before.
	Base time.Duration
	// Max bounds the bounds.
	Max time.Duration
	// Floor is added to each wait.
	Floor time.Duration
}

// Bound returns Base doubled n times, at most Max.
func (p Policy) Bound(n int) time.Duration {
	bound := p.Base
	for ; n > 0 && bound < p.Max; n-- {
		bound *= 2
	}
	return min(bound, p.Max)
}

// Wait returns the wait before retry n, where the first is 0.
func (p Policy) Wait(n int) time.Duration {
	bound := p.Bound(n)
	if bound <= 0 {
		return p.Floor
	}
	return p.Floor + rand.N(bound) + 1
}

// Sleep waits for d and reports whether it did: false means that ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool { return SleepUnless(ctx, nil, d) }

// SleepUnless is Sleep that also ends when stop is closed.
func SleepUnless(ctx context.Context, stop <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
	case <-stop:
	}
	return false
}
