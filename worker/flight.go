package worker

import (
	"sync"
	"time"
)

// flight is the set of the sequence numbers of the messages in process. It is safe for concurrent use.
type flight struct {
	mu        sync.Mutex
	sequences map[int64]int
}

func newFlight() *flight { return &flight{sequences: map[int64]int{}} }

func (f *flight) add(sequence int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sequences[sequence]++
}

func (f *flight) remove(sequence int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sequences[sequence]--; f.sequences[sequence] <= 0 {
		delete(f.sequences, sequence)
	}
}

func (f *flight) has(sequence int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sequences[sequence] > 0
}

const (
	conflictWindow = time.Hour
	maxConflicts   = 1024
)

// conflicts counts the recent conflicts on each key, so that one sender that keeps reusing a key can be told from many
// senders that each did so once. It forgets the oldest when there are too many. It is safe for concurrent use.
type conflicts struct {
	mu   sync.Mutex
	runs map[string]conflictRun
}

type conflictRun struct {
	count int
	last  time.Time
}

func newConflicts() *conflicts { return &conflicts{runs: map[string]conflictRun{}} }

// count adds a conflict on a document id and returns how many there were without a pause of conflictWindow.
func (c *conflicts) count(id string, now time.Time) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	run := c.runs[id]
	if now.Sub(run.last) > conflictWindow {
		run.count = 0
	}
	run.count, run.last = run.count+1, now
	if _, known := c.runs[id]; !known && len(c.runs) >= maxConflicts {
		c.forgetOldestLocked()
	}
	c.runs[id] = run
	return run.count
}

func (c *conflicts) forgetOldestLocked() {
	var oldest string
	var at time.Time
	for id, run := range c.runs {
		if at.IsZero() || run.last.Before(at) {
			oldest, at = id, run.last
		}
	}
	delete(c.runs, oldest)
}
