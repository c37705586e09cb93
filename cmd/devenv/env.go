package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/testenv/traffic"
)

// env is an embedded environment and workers of one program on it.
type env struct {
	*testenv.Env
	at    testenv.Addresses
	fleet *fleet
	// changes tells that the program is shop: its messages may change documents, and each has an inbox record of its own.
	changes bool
}

// newEnv serves an environment without duplicate detection, so that every copy reaches the workers.
func newEnv(sys system, p programs, changes bool, lock time.Duration, faults *fault.Plan, settings ...string) (*env, error) {
	embedded, err := testenv.New(testenv.Options{Faults: faults, Adjust: func(q *servicebus.Queue) {
		q.LockDuration, q.RequiresDuplicateDetection = lock, false
	}})
	if err != nil {
		return nil, err
	}
	e := &env{Env: embedded, changes: changes}
	if e.at, err = embedded.Serve(context.Background(), testenv.Addresses{}); err == nil {
		settings = append(append(embedded.Environ(), "WORKER_HEALTH_ADDRESS=off", "WORKER_RETRY_SPREAD=1s"), settings...)
		program := p.orders
		if changes {
			program, settings = p.shop, append(settings, "WORKER_PARTITION=property:"+traffic.EntityProperty)
		}
		e.fleet, err = newFleet(program, workerEnvironment(sys.environ, settings))
	}
	if err != nil {
		return nil, errors.Join(err, embedded.Close())
	}
	return e, nil
}

// words are the reasons for which a worker may dead-letter an order. Anything else, above all a message that was delivered
// too often, is a broken promise.
var words = traffic.Words{
	Conflict:   "ContentConflict",
	Unreadable: []string{"EmptyBody", "NotJSON", "BodyNotObject", "InvalidUTF8", "DuplicateName"},
}

// auditPromise is what the contents of the messages and of the documents prove together.
const auditPromise = "What is stored is what the messages ask for: one content for each id, sums, versions and refusals."

// check holds a drained environment against every promise.
func (e *env) check(sent map[int64]traffic.Message) (traffic.Run, history.Report) {
	run := traffic.Run{Sent: sent, Queue: e.Queue.Name, Events: e.History.Events(), Documents: map[string]string{}, Records: e.changes, Words: words}
	for _, d := range e.Account.Documents(e.Database, e.Container) {
		run.Documents[d.ID] = d.Body
	}
	audit := history.Promise{Sentence: auditPromise, Checked: len(sent)}
	for _, wrong := range run.Audit() {
		audit.Broken = append(audit.Broken, history.Violation{What: wrong})
	}
	return run, append(history.Examine(run.Events, run.Expect(e.Expect())), audit)
}

// withEvidence adds to an error where the logs and the history are.
func (e *env) withEvidence(err error) error {
	name, saveErr := history.Save(e.History, "")
	return errors.Join(fmt.Errorf("%w\nThe logs of the workers are in %s, the history is in %s", err, e.fleet.logs, name), saveErr)
}
