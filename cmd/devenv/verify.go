package main

import (
	"fmt"
	"strings"

	"github.com/orderworker/orderworker/internal/traffic"
	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/history"
)

// words are the reasons for which a worker may dead-letter a message of the stream. Anything else, above all a message that
// was delivered too often, is a broken promise.
var words = traffic.Words{
	Conflict:   "ContentConflict",
	Unreadable: []string{"EmptyBody", "NotJSON", "BodyNotObject", "InvalidUTF8", "DuplicateName"},
}

// auditPromise is the promise that the history alone cannot prove, since it knows no contents.
const auditPromise = "Of two contents under one id the stored one wins, its repeats are completed and the others are dead-lettered."

// check holds a drained round against every promise, and adds it to the sum.
func (r *round) check(sum *tally) error {
	events := r.env.History.Events()
	expect := r.env.Expect()
	expect.Drained, expect.Guard = true, traffic.Guard
	expect.Reasons = append([]string{words.Conflict}, words.Unreadable...)
	report := history.Examine(events, expect)
	outcomes, err := r.outcomes(events)
	if err != nil {
		return err
	}
	stored, err := storedOrders(r.env)
	if err != nil {
		return err
	}
	audit := history.Promise{Sentence: auditPromise, Checked: len(outcomes)}
	for _, wrong := range traffic.Audit(outcomes, stored, words) {
		audit.Broken = append(audit.Broken, history.Violation{What: wrong})
	}
	report = append(report, audit)
	sum.add(r, events, outcomes, report, len(expect.Stored))
	return report.Err()
}

// outcomes collects how each message ended. Messages that did not end are the business of another promise.
func (r *round) outcomes(events []history.Event) ([]traffic.Outcome, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var outcomes []traffic.Outcome
	for _, e := range events {
		if !e.Effect || strings.Contains(e.Entity, "$") || (e.Op != history.Complete && e.Op != history.DeadLetter) {
			continue
		}
		m, ok := r.sent[e.Sequence]
		if !ok {
			return nil, fmt.Errorf("message %q with the sequence number %d ended and was never sent", e.Key, e.Sequence)
		}
		outcomes = append(outcomes, traffic.Outcome{Message: m, Completed: e.Op == history.Complete, Reason: e.Note})
	}
	return outcomes, nil
}

// storedOrders reads what is stored.
func storedOrders(env *testenv.Env) (map[string]traffic.Order, error) {
	documents := map[string]string{}
	for _, d := range env.Account.Documents(env.Database, env.Container) {
		documents[d.ID] = d.Body
	}
	return traffic.Stored(documents)
}
