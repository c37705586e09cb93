package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/orderworker/orderworker/internal/traffic"
	"github.com/orderworker/orderworker/testenv/history"
)

// minimumWidth is the narrowest table that can be read.
const minimumWidth = 80

// report prints what became of each message and returns how many ended as they must not.
func (d *demo) report() (wrong int) {
	events := d.env.History.Events()
	width, terminal := d.sys.terminal()
	if !terminal {
		width = 132
	}
	t := table{head: []string{"what was sent", "id", "outcome", "why", "where it is now"}, most: columns(max(width, minimumWidth))}
	for _, p := range d.sent {
		f := outcomeOf(events, p.sequence)
		row := []string{p.what, p.id, "still on the queue", "", d.env.Queue.Name}
		if f != nil {
			detail := d.description(p.sequence)
			row = []string{p.what, p.id, f.summary(), f.why(detail), d.place(p, f)}
		}
		if mistake := p.wrong(f); mistake != "" {
			row[2] = "WRONG: " + mistake
			wrong++
		}
		t.rows = append(t.rows, row)
	}
	d.say("")
	t.write(d.sys.stdout)
	d.say("")
	return wrong
}

// columns shares out the width of a line.
func columns(width int) []int {
	rest := width - 4 - 4*columnGap // the ids have four characters
	return []int{rest * 24 / 100, 4, rest * 23 / 100, rest * 33 / 100, rest * 20 / 100}
}

// place is the last column of the table.
func (d *demo) place(p *demoMessage, f *outcome) string {
	switch {
	case !f.completed:
		return d.env.Queue.Name + "/$DeadLetterQueue"
	case len(f.created) > 1:
		return fmt.Sprintf("Cosmos DB, %s and %d lines", p.id, len(f.created)-1)
	}
	return "Cosmos DB, " + p.id
}

// promises checks the whole history, and that nobody asked for what the environment does not imitate.
func (d *demo) promises() error {
	expect := d.env.Expect()
	expect.Drained, expect.Guard = true, traffic.Guard
	expect.Reasons = []string{"NotJSON", "ContentConflict"}
	events := d.env.History.Events()
	if err := history.Verify(d.env.History, expect, 0, ""); err != nil {
		return err
	}
	if err := d.audit(events); err != nil {
		return err
	}
	d.say("%d promises hold over the %d events of this run: nothing lost, nothing twice, no order without its lines.", len(history.Examine(events, expect)), len(events))
	return nil
}

// audit compares every order with what is stored under its id, content and lines.
func (d *demo) audit(events []history.Event) error {
	var outcomes []traffic.Outcome
	for _, p := range d.sent {
		f := outcomeOf(events, p.sequence)
		m := traffic.Message{ID: p.id, Body: p.body(), Kind: traffic.New}
		if p.reason == "NotJSON" {
			m.Kind = traffic.Unreadable
		}
		outcomes = append(outcomes, traffic.Outcome{Message: m, Completed: f.completed, Reason: f.reason})
	}
	stored, err := storedOrders(d.env)
	if err != nil {
		return err
	}
	if wrong := traffic.Audit(outcomes, stored, words); len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}

// stayUp keeps everything running and reports each further message, until Ctrl-C.
func (d *demo) stayUp(ctx context.Context) error {
	d.say("\nEverything stays up until Ctrl-C. Try it from another terminal:\n")
	printExports(d.sys.stdout, d.env, d.at)
	worker := workerCommand()
	d.say("")
	d.say("echo '{\"message_id\":\"2001\",\"body\":{\"orderId\":\"2001\",\"amount\":5}}' | %s send   # send it twice, then change the amount", worker)
	d.say("%s deadletter list   # what was dead-lettered, with the verdict on each", worker)
	d.say("%s deadletter serve   # the same in a browser", worker)
	d.say("curl -s http://%s/queues   # counts of the queues\n", d.at.Management)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	shown := map[int64]bool{}
	for _, p := range d.sent {
		shown[p.sequence] = true
	}
	for {
		select {
		case <-ctx.Done():
			d.say("\nStopping.")
			return nil
		case <-tick.C:
		}
		if _, err := d.fleet.alive(); err != nil {
			return errors.Join(errors.New("the worker is gone"), err)
		}
		d.news(shown)
	}
}

// news reports the messages that have ended since the last time.
func (d *demo) news(shown map[int64]bool) {
	events := d.env.History.Events()
	for _, e := range events {
		if e.Op != history.Send || !e.Effect || shown[e.Sequence] {
			continue
		}
		f := outcomeOf(events, e.Sequence)
		if f == nil {
			continue
		}
		shown[e.Sequence] = true
		d.say("  %s: %s; %s", e.Key, f.summary(), f.why(d.description(e.Sequence)))
	}
}
