package storetest

import (
	"context"
	"sync"

	"github.com/orderworker/orderworker/worker"
)

// A Fault is what goes wrong with one call.
type Fault struct {
	// Err is returned instead of the answer.
	Err error
	// Applied tells that the call has its effect all the same, even when its context has ended, and only its answer is
	// lost.
	Applied bool
	// Before runs first. It may block, and should end with ctx.
	Before func(ctx context.Context)
	// Panic panics with this value when it is not nil.
	Panic any
}

// Faulty makes a store fail. It is safe for concurrent use.
type Faulty struct {
	worker.Store

	mu      sync.Mutex
	decide  func(n int, c worker.Commit) *Fault
	ready   func(n int) error
	commits int
	probes  int
}

var _ worker.Store = (*Faulty)(nil)

// NewFaulty returns a store that passes everything on to s until told otherwise.
func NewFaulty(s worker.Store) *Faulty { return &Faulty{Store: s} }

// OnCommit lets decide say what goes wrong with the nth commit, counted from 1 over the life of the store. Nil is nothing.
func (f *Faulty) OnCommit(decide func(n int, c worker.Commit) *Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.decide = decide
}

// OnReady lets ready say what the nth call of Ready returns.
func (f *Faulty) OnReady(ready func(n int) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ready = ready
}

// Down makes every call fail with err, until Up.
func (f *Faulty) Down(err error) {
	f.OnCommit(func(int, worker.Commit) *Fault { return &Fault{Err: err} })
	f.OnReady(func(int) error { return err })
}

// Up ends every fault.
func (f *Faulty) Up() {
	f.OnCommit(nil)
	f.OnReady(nil)
}

// Commits returns the number of commits that were asked for.
func (f *Faulty) Commits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.commits
}

// Probes returns how often the store was asked whether it is ready.
func (f *Faulty) Probes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.probes
}

// Commit implements [worker.Store].
func (f *Faulty) Commit(ctx context.Context, c worker.Commit) (worker.Outcome, error) {
	f.mu.Lock()
	f.commits++
	n, decide := f.commits, f.decide
	f.mu.Unlock()
	var fault *Fault
	if decide != nil {
		fault = decide(n, c)
	}
	if fault == nil {
		return f.Store.Commit(ctx, c)
	}
	if fault.Before != nil {
		fault.Before(ctx)
	}
	if fault.Panic != nil {
		panic(fault.Panic)
	}
	if fault.Applied {
		ctx = context.WithoutCancel(ctx)
	}
	if fault.Applied || fault.Err == nil {
		o, err := f.Store.Commit(ctx, c)
		if fault.Err == nil {
			return o, err
		}
	}
	return worker.Outcome{Calls: 1}, fault.Err
}

// Ready implements [worker.Store].
func (f *Faulty) Ready(ctx context.Context) error {
	f.mu.Lock()
	f.probes++
	n, ready := f.probes, f.ready
	f.mu.Unlock()
	if ready != nil {
		if err := ready(n); err != nil {
			return err
		}
	}
	return f.Store.Ready(ctx)
}
