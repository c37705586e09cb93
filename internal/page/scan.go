package page

import (
	"context"
	"sync"
	"time"

	"github.com/orderworker/orderworker/internal/deadletter"
)

// The times of a count of all dead letters.
const (
	// fresh is how long a count is shown before it is made again.
	fresh = 20 * time.Second
	// patience is how long a page waits for a count, so that a short queue shows at once.
	patience = 1500 * time.Millisecond
)

// A count is what a scan found.
type count struct {
	Verdicts, Reasons []deadletter.Group
	Total             int
	At                time.Time
	// Err says why the count is not whole.
	Err string
}

// scanner counts all dead letters in the background and keeps the last result. The zero value is ready.
type scanner struct {
	mu      sync.Mutex
	last    count         // guarded by mu
	running chan struct{} // guarded by mu; closed when the scan that is under way ends
	seen    int           // guarded by mu
	stale   bool          // guarded by mu; something was done since
}

// invalidate makes the next look count again.
func (c *scanner) invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale = true
}

// counts returns the last count, and how many letters a count under way has seen; zero means that none is.
func (s *Server) counts(ctx context.Context) (count, int) {
	c := &s.scan
	c.mu.Lock()
	if c.running == nil && (c.stale || time.Since(c.last.At) > fresh) {
		done := make(chan struct{})
		c.running, c.seen, c.stale = done, 1, false
		s.work.Go(func() { s.count(done) })
	}
	running := c.running
	c.mu.Unlock()
	if running != nil {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-running:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		return c.last, 0
	}
	return c.last, c.seen
}

func (s *Server) count(done chan struct{}) {
	now := time.Now()
	verdicts, reasons := deadletter.NewGroups(deadletter.ByVerdict, now), deadletter.NewGroups(deadletter.ByReason, now)
	var failed string
	total := 0
	ctx, cancel := s.background()
	defer cancel()
	for item, err := range s.options.Reviewer.List(ctx, deadletter.Filter{}) {
		if err != nil {
			failed = s.explain(err)
			break
		}
		verdicts.Add(item.Letter, item.Verdict)
		reasons.Add(item.Letter, item.Verdict)
		total++
		if total%100 == 0 {
			s.scan.mu.Lock()
			s.scan.seen = total
			s.scan.mu.Unlock()
		}
	}
	c := &s.scan
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = count{Verdicts: verdicts.All(), Reasons: reasons.All(), Total: total, At: time.Now(), Err: failed}
	c.running = nil
	close(done)
}
