package receiver

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/orderworker/orderworker/worker/internal/supervise"
)

// maxFailures is the number of consecutive failures on the management link after which a link is given up. That link can be
// dead while the one for messages lives: the broker's client never repairs it after a server-busy detach.
const maxFailures = 2

// A Link is one client in use, on a connection of its own.
type Link struct {
	client Client
	// retired is closed when the link is given up.
	retired chan struct{}
	// proven tells that a call has succeeded, so that the links of the client stand.
	proven atomic.Bool
	// setup is held by the one call that sets the links up, while the link is not proven.
	setup chan struct{}
	// failures counts consecutive failures on the management link.
	failures atomic.Int64
	// calls is the number of calls under way, and idle holds a token after one has returned.
	calls atomic.Int64
	idle  chan struct{}
	// pool makes the calls of Call.
	pool *supervise.Pool
	// credit is the number of messages that were asked for and did not come. For the goroutine of Run only.
	credit int
	// asked is when the oldest of them was asked for. For the goroutine of Run only.
	asked time.Time
	// flooded tells that the line is full of what is on its way here, so that closing does not wait for a reply. For the goroutine
	// of Run only, before the link is given up.
	flooded bool
	// contacted is when the queue was last seen to answer. For the goroutine of Run only.
	contacted time.Time
}

// NewLink returns a link over c, whose calls p makes.
func NewLink(c Client, p *supervise.Pool) *Link {
	return &Link{client: c, pool: p, retired: make(chan struct{}), setup: make(chan struct{}, 1), idle: make(chan struct{}, 1)}
}

// isRetired reports whether the link is given up.
func (l *Link) isRetired() bool {
	select {
	case <-l.retired:
		return true
	default:
		return false
	}
}

// begin records a call under way, and returns what must be called when it has returned.
func (l *Link) begin() (end func()) {
	l.calls.Add(1)
	return func() {
		l.calls.Add(-1)
		select {
		case l.idle <- struct{}{}:
		default:
		}
	}
}

// quiet waits until no call is under way, at most for d.
func (l *Link) quiet(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for l.calls.Load() > 0 {
		select {
		case <-l.idle:
		case <-timer.C:
			return
		}
	}
}

// Proven reports whether a call has succeeded, so that the connection is set up.
func (l *Link) Proven() bool { return l.proven.Load() }

// Prove records a success on the link for messages, which says nothing of the management link.
func (l *Link) Prove() { l.proven.Store(true) }

// Worked records a success on the management link.
func (l *Link) Worked() {
	l.proven.Store(true)
	l.failures.Store(0)
}

// Call makes a call of the client that is not a receive call. Until the link is proven there is one at a time: the client
// makes all others wait for the one that sets the links up, and has no regard for their contexts meanwhile.
func (l *Link) Call(ctx context.Context, grace time.Duration, f func(context.Context, Client) error) error {
	if !l.proven.Load() {
		select {
		case l.setup <- struct{}{}:
			if l.proven.Load() { // by the call that was waited for
				<-l.setup
			} else {
				defer func() { <-l.setup }()
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return supervise.Do(ctx, l.pool, grace, func(ctx context.Context) error {
		defer l.begin()()
		return f(ctx, l.client)
	})
}
