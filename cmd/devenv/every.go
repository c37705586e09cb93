package main

import (
	"context"
	"time"
)

// every calls f at once and then at each interval until it is done or fails, or until ctx ends, which is reported as done = false.
func every(ctx context.Context, interval time.Duration, f func() (done bool, err error)) (done bool, err error) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if done, err := f(); done || err != nil {
			return done, err
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-tick.C:
		}
	}
}
