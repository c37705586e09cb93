package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/traffic"
)

// demoLock is short, so that the delivery of the killed worker comes back while somebody watches. It is the shortest that
// the worker takes.
const demoLock = 5 * time.Second

// demoLimit bounds each step. Only a failure takes so long.
const demoLimit = 60 * time.Second

func newDemo(sys system) *cobra.Command {
	var p programs
	c := &cobra.Command{
		Use:   "demo",
		Short: "Send a small stream of messages through the real worker and show what becomes of each",
		Long: `Send a small stream of messages through the real worker and show what becomes of each.

First orderworker creates orders, then the program shop changes what exists. Both run as processes of their own with the
variables that they have in Azure. On a terminal everything stays up until Ctrl-C. Otherwise the exit code is 0 when every
message ended as it must.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runDemo(c.Context(), p, sys) },
	}
	p.bind(c.Flags())
	return c
}

func runDemo(ctx context.Context, p programs, sys system) error {
	if err := p.find(); err != nil {
		return err
	}
	sys.say("The real worker on an embedded Service Bus and Cosmos DB, all on this machine.")
	sys.say("Two settings differ from the template's, so that you can watch the worker rather than the broker: locks last %v, so that", demoLock)
	sys.say("a delivery that nobody finished comes back soon, and the queue's own duplicate detection is off.")
	return withDemo(ctx, sys, p, false, func(orders *demo) error {
		if err := orders.play(ctx, orders.newOrders, orders.repeats, orders.crash); err != nil {
			return err
		}
		err := withDemo(ctx, sys, p, true, func(changes *demo) error { return changes.play(ctx, changes.firstChanges, changes.laterChanges) })
		if err != nil || !sys.terminal() {
			return err
		}
		return orders.stayUp(ctx)
	})
}

// demo is a demonstration of one program in an environment of its own.
type demo struct {
	*env
	sys  system
	sent []*demoMessage
}

// withDemo calls f, and ends everything after it. The logs of the workers are kept only when something went wrong; an
// interruption is nothing of the kind.
func withDemo(ctx context.Context, sys system, p programs, changes bool, f func(*demo) error) (err error) {
	e, err := newEnv(sys, p, changes, demoLock, nil, "WORKER_DRAIN_TIMEOUT=5s")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	failed := f(&demo{env: e, sys: sys})
	stopped := e.fleet.stop()
	interrupted := ctx.Err() != nil
	if stopped != nil || failed != nil && !interrupted {
		sys.say("The logs of the workers are in %s", e.fleet.logs)
		return errors.Join(failed, stopped)
	}
	e.fleet.discard()
	if failed != nil {
		return errors.New("interrupted") // whatever the stop has cut off
	}
	return nil
}

// play makes the steps, shows what became of each message, and holds the history against every promise.
func (d *demo) play(ctx context.Context, steps ...func(context.Context) error) error {
	if _, err := d.fleet.start(); err != nil {
		return err
	}
	d.sys.say("")
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if wrong := d.report(); wrong > 0 {
		return fmt.Errorf("%d message(s) did not end as they must; see the lines marked WRONG", wrong)
	}
	sent := map[int64]traffic.Message{}
	for _, m := range d.sent {
		sent[m.sequence] = m.Message
	}
	run, report := d.check(sent)
	if err := report.Err(); err != nil {
		return d.withEvidence(err)
	}
	d.sys.say("%d promises hold over the %d events of this run: nothing lost, nothing twice, all or none.", len(report), len(run.Events))
	return nil
}

// sendAndWait sends messages, and returns when every one of them has ended.
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
	for i, m := range messages {
		lines[i] = m.line()
		if m.Before == "" {
			continue
		}
		if err := d.Account.Seed(d.Database, d.Container, m.Before); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, demoLimit)
	defer cancel()
	if err := d.fleet.send(ctx, lines...); err != nil {
		return err
	}
	arrived := d.arrived()
	if len(arrived) != before+len(messages) {
		return fmt.Errorf("%d messages were sent and %d arrived", len(messages), len(arrived)-before)
	}
	for i, m := range messages {
		m.sequence = arrived[before+i].Sequence
	}
	d.sent = append(d.sent, messages...)
	return nil
}

// arrived are the events of all messages that were sent.
func (d *demo) arrived() []history.Event {
	var sent []history.Event
	for _, e := range d.History.Events() {
		if e.Op == history.Send && e.Effect {
			sent = append(sent, e)
		}
	}
	return sent
}

// wait returns when every message has ended, or with an error when that takes too long or a worker dies.
func (d *demo) wait(ctx context.Context, messages ...*demoMessage) error {
	limited, cancel := context.WithTimeout(ctx, demoLimit)
	defer cancel()
	done, err := every(limited, 20*time.Millisecond, func() (bool, error) {
		messages = slices.DeleteFunc(messages, func(m *demoMessage) bool { return m.outcome(d.History.Events()) != nil })
		_, err := d.fleet.alive()
		return len(messages) == 0, err
	})
	switch {
	case err != nil || done:
		return err
	case ctx.Err() != nil:
		return errors.New("interrupted")
	}
	return fmt.Errorf("nothing became of message %s within %v", messages[0].ID, demoLimit)
}

// report shows what became of each message and returns how many ended as they must not.
func (d *demo) report() (wrong int) {
	events := d.History.Events()
	d.sys.say("")
	for _, m := range d.sent {
		o := m.outcome(events)
		text, why := o.summary(), m.why
		if o != nil && !o.completed {
			why = d.description(m.sequence)
		}
		if mistake := m.wrong(o); mistake != "" {
			text = "WRONG: " + mistake
			wrong++
		}
		d.sys.say("%-6s %s\n       %s: %s", m.ID, m.what, text, why)
	}
	d.sys.say("")
	return wrong
}

// stayUp keeps everything running and reports each further message, until Ctrl-C.
func (d *demo) stayUp(ctx context.Context) error {
	d.sys.say("\nEverything stays up until Ctrl-C. Try it from another terminal:\n")
	printExports(d.sys.stdout, d.Env, d.at)
	worker := workerCommand()
	d.sys.say("")
	d.sys.say("echo '{\"message_id\":\"2001\",\"body\":{\"orderId\":\"2001\",\"amount\":5}}' | %s send   # send it twice, then change the amount", worker)
	d.sys.say("%s deadletter list   # what was dead-lettered, with the verdict on each", worker)
	d.sys.say("%s deadletter serve   # the same in a browser", worker)
	d.sys.say("curl -s http://%s/queues   # counts of the queues\n", d.at.Management)
	shown := map[int64]bool{}
	for _, m := range d.sent {
		shown[m.sequence] = true
	}
	_, err := every(ctx, 100*time.Millisecond, func() (bool, error) {
		for _, e := range d.arrived() {
			if o := outcomeOf(d.History.Events(), e.Sequence, e.Key); o != nil && !shown[e.Sequence] {
				shown[e.Sequence] = true
				d.sys.say("  %s: %s %s", e.Key, o.summary(), d.description(e.Sequence))
			}
		}
		_, err := d.fleet.alive()
		return false, err
	})
	if err != nil {
		return errors.Join(errors.New("the worker is gone"), err)
	}
	d.sys.say("\nStopping.")
	return nil
}
