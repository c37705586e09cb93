// Package supervise bounds calls from outside: of a handler, a store or a client library that may ignore its context, panic, or
// never return.
package supervise

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// ErrStuck is what a [StuckError] is.
var ErrStuck = errors.New("worker: a call did not return although its context had ended")

// A StuckError is returned instead of the result of a call that did not return in time although its context had ended.
type StuckError struct {
	// Returned is closed when the call has returned after all.
	Returned <-chan struct{}
}

func (e *StuckError) Error() string { return ErrStuck.Error() }

// Is makes every StuckError an ErrStuck.
func (e *StuckError) Is(target error) bool { return target == ErrStuck }

// Stuck returns what is closed when the call returns that err says did not, or nil.
func Stuck(err error) <-chan struct{} {
	if e, ok := errors.AsType[*StuckError](err); ok {
		return e.Returned
	}
	return nil
}

// A PanicError is what a call that panicked is taken to have returned.
type PanicError struct {
	Value any
	Trace []byte // the stack; it holds no values of the message
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Stack is the stack of the panic behind err, or "".
func Stack(err error) string {
	if e, ok := errors.AsType[*PanicError](err); ok {
		return string(e.Trace)
	}
	return ""
}

// guarded calls f and turns a panic into a PanicError.
func guarded[T any](f func() (T, error)) (result T, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Trace: debug.Stack()}
		}
	}()
	return f()
}

type answer[T any] struct {
	value T
	err   error
}

// A supervision is one call that is waited for. Caller and call race with CompareAndSwap on the state; the winner decides
// what becomes of the result.
type supervision[T any] struct {
	state    atomic.Int32
	done     chan answer[T] // takes one answer, so that nobody has to wait for it
	returned chan struct{}  // set before the call is left
}

// The states of a call.
const (
	callRuns int32 = iota
	callReturned
	callLeft
)

// Call calls f in a goroutine of the pool and waits until it returns, or until grace has passed since ctx ended. In the second
// case it returns a [StuckError], and late is called with the result when f returns after all. The goroutine is then one without
// an owner who waits for it: there is no other way to leave a call that ignores its context.
func Call[T any](ctx context.Context, p *Pool, grace time.Duration, f func(context.Context) (T, error), late func(T, error)) (T, error) {
	s := &supervision[T]{done: make(chan answer[T], 1)}
	p.Go(func() {
		a := answer[T]{err: &PanicError{Value: "runtime.Goexit was called"}}
		defer func() { // runtime.Goexit, of which testing.T.FailNow makes use, runs nothing else
			if s.state.CompareAndSwap(callRuns, callReturned) {
				s.done <- a
				return
			}
			defer close(s.returned)
			if late != nil {
				late(a.value, a.err)
			}
		}()
		a.value, a.err = guarded(func() (T, error) { return f(ctx) })
	})
	select {
	case a := <-s.done:
		return a.value, a.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case a := <-s.done:
		return a.value, a.err
	case <-timer.C:
	}
	s.returned = make(chan struct{})
	if !s.state.CompareAndSwap(callRuns, callLeft) {
		a := <-s.done
		return a.value, a.err
	}
	var zero T
	return zero, &StuckError{s.returned}
}

// Do is [Call] for a call without a result.
func Do(ctx context.Context, p *Pool, grace time.Duration, f func(context.Context) error) error {
	_, err := Call(ctx, p, grace, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) }, nil)
	return err
}
