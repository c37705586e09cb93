package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/orderworker/orderworker/internal/traffic"
	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// maxBacklog is the number of messages on the queue above which no more are sent, so that every round can be drained.
const maxBacklog = 2000

// round is one environment with workers that are tortured.
type round struct {
	options tortureOptions
	sys     system
	seed    uint64
	env     *testenv.Env
	fleet   *fleet
	began   time.Time

	mu              sync.Mutex
	sent            map[int64]traffic.Message // by sequence number; guarded by mu
	killed, stopped int                       // guarded by mu
	badEnds         []error                   // guarded by mu
}

// run tortures for a while, lets everything end well, and checks. It leaves nothing running.
func (r *round) run(ctx context.Context, length time.Duration, sum *tally) (err error) {
	defer func() { err = errors.Join(err, r.env.Close()) }()
	r.began, r.sent = time.Now(), map[int64]traffic.Message{}
	if err := r.load(ctx, length); err != nil {
		return errors.Join(err, r.fleet.stop())
	}
	r.note("Nothing goes wrong any more; waiting until the queue is empty.")
	drained := r.drain()
	err = errors.Join(drained, r.fleet.stop(), errors.Join(r.badEnds...))
	if drained == nil {
		err = errors.Join(err, r.check(sum))
	}
	if err != nil {
		name, saveErr := history.Save(r.env.History, "")
		return errors.Join(fmt.Errorf("%w\nThe logs of the workers are in %s, the history is in %s", err, r.fleet.logs, name), saveErr)
	}
	r.fleet.discard()
	return nil
}

// load starts the workers, sends, kills and breaks. Every goroutine that it starts has ended when it returns.
func (r *round) load(ctx context.Context, length time.Duration) error {
	for range r.options.workers {
		if _, err := r.fleet.start(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var group sync.WaitGroup
	for _, work := range []func(context.Context) error{r.send, r.killLoop, r.progress} {
		group.Go(func() {
			if err := work(ctx); err != nil {
				fail(err)
			}
		})
	}
	group.Wait()
	r.env.Faults.Clear()
	if err := context.Cause(ctx); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// send sends the stream at its rate, in small bursts.
func (r *round) send(ctx context.Context) error {
	const interval = 50 * time.Millisecond
	stream := traffic.NewStream(r.seed, "t-")
	tick := time.NewTicker(interval)
	defer tick.Stop()
	due := 0.0
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		counts, err := r.env.Broker.Counts(r.env.Queue.Name)
		if err != nil {
			return err
		}
		if counts.Active+counts.Locked > maxBacklog {
			continue
		}
		for due += float64(r.options.rate) * interval.Seconds(); due >= 1; due-- {
			if err := r.sendOne(stream.Next()); err != nil {
				return err
			}
		}
	}
}

func (r *round) sendOne(m traffic.Message) error {
	kind := servicebus.Symbol("application/json")
	r.mu.Lock()
	defer r.mu.Unlock()
	seq, err := r.env.Broker.Send(r.env.Queue.Name, servicebus.Message{
		Properties: &servicebus.Properties{MessageID: m.ID, ContentType: &kind}, BodyKind: servicebus.BodyData, Data: [][]byte{m.Body},
	})
	if err != nil {
		return err
	}
	r.sent[seq] = m
	return nil
}

// killLoop kills workers, or asks them to end, and starts others in their place.
func (r *round) killLoop(ctx context.Context) error {
	rng := rand.New(rand.NewPCG(r.seed, 0xdead))
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(500*time.Millisecond + time.Duration(rng.IntN(3000))*time.Millisecond):
		}
		alive, err := r.fleet.alive()
		if err != nil {
			return err
		}
		if len(alive) > 0 {
			r.end(alive[rng.IntN(len(alive))], rng.IntN(3) == 0)
		}
		for n := len(alive) - 1; n < r.options.workers; n++ {
			if _, err := r.fleet.start(); err != nil {
				return err
			}
		}
	}
}

// end ends one worker, gently or not. Gently it is given the time that it was configured to need.
func (r *round) end(p *process, gently bool) {
	var err error
	if gently {
		err = p.stop(patience)
	} else {
		p.kill()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if gently {
		r.stopped++
	} else {
		r.killed++
	}
	if err != nil {
		r.badEnds = append(r.badEnds, err)
	}
}

// drain waits until the queue is empty, with the workers that are needed for it. It is bounded by itself: a first Ctrl-C ends
// the torture early, and what was sent until then is checked nevertheless.
func (r *round) drain() error {
	limit := time.NewTimer(drainLimit)
	defer limit.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		alive, err := r.fleet.alive()
		if err != nil {
			return err
		}
		for n := len(alive); n < r.options.workers; n++ {
			if _, err := r.fleet.start(); err != nil {
				return err
			}
		}
		c, err := r.env.Broker.Counts(r.env.Queue.Name)
		if err != nil {
			return err
		}
		if c.Active+c.Locked+c.Deferred+c.Scheduled == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-limit.C:
			return fmt.Errorf("%d messages are still on the queue %v after the last fault", c.Active+c.Locked, drainLimit)
		}
	}
}

// progress says how it goes: often on a terminal, seldom otherwise.
func (r *round) progress(ctx context.Context) error {
	_, terminal := r.sys.terminal()
	every := 10 * time.Second
	if terminal {
		every = time.Second
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		counts, err := r.env.Broker.Counts(r.env.Queue.Name)
		if err != nil {
			return err
		}
		r.mu.Lock()
		sent, killed, stopped := len(r.sent), r.killed, r.stopped
		r.mu.Unlock()
		r.note(fmt.Sprintf("%3.0fs  sent %d, on the queue %d, dead-lettered %d, documents %d, faults %d, workers killed %d and stopped %d",
			time.Since(r.began).Seconds(), sent, counts.Active+counts.Locked, counts.DeadLettered, len(r.env.Stored()), r.env.Faults.Struck(), killed, stopped))
	}
}

func (r *round) note(text string) { fmt.Fprintln(r.sys.stdout, text) }
