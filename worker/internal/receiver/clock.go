package receiver

import "time"

// OneTry bounds a call on links that stand. The client waits at least 3.2 s before it tries again by itself, resets the
// connection for it, and after a settlement takes its own mark "already settled" for the broker's consent. Below that bound a
// call is one try, and nil is the broker's word.
const OneTry = 3 * time.Second

// WallUntil is the time from now to the broker's t. Now has a monotonic reading that t lacks, so it is by the wall clock.
func WallUntil(t, now time.Time) time.Duration { return t.Sub(now.Round(0)) }
