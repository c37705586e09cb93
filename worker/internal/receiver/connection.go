package receiver

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/orderworker/orderworker/worker/internal/supervise"
)

const (
	// openTimeout bounds the opening of a client, which with the SDK is no I/O at all.
	openTimeout = 10 * time.Second
	// closeTimeout bounds the closing of a client that is given up. The SDK may wait a minute for a peer that is gone.
	closeTimeout = 5 * time.Second
	// floodedCloseTimeout is less: what is still on its way takes the bandwidth of the next client until the connection ends.
	floodedCloseTimeout = 500 * time.Millisecond
	// quietTime is how long a link that is given up may have calls under way before it is closed all the same.
	quietTime = peekTimeout
)

// ErrClosed is returned when the connection is closed because the worker stops.
var ErrClosed = errors.New("worker: the connection is closed because the worker stops")

// connection holds the link in use. Any goroutine may give it up; the next call opens another. It is safe for
// concurrent use.
type connection struct {
	open  func(context.Context) (Client, error)
	grace time.Duration
	pool  *supervise.Pool

	mu      sync.Mutex
	current *Link
	closed  bool
	closers int           // links that are being closed
	ended   chan struct{} // closed when the next of them is
}

func newConnection(c Config) *connection {
	return &connection{open: c.Open, grace: c.Stuck, pool: c.Pool, ended: make(chan struct{})}
}

// get returns the link in use, or opens one.
func (c *connection) get(ctx context.Context) (*Link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	if c.current != nil {
		return c.current, nil
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	r, err := supervise.Call(ctx, nil, c.grace, c.open, func(r Client, err error) {
		if err == nil {
			closeClient(r, closeTimeout, c.grace)
		}
	})
	if err != nil {
		return nil, err
	}
	c.current = NewLink(r, c.pool)
	return c.current, nil
}

// uses reports whether l is the link in use.
func (c *connection) uses(l *Link) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current == l
}

// retire gives l up and closes it in the background. It reports whether l was in use until now.
func (c *connection) retire(l *Link) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.retireLocked(l)
}

func (c *connection) retireLocked(l *Link) bool {
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
		closeClient(l.client, timeout, c.grace)
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

// closeClient closes a client, or leaves it behind when that takes too long. Its error helps nobody: the client was given up
// because it does not work.
func closeClient(c Client, timeout, grace time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_ = supervise.Do(ctx, nil, grace, c.Close)
}
