package worker

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// openTimeout bounds the opening of a receiver, which with the SDK is no I/O at all.
	openTimeout = 10 * time.Second
	// closeTimeout bounds the closing of a receiver that is given up. The SDK may wait a minute for a peer that is gone.
	closeTimeout = 5 * time.Second
	// floodedCloseTimeout is less: what is still on its way takes the bandwidth of the next receiver until the connection ends.
	floodedCloseTimeout = 500 * time.Millisecond
	// quietTime is how long a receiver that is given up may have calls under way before it is closed all the same.
	quietTime = peekTimeout
	// maxTrouble is the number of consecutive failures on the management link after which a receiver is given up. That
	// link can be dead while the one for messages lives: the broker's client never repairs it after a server-busy detach.
	maxTrouble = 2
)

var errConnectionClosed = errors.New("worker: the connection is closed because the worker stops")

// A link is one receiver in use.
type link struct {
	receiver Receiver
	// retired is closed when the link is given up.
	retired chan struct{}
	// proven tells that a call has succeeded, so that the links of the client stand.
	proven atomic.Bool
	// setup is held by the one call that sets the links up, while the link is not proven.
	setup chan struct{}
	// trouble counts consecutive failures on the management link.
	trouble atomic.Int64
	// calls is the number of calls under way, and idle holds a token after one has returned.
	calls atomic.Int64
	idle  chan struct{}
	// crew makes the calls of do.
	crew *crew
	// credit is the number of messages that were asked for and did not come. Receive goroutine only.
	credit int
	// asked is when the oldest of them was asked for. Receive goroutine only.
	asked time.Time
	// flooded tells that the line is full of what is on its way here, so that closing does not wait for a reply. Receive goroutine
	// only, before the link is given up.
	flooded bool
	// contacted is when the queue was last seen to answer. Receive goroutine only.
	contacted time.Time
}

func newLink(r Receiver) *link {
	return &link{receiver: r, retired: make(chan struct{}), setup: make(chan struct{}, 1), idle: make(chan struct{}, 1)}
}

// begin records a call under way, and returns what must be called when it has returned.
func (l *link) begin() (end func()) {
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
func (l *link) quiet(d time.Duration) {
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

// worked records a success on the management link.
func (l *link) worked() {
	l.proven.Store(true)
	l.trouble.Store(0)
}

// do makes a call of the receiver that is not a receive call. Until the link is proven there is one at a time: the client
// makes all others wait for the one that sets the links up, and has no regard for their contexts meanwhile.
func (l *link) do(ctx context.Context, grace time.Duration, f func(context.Context) error) error {
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
	return call(ctx, l.crew, grace, func(ctx context.Context) error {
		defer l.begin()()
		return f(ctx)
	})
}

// connection holds the receiver in use. Any goroutine may give it up; the next call opens another. It is safe for
// concurrent use.
type connection struct {
	broker Broker
	grace  time.Duration
	crew   *crew

	mu      sync.Mutex
	current *link
	closed  bool
	closers int           // links that are being closed
	ended   chan struct{} // closed when the next of them is
}

func newConnection(b Broker, grace time.Duration) *connection {
	return &connection{broker: b, grace: grace, ended: make(chan struct{})}
}

// get returns the link in use, or opens one.
func (c *connection) get(ctx context.Context) (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errConnectionClosed
	}
	if c.current != nil {
		return c.current, nil
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	r, err := supervised(ctx, nil, c.grace, c.broker.Open, func(r Receiver, err error) {
		if err == nil {
			closeReceiver(r, c.grace)
		}
	})
	if err != nil {
		return nil, err
	}
	c.current = newLink(r)
	c.current.crew = c.crew
	return c.current, nil
}

// uses reports whether l is the link in use.
func (c *connection) uses(l *link) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current == l
}

// retire gives l up and closes it in the background. It reports whether l was in use until now.
func (c *connection) retire(l *link) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.retireLocked(l)
}

func (c *connection) retireLocked(l *link) bool {
	if l == nil || c.current != l {
		return false
	}
	c.current = nil
	close(l.retired)
	c.closers++
	go func() {
		// The client does not close under a call that sets links up, and the calls end by themselves.
		l.quiet(quietTime)
		timeout := closeTimeout
		if l.flooded {
			timeout = floodedCloseTimeout
		}
		closeReceiverWithin(l.receiver, timeout, c.grace)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.closers--
		close(c.ended)
		c.ended = make(chan struct{})
	}()
	return true
}

// close gives the link in use up for good, and waits for all closing, at most for d.
func (c *connection) close(d time.Duration) {
	c.mu.Lock()
	c.closed = true
	c.retireLocked(c.current)
	c.mu.Unlock()
	c.closing(d)
}

// closing waits for the closing of links that were given up, at most for d.
func (c *connection) closing(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		c.mu.Lock()
		n, ended := c.closers, c.ended
		c.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-ended:
		case <-timer.C:
			return
		}
	}
}

// closeReceiver closes a receiver, or leaves it behind when that takes too long. Its error helps nobody: the receiver was
// given up because it does not work.
func closeReceiver(r Receiver, grace time.Duration) { closeReceiverWithin(r, closeTimeout, grace) }

func closeReceiverWithin(r Receiver, timeout, grace time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_ = call(ctx, nil, grace, r.Close)
}
