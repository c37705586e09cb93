package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// demoLock is short, so that the delivery of the killed worker comes back while somebody watches. It is the shortest that
// the worker takes.
const demoLock = 5 * time.Second

// demoLimit bounds each step. Only a failure takes so long.
const demoLimit = 60 * time.Second

func newDemo(sys system) *cobra.Command {
	var program string
	c := &cobra.Command{
		Use:   "demo",
		Short: "Send a small stream of orders through the real worker and show what becomes of each",
		Long: `Send a small stream of orders through the real worker and show what becomes of each.

The worker runs as a process of its own with the variables that it has in Azure. On a terminal everything stays up until
Ctrl-C. Otherwise the exit code is 0 when every order ended as it must.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runDemo(c.Context(), program, sys) },
	}
	c.Flags().StringVar(&program, "worker", "", "the worker's program; the default is orderworker next to this one")
	return c
}

// demo is one demonstration.
type demo struct {
	sys   system
	env   *testenv.Env
	at    testenv.Addresses
	fleet *fleet
	sent  []*demoMessage
}

func runDemo(ctx context.Context, program string, sys system) (err error) {
	path, err := findWorker(program)
	if err != nil {
		return err
	}
	env, err := testenv.New(testenv.Options{Adjust: func(q *servicebus.Queue) {
		q.LockDuration = demoLock
		q.RequiresDuplicateDetection = false
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Close()) }()
	d := &demo{sys: sys, env: env}
	if d.at, err = env.Serve(ctx, testenv.Addresses{}); err != nil {
		return err
	}
	settings := append(env.Environ(), "WORKER_HEALTH_ADDRESS=off", "WORKER_DRAIN_TIMEOUT=5s")
	if d.fleet, err = newFleet(path, workerEnvironment(sys.environ, settings)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.end(ctx, err)) }()
	if err = d.run(ctx); err != nil && ctx.Err() != nil {
		return errors.New("interrupted") // whatever the stop has cut off
	}
	return err
}

// end stops the workers, and keeps their logs only when something went wrong. An interruption is nothing of the kind.
func (d *demo) end(ctx context.Context, failed error) error {
	err := d.fleet.stop()
	if err != nil || failed != nil && ctx.Err() == nil {
		d.say("The logs of the workers are in %s", d.fleet.logs)
		return err
	}
	d.fleet.discard()
	return nil
}

func (d *demo) run(ctx context.Context) error {
	d.say("The real worker on an embedded Service Bus and Cosmos DB, all on this machine.")
	d.say("Two settings differ from the template's, so that you can watch the worker rather than the broker: locks last %v, so that", demoLock)
	d.say("a delivery that nobody finished comes back soon, and the queue's own duplicate detection is off.\n")
	for _, step := range []func(context.Context) error{d.newOrders, d.repeats, d.crash} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	wrong := d.report()
	if err := d.promises(); err != nil {
		return err
	}
	if wrong > 0 {
		return fmt.Errorf("%d order(s) did not end as they must; see the lines marked WRONG", wrong)
	}
	if _, terminal := d.sys.terminal(); terminal {
		return d.stayUp(ctx)
	}
	return nil
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.sys.stdout, format+"\n", args...) }

func (d *demo) newOrders(ctx context.Context) error {
	if _, err := d.fleet.start(); err != nil {
		return err
	}
	d.say("Worker 1 starts. Sending four messages: two orders, an order with three lines, and one that nobody can read.")
	return d.sendAndWait(ctx,
		&demoMessage{what: "new order", id: "1001", documents: 1, deliveries: 1, line: `{"message_id":"1001","body":{"orderId":"1001","customer":"Ada","amount":40}}`},
		&demoMessage{what: "new order", id: "1002", documents: 1, deliveries: 1, line: `{"message_id":"1002","body":{"orderId":"1002","customer":"Grace","amount":12.5}}`},
		&demoMessage{what: "new order with three lines", id: "1003", documents: 4, deliveries: 1, line: `{"message_id":"1003","body":{"orderId":"1003","lines":[{"sku":"tea","quantity":2},{"sku":"pot","quantity":1},{"sku":"cup","quantity":6}]}}`},
		&demoMessage{what: "a body that is no JSON", id: "1004", reason: "NotJSON", deliveries: 1, line: `{"message_id":"1004","body":"{\"orderId\":\"1004\",\"amount\":"}`},
	)
}

func (d *demo) repeats(ctx context.Context) error {
	d.say("Sending three more: one again, one again with its names in another order, and one under a used id with another amount.")
	return d.sendAndWait(ctx,
		&demoMessage{what: "1001 again, the same bytes", id: "1001", deliveries: 1, line: `{"message_id":"1001","body":{"orderId":"1001","customer":"Ada","amount":40}}`},
		&demoMessage{what: "1002 again, names in another order", id: "1002", deliveries: 1, line: `{"message_id":"1002","body":{ "amount": 12.50, "customer": "Grace", "orderId": "1002" }}`},
		&demoMessage{what: "1001 with another amount", id: "1001", reason: "ContentConflict", deliveries: 1, line: `{"message_id":"1001","body":{"orderId":"1001","customer":"Ada","amount":400}}`},
	)
}

// crash kills the worker at the worst moment: its document is committed, and the broker does not know yet.
func (d *demo) crash(ctx context.Context) error {
	alive, err := d.fleet.alive()
	if err != nil || len(alive) == 0 {
		return errors.Join(errors.New("no worker is running"), err)
	}
	d.env.Faults.Add(fault.On(history.CreateDocument).Key("1005").After(fault.Call(alive[0].kill)))
	d.say("Sending one more, and killing worker 1 (SIGKILL to process %d) just after it has committed and before it can complete.", alive[0].pid())
	p := &demoMessage{what: "new order; its worker is killed between commit and complete", id: "1005", documents: 1, deliveries: 2, line: `{"message_id":"1005","body":{"orderId":"1005","customer":"Alan","amount":7}}`}
	if err := d.send(ctx, p); err != nil {
		return err
	}
	killed, cancel := context.WithTimeout(ctx, demoLimit)
	defer cancel()
	select {
	case <-alive[0].done:
	case <-killed.Done():
		return fmt.Errorf("worker 1 did not commit order 1005 within %v", demoLimit)
	}
	if _, err := d.fleet.start(); err != nil {
		return err
	}
	d.say("Worker 1 is dead. Worker 2 starts; the broker delivers the order again when the lock of the dead worker ends, within %v.", demoLock)
	return d.wait(ctx, p)
}

func (d *demo) sendAndWait(ctx context.Context, messages ...*demoMessage) error {
	if err := d.send(ctx, messages...); err != nil {
		return err
	}
	return d.wait(ctx, messages...)
}

// send sends messages and learns their sequence numbers. Nobody else sends during the demonstration.
func (d *demo) send(ctx context.Context, messages ...*demoMessage) error {
	before := len(d.sent)
	lines := make([]string, len(messages))
	for i, p := range messages {
		lines[i] = p.line
	}
	ctx, cancel := context.WithTimeout(ctx, demoLimit)
	defer cancel()
	if err := d.fleet.send(ctx, lines...); err != nil {
		return err
	}
	arrived := 0
	for _, e := range d.env.History.Events() {
		if e.Op != history.Send || !e.Effect {
			continue
		}
		if i := arrived - before; i >= 0 && i < len(messages) {
			messages[i].sequence = e.Sequence
		}
		arrived++
	}
	if arrived != before+len(messages) {
		return fmt.Errorf("%d messages were sent and %d arrived", len(messages), arrived-before)
	}
	d.sent = append(d.sent, messages...)
	return nil
}

// wait returns when every demoMessage has ended, or with an error when that takes too long or a worker dies.
func (d *demo) wait(ctx context.Context, messages ...*demoMessage) error {
	limit := time.NewTimer(demoLimit)
	defer limit.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := d.fleet.alive(); err != nil {
			return err
		}
		open := d.open(messages)
		if len(open) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.New("interrupted")
		case <-limit.C:
			return fmt.Errorf("nothing became of message %s within %v", open[0].id, demoLimit)
		case <-tick.C:
		}
	}
}

func (d *demo) open(messages []*demoMessage) []*demoMessage {
	events := d.env.History.Events()
	var open []*demoMessage
	for _, p := range messages {
		if outcomeOf(events, p.sequence) == nil {
			open = append(open, p)
		}
	}
	return open
}
