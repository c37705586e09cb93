package page

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/orderworker/orderworker/internal/deadletter"
)

// The times of a count of all dead-lettered messages.
const (
	// fresh is how long a count is shown before it is made again.
	fresh = 10 * time.Second
	// rest is how much longer a count is shown than it took, so that an open page does not keep broker and store busy.
	rest = 20
	// patience is how long a page waits for a count, so that a short queue shows at once.
	patience = 1500 * time.Millisecond
)

// maxKeys bounds the memory for keys.
const maxKeys = 200_000

// A count is what a scan found.
type count struct {
	Verdicts, Reasons []deadletter.Group
	Bars              []bar
	Total             int
	At                time.Time
	// Err says why the count is not whole.
	Err string

	took time.Duration
	keys map[string][]int64 // the sequence numbers by document id
}

// scanner counts all dead-lettered messages in the background and keeps the last result. The zero value is ready.
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

// sameKey returns the numbers of the messages that had a document id when they were counted last.
func (c *scanner) sameKey(documentID string) []int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last.keys[documentID]
}

// overview is what is known of all dead-lettered messages. It renews itself in a browser that runs the page's script.
type overview struct {
	count
	// Counting is how many messages a count under way has seen; zero means that none is.
	Counting  int
	Selection selection
	// Seen is how many there were when the list was loaded; zero when that is not known.
	Seen int
}

func (s *Server) overviewOf(ctx context.Context, selected selection) overview {
	c, counting := s.counts(ctx)
	return overview{count: c, Counting: counting, Selection: selected, Seen: c.Total}
}

func (s *Server) overview(w http.ResponseWriter, r *http.Request) {
	selected, _, ok := s.selected(w, r, r.URL.Query())
	if !ok {
		return
	}
	o := s.overviewOf(r.Context(), selected)
	if seen, err := strconv.Atoi(r.URL.Query().Get("seen")); err == nil && seen > 0 {
		o.Seen = seen
	}
	s.render(w, r, http.StatusOK, "counts", frame{Title: "Overview", Section: "messages", Page: o})
}

// counts returns the last count, and how many messages a count under way has seen; zero means that none is.
func (s *Server) counts(ctx context.Context) (count, int) {
	c := &s.scan
	c.mu.Lock()
	if c.running == nil && (c.stale || time.Since(c.last.At) > max(fresh, rest*c.last.took)) {
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
	began := time.Now()
	verdicts, reasons := deadletter.NewGroups(deadletter.ByVerdict), deadletter.NewGroups(deadletter.ByReason)
	var arrivals []int64
	found := count{keys: map[string][]int64{}}
	ctx, cancel := s.background()
	defer cancel()
	for item, err := range s.options.Reviewer.List(ctx, deadletter.Filter{}) {
		if err != nil {
			found.Err = s.explain(err)
			break
		}
		verdicts.Add(item.DeadLetter, item.Verdict)
		reasons.Add(item.DeadLetter, item.Verdict)
		if at := item.DeadLetter.EnqueuedAt; !at.IsZero() {
			arrivals = append(arrivals, at.Unix())
		}
		if id := item.DocumentID; id != "" && (len(found.keys) < maxKeys || found.keys[id] != nil) {
			found.keys[id] = append(found.keys[id], item.DeadLetter.Sequence)
		}
		found.Total++
		if found.Total%100 == 0 {
			s.scan.mu.Lock()
			s.scan.seen = found.Total
			s.scan.mu.Unlock()
		}
	}
	found.Verdicts, found.Reasons, found.Bars, found.At, found.took = verdicts.All(), reasons.All(), timeline(arrivals), time.Now(), time.Since(began)
	c := &s.scan
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last, c.running = found, nil
	close(done)
}
