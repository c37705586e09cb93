package receiver

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/internal/backoff"
	"github.com/orderworker/orderworker/internal/brokerfault"
)

// maxReceiveFailures is the number of receive calls in a row that fail, or come back early with nothing, after which that is no
// accident.
const maxReceiveFailures = 2

// A reception is how a receive call ended.
type reception int

const (
	receivedSome  reception = iota // messages came
	waitedInFull                   // the whole wait passed and none came
	cameBackEarly                  // no message, no error, and the wait had not passed
	interrupted                    // we ended it ourselves
	receiveFailed                  // it returned an error, panicked or did not return
)

// Run receives until ctx ends, and hands each batch of messages to start at once. It asks for no more than there is room for.
func (r *Receiver) Run(ctx context.Context, start func([]*azservicebus.ReceivedMessage, *Link)) {
	failures := 0
	r.contacted = time.Now()
	for ctx.Err() == nil {
		n, _ := r.room()
		if n <= 0 && !r.idle(ctx) {
			continue
		}
		l, err := r.connection.get(ctx)
		if err == nil {
			err = r.prepare(ctx, l)
		}
		if n <= 0 && err == nil {
			failures = 0
			continue // the broker was only asked whether it is there
		}
		begun, how := time.Now(), receiveFailed
		if err == nil {
			how, err = r.receive(ctx, start, l, n)
		}
		switch how {
		case receivedSome:
			failures = 0
			r.arrived()
			continue
		case waitedInFull:
			failures = 0
			r.silence(ctx, l)
			continue
		case interrupted:
			continue
		case cameBackEarly:
			if r.lostEarly(begun) {
				failures = 0
			}
		}
		failures = r.trouble(ctx, l, failures, err)
	}
}

// arrived records that messages arrived: the receiver works.
func (r *Receiver) arrived() {
	r.recheck, r.suspicion = false, suspicion{}
	r.config.Notify(Notice{Kind: Arrived})
}

// room returns how many messages may be asked for. When the line is the only reason for none, wait is how long to wait.
func (r *Receiver) room() (n int, wait time.Duration) {
	n = r.config.Demand.Room()
	if n > 1 && time.Now().Before(r.isolateUntil) {
		n = 1
	}
	return r.intake.room(n, r.config.Demand.InProcess(), time.Now())
}

// idle waits until there may be room. When there is none for long it returns true: no receive call runs meanwhile, so the
// broker has to be asked whether it is there. Credit that is still out would let messages come to a receiver that nobody calls,
// which releases them one by one: the receiver is given up instead, for credit cannot be taken back otherwise.
func (r *Receiver) idle(ctx context.Context) (overdue bool) {
	r.withdrawCredit()
	changed := r.config.Demand.Changed()
	n, wait := r.room()
	if n > 0 {
		return false
	}
	silence := time.Until(r.contacted.Add(r.config.Silence))
	timer := time.NewTimer(silence)
	if wait > 0 {
		timer.Reset(min(wait, silence))
	}
	defer timer.Stop()
	select {
	case <-timer.C:
		return wait == 0 || wait >= silence
	case <-ctx.Done():
	case <-r.config.Demand.Freed():
	case <-changed:
	}
	return false
}

// trouble draws the consequences of a receive call that failed or was lost after so many failures in a row, and returns their
// new number. It waits before the next call where that is due.
func (r *Receiver) trouble(ctx context.Context, l *Link, failures int, err error) int {
	fault := FaultOf(err)
	if fault == brokerfault.Panic {
		// The culprit is locked with the rest, so the next call has another message. No reason to wait for long.
		r.isolate(err)
		failures = min(failures, 1)
	}
	failures++
	r.distrust(l, failures, fault, err)
	if fault != brokerfault.None || failures >= maxReceiveFailures { // a lost link is normal now and then
		backoff.Sleep(ctx, retryBackoff().Wait(failures-1))
	}
	return failures
}

// isolate makes the next calls ask for one message at a time, so that a message that makes the client panic takes no
// other down with it. It comes back when its lock ends, until the broker dead-letters it.
func (r *Receiver) isolate(err error) {
	r.isolateUntil = time.Now().Add(2 * r.config.LockDuration)
	r.blind.isolated = r.isolateUntil // a good look after one that failed does not lift this
	r.config.Notify(Notice{Kind: Panicked, Reason: ReplacedPanic, Detail: brokerfault.Panic.Advice(), Err: err})
}

// distrust gives the link up when there is reason to think that it will not recover, and says so when the broker cannot be used.
func (r *Receiver) distrust(l *Link, failures int, fault brokerfault.Fault, err error) {
	switch {
	case fault == brokerfault.Panic:
		r.replace(l, ReplacedPanic, err)
		return
	case fault == brokerfault.Stuck:
		r.replace(l, ReplacedStuck, err)
	case failures >= maxReceiveFailures:
		r.replace(l, ReplacedFailing, err)
	}
	if fault != brokerfault.None || failures > maxReceiveFailures {
		if fault == brokerfault.None {
			fault = brokerfault.Connection
		}
		r.config.Notify(Notice{Kind: Unreached, Detail: brokerfault.Explain(fault, err)})
	}
}
