package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/testenv/traffic"
)

// maxBacklog is the number of messages on the queue above which no more are sent, so that every round can be drained.
const maxBacklog = 2000

// round is one environment with workers under faults.
type round struct {
	*env
	sys     system
	options tortureOptions
	seed    uint64
	stream  *traffic.Stream
	began   time.Time

	mu              sync.Mutex
	sent            map[int64]traffic.Message // by sequence number; guarded by mu
	killed, stopped int                       // guarded by mu
	badEnds         error                     // guarded by mu
}

// run makes things go wrong for a while, lets everything end well, and checks. It leaves nothing running.
func (r *round) run(ctx context.Context, length time.Duration, sum *tally) (err error) {
	defer func() { err = errors.Join(err, r.Close()) }()
	r.began = time.Now()
	if err := r.load(ctx, length); err != nil {
		return errors.Join(err, r.fleet.stop())
	}
	r.sys.say("Nothing goes wrong any more; waiting until the queue is empty.")
	drained := r.drain()
	err = errors.Join(drained, r.fleet.stop(), r.badEnds)
	if drained == nil {
		run, report := r.check(r.sent)
		sum.add(r, run, report)
		err = errors.Join(err, report.Err())
	}
	if err != nil {
		return r.withEvidence(err)
	}
	r.fleet.discard()
	return nil
}

// load starts the workers, sends, kills and breaks. Every goroutine that it starts has ended when it returns.
func (r *round) load(ctx context.Context, length time.Duration) error {
	if err := r.fleet.keep(r.options.workers); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for _, work := range []func(context.Context) error{r.send, r.killLoop, r.progress} {
		group.Go(func() error { return work(ctx) })
	}
	defer r.Faults.Clear()
	return group.Wait()
}

// send sends the stream at its rate, in small bursts.
func (r *round) send(ctx context.Context) error {
	const interval = 50 * time.Millisecond
	due := 0.0
	_, err := every(ctx, interval, func() (bool, error) {
		counts, err := r.Broker.Counts(r.Queue.Name)
		if err != nil || counts.Active+counts.Locked > maxBacklog {
			return false, err
		}
		for due += float64(r.options.rate) * interval.Seconds(); due >= 1; due-- {
			if err := r.sendOne(r.stream.Next()); err != nil {
				return false, err
			}
		}
		return false, nil
	})
	return err
}

func (r *round) sendOne(m traffic.Message) error {
	if m.Before != "" {
		if err := r.Account.Seed(r.Database, r.Container, m.Before); err != nil {
			return err
		}
	}
	kind := servicebus.Symbol("application/json")
	r.mu.Lock()
	defer r.mu.Unlock()
	seq, err := r.Broker.Send(r.Queue.Name, servicebus.Message{
		Properties:            &servicebus.Properties{MessageID: m.ID, ContentType: &kind, Subject: &m.Type},
		ApplicationProperties: servicebus.Map{{Key: traffic.EntityProperty, Value: m.Entity}},
		BodyKind:              servicebus.BodyData, Data: [][]byte{m.Body},
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
		if err := r.fleet.keep(r.options.workers); err != nil {
			return err
		}
	}
}

// end ends one worker, gently or not. Gently it is given the time that it was configured to need.
func (r *round) end(p *process, gently bool) {
	var err error
	ended := &r.killed
	if gently {
		err, ended = p.stop(), &r.stopped
	} else {
		p.kill()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	*ended++
	r.badEnds = errors.Join(r.badEnds, err)
}

// drain waits until the queue is empty, with the workers that are needed for it. It is bounded by itself: a first Ctrl-C ends
// the torture early, and what was sent until then is checked nevertheless.
func (r *round) drain() error {
	ctx, cancel := context.WithTimeout(context.Background(), drainLimit)
	defer cancel()
	left := 0
	drained, err := every(ctx, 100*time.Millisecond, func() (bool, error) {
		c, err := r.Broker.Counts(r.Queue.Name)
		left = c.Active + c.Locked + c.Deferred + c.Scheduled
		return left == 0, errors.Join(err, r.fleet.keep(r.options.workers))
	})
	if err == nil && !drained {
		return fmt.Errorf("%d messages are still on the queue %v after the last fault", left, drainLimit)
	}
	return err
}

// progress says how it goes: often on a terminal, seldom otherwise.
func (r *round) progress(ctx context.Context) error {
	interval := 10 * time.Second
	if r.sys.terminal() {
		interval = time.Second
	}
	_, err := every(ctx, interval, func() (bool, error) {
		counts, err := r.Broker.Counts(r.Queue.Name)
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.sent) == 0 {
			return false, err
		}
		r.sys.say("%3.0fs  sent %d, on the queue %d, dead-lettered %d, documents %d, faults %d, workers killed %d and stopped %d", time.Since(r.began).Seconds(),
			len(r.sent), counts.Active+counts.Locked, counts.DeadLettered, len(r.Stored()), r.Faults.Applied(), r.killed, r.stopped)
		return false, err
	})
	return err
}
