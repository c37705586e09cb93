package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/traffic"
)

// roundLimit bounds a round. Each has an environment of its own, so that an hour needs no more memory than two minutes.
const roundLimit = 2 * time.Minute

// drainLimit bounds the end of a round, in which nothing goes wrong any more.
const drainLimit = 90 * time.Second

// tortureLock is short, so that the deliveries of killed workers come back many times in a minute.
const tortureLock = 6 * time.Second

// tortureOptions are the flags of torture.
type tortureOptions struct {
	programs
	minutes float64
	seed    uint64
	workers int
	rate    int
}

func newTorture(sys system) *cobra.Command {
	var o tortureOptions
	c := &cobra.Command{
		Use:   "torture",
		Short: "Kill and break real workers for a while, and then check every promise",
		Long: `Kill and break real workers for a while, and then check every promise.

Several worker processes share one queue. They are killed and stopped at random; connections, links and answers break at
random, before and after their effects; the store throttles and fails. In one half of the time orderworker gets new,
repeated, reordered, conflicting and unreadable orders. In the other half the program shop gets commands among them, which
change documents: debits after a read, patches on a condition, versions, upserts without a record, unknown types. At the end
everything is let go well, and the whole history is held against every promise: sums, versions and all-or-none are worked
out from what the store wrote. The exit code is 1 when one was broken; then the history is kept in a file.

The seed decides the messages, the faults and the kills, but not how processes are scheduled: the same seed is a similar run,
not the same one.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runTorture(c.Context(), o, sys) },
	}
	c.Flags().Float64Var(&o.minutes, "minutes", 1, "how long things go wrong; the end takes some seconds more")
	c.Flags().Uint64Var(&o.seed, "seed", 0, "seed for messages, faults and kills; 0 draws one")
	c.Flags().IntVar(&o.workers, "workers", 3, "worker processes at a time")
	c.Flags().IntVar(&o.rate, "rate", 100, "messages per second")
	o.bind(c.Flags())
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
	if err := errors.Join(o.validate(), o.find()); err != nil {
		return err
	}
	if o.seed == 0 {
		o.seed = 1 + rand.Uint64N(1<<32)
	}
	duration := time.Duration(o.minutes * float64(time.Minute)).Round(time.Second / 10)
	sys.say("Torture with seed %d for %v: %d workers, %d messages per second.", o.seed, duration, o.workers, o.rate)
	var sum tally
	broken := o.rounds(ctx, duration, sys, &sum)
	sum.print(sys.stdout)
	if broken != nil {
		return fmt.Errorf("%w\nRepeat with: devenv torture --minutes %v --seed %d", broken, o.minutes, o.seed)
	}
	sys.say("\nEvery promise was kept. Seed %d.", o.seed)
	return nil
}

// rounds runs rounds of orders and of changes by turns until the time is over, somebody interrupts, or a promise is broken.
func (o tortureOptions) rounds(ctx context.Context, duration time.Duration, sys system, sum *tally) error {
	pairs := math.Ceil(float64(duration) / float64(2*roundLimit))
	each := time.Duration(float64(duration) / (2 * pairs))
	for n := range 2 * int(pairs) {
		if ctx.Err() != nil {
			return nil
		}
		r, err := o.newRound(n%2 == 1, sys, o.seed+uint64(n))
		if err != nil {
			return err
		}
		if err := r.run(ctx, each, sum); err != nil {
			return err
		}
	}
	return nil
}

// newRound starts an environment for orders, or for changes too.
func (o tortureOptions) newRound(changes bool, sys system, seed uint64) (*round, error) {
	e, err := newEnv(sys, o.programs, changes, tortureLock, fault.Seed(seed, randomFaults()...), "WORKER_DRAIN_TIMEOUT=3s")
	if err != nil {
		return nil, err
	}
	r := &round{env: e, sys: sys, options: o, seed: seed, stream: traffic.NewStream(seed, "t-"), sent: map[int64]traffic.Message{}}
	if changes {
		r.stream = traffic.NewMixedStream(seed, "t-")
	}
	return r, nil
}
