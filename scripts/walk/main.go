// Walk sends one new message through a worker on the embedded environment, and one dead letter through reprocess. For each it
// writes which code of this module ran, without what ran before: scripts/walk.sh builds it with coverage and counts.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/coverage"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/app"
)

// patience bounds every wait.
const patience = time.Minute

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: walk DIRECTORY")
		os.Exit(2)
	}
	if err := walk(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func walk(dir string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	env, err := testenv.New(testenv.Options{Adjust: func(q *servicebus.Queue) { q.MaxDeliveryCount = 1 }})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Close()) }()
	if _, err := env.Serve(ctx, testenv.Addresses{}); err != nil {
		return err
	}
	var failing atomic.Bool
	p := app.Program{Name: "walk", Types: []string{"order"}, Handler: worker.HandlerFunc(func(_ context.Context, m worker.Message) (worker.Effects, error) {
		if failing.Load() {
			return worker.Effects{}, errors.New("the handler fails")
		}
		return worker.Create(worker.Document{Type: "order", Content: m.Body}), nil
	})}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- command(ctx, env, p, "run") }()
	// The first message finds everything unused. It is the second that is counted.
	if _, err := settled(ctx, env, "first"); err != nil {
		return err
	}
	err = counted(filepath.Join(dir, "message"), func() error {
		_, err := settled(ctx, env, "second")
		return err
	})
	if err != nil {
		return err
	}
	failing.Store(true)
	sequence, err := settled(ctx, env, "third")
	if err != nil {
		return err
	}
	stop()
	if err := <-ended; err != nil {
		return err
	}
	failing.Store(false)
	ctx = context.WithoutCancel(ctx)
	// What every command of the review runs, this one without a message.
	if err := counted(filepath.Join(dir, "start"), func() error { return command(ctx, env, p, "deadletter", "log") }); err != nil {
		return err
	}
	return counted(filepath.Join(dir, "deadletter"), func() error {
		return command(ctx, env, p, "deadletter", "reprocess", strconv.FormatInt(sequence, 10), "--reason", "the handler is fixed")
	})
}

// settled sends a message and waits until it is completed or dead-lettered.
func settled(ctx context.Context, env *testenv.Env, id string) (sequence int64, err error) {
	m := amqp.NewMessage([]byte(`{"orderId":"` + id + `","amount":40,"lines":[{"sku":"A","quantity":1}]}`))
	m.Properties = &amqp.MessageProperties{MessageID: id}
	encoded, err := m.MarshalBinary()
	if err != nil {
		return 0, err
	}
	if sequence, err = env.Broker.SendEncoded(env.Queue.Name, encoded); err != nil {
		return 0, err
	}
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-look.C:
		}
		c, err := env.Broker.Counts(env.Queue.Name)
		if err != nil || c.Active+c.Locked == 0 {
			return sequence, err
		}
	}
}

// counted runs a step and writes the coverage counters of that step alone.
func counted(dir string, step func() error) error {
	if err := errors.Join(os.MkdirAll(dir, 0o755), coverage.ClearCounters()); err != nil {
		return err
	}
	if err := step(); err != nil {
		return err
	}
	return errors.Join(coverage.WriteMetaDir(dir), coverage.WriteCountersDir(dir))
}

// command executes one command line of the program.
func command(ctx context.Context, env *testenv.Env, p app.Program, args ...string) error {
	var out, errs bytes.Buffer
	environ := append(env.Environ(), "WORKER_HEALTH_ADDRESS=off", "WORKER_RETRY_ATTEMPTS=1", "WORKER_RETRY_BASE=1ms", "WORKER_MAX_DELIVERY_COUNT=1")
	in := app.Process{Args: args, Environ: environ, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
	if code := app.Run(ctx, p, in); code != 0 {
		return fmt.Errorf("%v: exit code %d: %s%s", args, code, errs.String(), out.String())
	}
	return nil
}
