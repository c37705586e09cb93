package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// roundLimit bounds a round. Each has an environment of its own, so that an hour needs no more memory than two minutes.
const roundLimit = 2 * time.Minute

// drainLimit bounds the end of a round, in which nothing goes wrong any more.
const drainLimit = 90 * time.Second

// tortureOptions are the flags of torture.
type tortureOptions struct {
	minutes float64
	seed    uint64
	workers int
	rate    int
	program string
}

func newTorture(sys system) *cobra.Command {
	var o tortureOptions
	c := &cobra.Command{
		Use:   "torture",
		Short: "Kill and break real workers for a while, and then check every promise",
		Long: `Kill and break real workers for a while, and then check every promise.

Several worker processes share one queue. They are killed and stopped at random; connections, links and answers break at
random, before and after their effects; the store throttles and fails. Meanwhile new, repeated, reordered, conflicting and
unreadable orders arrive. At the end everything is let go well, and the whole history is held against every promise. The
exit code is 1 when one was broken; then the history is kept in a file.

The seed decides the orders, the faults and the kills, but not how processes are scheduled: the same seed is a similar run,
not the same one.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runTorture(c.Context(), o, sys) },
	}
	c.Flags().Float64Var(&o.minutes, "minutes", 1, "how long things go wrong; the end takes some seconds more")
	c.Flags().Uint64Var(&o.seed, "seed", 0, "seed for orders, faults and kills; 0 draws one")
	c.Flags().IntVar(&o.workers, "workers", 3, "worker processes at a time")
	c.Flags().IntVar(&o.rate, "rate", 100, "messages per second")
	c.Flags().StringVar(&o.program, "worker", "", "the worker's program; the default is orderworker next to this one")
	return c
}

func (o tortureOptions) validate() error {
	switch {
	case o.minutes <= 0 || o.minutes > 24*60:
		return &usageError{fmt.Errorf("--minutes %v must be more than 0 and at most %d", o.minutes, 24*60)}
	case o.workers < 1 || o.workers > 50:
		return &usageError{fmt.Errorf("--workers %d must be from 1 to 50", o.workers)}
	case o.rate < 1 || o.rate > 10000:
		return &usageError{fmt.Errorf("--rate %d must be from 1 to 10000", o.rate)}
	}
	return nil
}

func runTorture(ctx context.Context, o tortureOptions, sys system) error {
	if err := o.validate(); err != nil {
		return err
	}
	program, err := findWorker(o.program)
	if err != nil {
		return err
	}
	if o.seed == 0 {
		o.seed = 1 + rand.Uint64N(1<<32)
	}
	fmt.Fprintf(sys.stdout, "Torture with seed %d for %v: %d workers, %d messages per second.\n", o.seed, o.duration(), o.workers, o.rate)
	var sum tally
	broken := o.rounds(ctx, program, sys, &sum)
	sum.print(sys.stdout)
	if broken != nil {
		return fmt.Errorf("%w\nRepeat with: devenv torture --minutes %v --seed %d", broken, o.minutes, o.seed)
	}
	fmt.Fprintf(sys.stdout, "\nEvery promise was kept. Seed %d.\n", o.seed)
	return nil
}

func (o tortureOptions) duration() time.Duration {
	return time.Duration(o.minutes * float64(time.Minute)).Round(time.Second)
}

// rounds runs one round after the other until the time is over, somebody interrupts, or a promise is broken.
func (o tortureOptions) rounds(ctx context.Context, program string, sys system, sum *tally) error {
	for left, n := o.duration(), uint64(0); left > 0 && ctx.Err() == nil; n++ {
		length := min(left, roundLimit)
		left -= length
		r, err := newRound(o, program, sys, o.seed+n)
		if err != nil {
			return err
		}
		if err := r.run(ctx, length, sum); err != nil {
			return err
		}
	}
	return nil
}

// tortureLock is short, so that the deliveries of killed workers come back many times in a minute.
const tortureLock = 6 * time.Second

// newRound starts an environment and the workers on it.
func newRound(o tortureOptions, program string, sys system, seed uint64) (*round, error) {
	env, err := testenv.New(testenv.Options{Faults: fault.Seed(seed, hardships()...), Adjust: func(q *servicebus.Queue) {
		q.LockDuration = tortureLock
		q.RequiresDuplicateDetection = false
	}})
	if err != nil {
		return nil, err
	}
	r := &round{options: o, sys: sys, seed: seed, env: env}
	_, err = env.Serve(context.Background(), testenv.Addresses{})
	if err == nil {
		settings := append(env.Environ(), "WORKER_HEALTH_ADDRESS=off", "WORKER_DRAIN_TIMEOUT=3s")
		r.fleet, err = newFleet(program, workerEnvironment(sys.environ, settings))
	}
	if err != nil {
		return nil, errors.Join(err, env.Close())
	}
	return r, nil
}
