package deadletter

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/orderworker/orderworker/internal/backoff"
	"github.com/orderworker/orderworker/worker"
)

// Act carries out a command on one dead-lettered message. It returns when the message has an outcome; the error is one of the
// broker, or that of ctx. When ctx ends it finishes what it has begun and releases every lock.
func (r *Reviewer) Act(ctx context.Context, c Command, sequence int64) (Outcome, error) {
	c = c.begin(r.settings)
	out := Outcome{Sequence: sequence, Action: c.Action}
	l, err := r.peekOne(ctx, sequence)
	switch {
	case errors.Is(err, ErrAbsent):
		return out.absent(), nil
	case err != nil:
		return out, err
	}
	if out.MessageID, _ = l.MessageID(); c.Action == Resubmit {
		if c.resubmission, err = r.resubmission(ctx, out.MessageID, sequence); err != nil {
			return out, err
		}
	}
	locks := r.lockRange(ctx, map[int64]bool{sequence: l.deferred()}, c.LockLimit)
	out, met, err := r.lockOne(ctx, c, locks, out)
	if met {
		out, err = r.answered(ctx, c, func() Outcome { return r.actLocked(ctx, c, l, locks) })
	}
	return out, errors.Join(err, locks.end(ctx))
}

// lockOne locks the one message of a range, and waits while somebody else holds it. It reports whether it is locked; if not, the
// outcome says why.
func (r *Reviewer) lockOne(ctx context.Context, c Command, locks *lockRange, out Outcome) (Outcome, bool, error) {
	for began := time.Now(); ; c.Paused("waiting for a dead letter that somebody else holds") {
		met, err := locks.next(ctx, 1)
		if len(met) > 0 || err != nil {
			return out, len(met) > 0, err
		}
		_, err = r.peekOne(ctx, out.Sequence)
		switch {
		case errors.Is(err, ErrAbsent):
			return out.absent(), false, nil
		case time.Since(began) >= c.Patience:
			return out.held(), false, nil
		}
	}
}

// storeBackoff returns the backoff while the store cannot be used.
func storeBackoff() backoff.Policy {
	return backoff.Policy{Base: time.Second, Max: 30 * time.Second, Floor: 250 * time.Millisecond}
}

// answered repeats an action while the store cannot be used, until the command's deadline. The error is that of ctx, when it ends
// the wait.
func (r *Reviewer) answered(ctx context.Context, c Command, action func() Outcome) (Outcome, error) {
	for try := 0; ; try++ {
		out := action()
		wait := max(out.RetryAfter, storeBackoff().Wait(try))
		switch {
		case out.Result != StoreDown:
			return out, nil
		case !c.deadline.IsZero() && time.Now().Add(wait).After(c.deadline):
			return out.with(StoreDown, fmt.Sprintf("The store could not be used for %s. Try again when it can.", c.Patience)), nil
		}
		c.Paused(fmt.Sprintf("the store cannot be used now; trying again in %s", wait.Round(time.Second)))
		if !backoff.Sleep(ctx, wait) {
			return out, ctx.Err()
		}
	}
}

// actTime bounds the work on one message once it is begun.
const actTime = 2 * time.Minute

// actLocked deals with a locked message to its end, also when the caller gives up meanwhile.
func (r *Reviewer) actLocked(ctx context.Context, c Command, l *DeadLetter, locks *lockRange) Outcome {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), actTime)
	defer cancel()
	return r.act(ctx, c, l, func(ctx context.Context) error { return locks.complete(ctx, l.Sequence) })
}

// unsettled bounds what is still done once the outcome of an action is known, also when the caller has given up.
const unsettled = 20 * time.Second

// remover removes a message that is locked.
type remover func(ctx context.Context) error

// act carries out a command on a locked message, in this order: look, write down the intention, have the effect, remove the
// message, write down the outcome. It removes nothing when ctx ends before the effect, and finishes once the effect was had.
func (r *Reviewer) act(ctx context.Context, c Command, l *DeadLetter, remove remover) Outcome {
	out := Outcome{Sequence: l.Sequence, Action: c.Action}
	out.MessageID, _ = l.MessageID()
	item := r.Examine(ctx, l)
	out.Verdict = item.Verdict.Kind
	e := r.entry(c, item)
	if sent, ok := c.sent.of(e); ok {
		e.ActionID = sent.ActionID
		if why := r.unseen(ctx, l, 1); why != "" {
			return out.notSeen(why)
		}
		return r.finish(ctx, e, out.with(Resubmitted, sentDetail(sent)), remove)
	}
	if stop, done := r.check(c, item, out); done {
		return stop
	}
	if why := r.inTheWay(ctx, c, l); why != "" {
		return out.with(Refused, why)
	}
	if c.Action == Discard && c.Archive != nil {
		if err := c.Archive.Keep(l); err != nil {
			return out.with(Broken, "Nothing was done, since the message could not be archived: "+err.Error())
		}
	}
	out = r.carryOut(ctx, c, e, l, out, remove)
	if c.Archive != nil && !out.Result.Removed() && out.Result != Uncertain {
		c.Archive.Drop(l.Sequence)
	}
	return out
}

// carryOut writes down the intention, has the effect, and removes the message.
func (r *Reviewer) carryOut(ctx context.Context, c Command, e Entry, l *DeadLetter, out Outcome, remove remover) Outcome {
	if err := r.record(ctx, e, Intended, "", ""); err != nil {
		return out.unrecorded(err)
	}
	out, done := r.effect(ctx, c, e, l, out)
	if !done {
		r.recordFailure(ctx, e, out)
		return out
	}
	return r.finish(ctx, e, out, remove)
}

func (o Outcome) unrecorded(err error) Outcome {
	o = o.with(Broken, "Nothing was done, since the action could not be recorded: "+err.Error())
	if down, ok := errors.AsType[*worker.UnavailableError](err); ok {
		o.Result, o.RetryAfter = StoreDown, down.RetryAfter
	}
	return o
}

// inTheWay says which other message stands against the action, or nothing.
func (r *Reviewer) inTheWay(ctx context.Context, c Command, l *DeadLetter) string {
	id, _ := l.MessageID()
	switch c.Action {
	case Resubmit:
		return c.seen.claim(id, l.Sequence, time.Now())
	case Reprocess:
		return r.behindOther(ctx, c, l)
	}
	return ""
}

// behindOther warns of a message that another one of its key lies before: the first that is applied is the one that is stored. In
// a plan they follow each other.
func (r *Reviewer) behindOther(ctx context.Context, c Command, l *DeadLetter) string {
	if c.Plan != "" || c.Origin != "" || c.Choice.Acknowledged || l.Sequence < 2 {
		return ""
	}
	earlier, err := r.OfKey(ctx, l, l.Sequence-1)
	if err != nil || len(earlier) == 0 {
		return ""
	}
	return fmt.Sprintf("%d dead letter(s) of this key came before it, the first is %d. What is applied first is stored, and the others are conflicts then. Reprocess that one first, or add --accept-warning to go on.", len(earlier), earlier[0])
}

// check compares what is true now with what was expected, and asks whether the action makes sense. It reports whether the
// command ends here.
func (r *Reviewer) check(c Command, item Item, out Outcome) (Outcome, bool) {
	v := item.Verdict
	switch {
	case v.Kind == Undecided && v.Retry:
		return out.with(StoreDown, v.Detail), true
	case v.Kind == Undecided:
		return out.with(Broken, v.Meaning()), true
	case changed(c, v):
		return out.with(Skipped, fmt.Sprintf("It was %s when this was decided and is %s now.", c.expected(), v.Kind)), true
	case otherContent(c, item):
		return out.with(Skipped, "It is not the message that the plan was made for."), true
	}
	offer := OfferOf(c.Action, item.DeadLetter, v, r.settings, c.Choice, time.Now())
	switch {
	case offer.Refused != "":
		return out.with(Refused, offer.Refused), true
	case offer.Warning != "" && !c.Choice.Acknowledged:
		return out.with(Refused, offer.Warning+" Add --accept-warning to go on."), true
	}
	return out, false
}

// changed reports whether something else is true now than was expected. A message that was to be reprocessed and has been
// applied since, perhaps by an earlier try of this very command, is what was wanted: reprocessing it only finishes.
func changed(c Command, v Verdict) bool {
	want := c.expected()
	if want == "" || want == v.Kind {
		return false
	}
	return c.Action != Reprocess || want != NeverApplied || !v.Kind.processed()
}

// otherContent reports whether a step was planned for another message than the one that lies there. The broker does not
// use a sequence number twice, but a queue can be deleted and made again.
func otherContent(c Command, item Item) bool {
	if c.Step == nil {
		return false
	}
	id, _ := item.DeadLetter.MessageID()
	return c.Step.MessageID != id || !c.Step.EnqueuedAt.Equal(item.DeadLetter.EnqueuedAt)
}

// effect does what the action is about, and reports whether it was done. When it was not, the message must stay.
func (r *Reviewer) effect(ctx context.Context, c Command, e Entry, l *DeadLetter, out Outcome) (Outcome, bool) {
	switch c.Action {
	case Reprocess:
		return r.process(ctx, l, out)
	case Resubmit:
		return r.send(ctx, c, e, l, out)
	case Resolve:
		return r.resolve(ctx, c, l, out)
	}
	return out.with(Discarded, ""), true
}

func (r *Reviewer) process(ctx context.Context, l *DeadLetter, out Outcome) (Outcome, bool) {
	result := r.pipeline.Process(ctx, l.Received())
	out.RetryAfter = result.RetryAfter
	switch {
	case result.Committed() && (result.Judgement == worker.Duplicate || result.Judgement == worker.Redelivered):
		return out.with(Duplicate, ""), true
	case result.Judgement == worker.Stale:
		return out.with(Outdated, "An equal or newer version is stored, so that nothing but the record of this message was committed."), true
	case result.Committed():
		return out.with(Applied, ""), true
	case result.Cause == worker.CauseIgnored:
		return out.with(Rejected, "The handler ignores this message ("+result.Reason+"), so there is nothing to store. Discard it."), false
	case result.Cause == worker.CauseUnavailable:
		return out.with(StoreDown, detailOf(result)), false
	case result.Cause == worker.CauseStopped:
		return out.with(Broken, "It was stopped before the documents were known to be committed. Reprocess it again: what was stored is recognised."), false
	}
	return out.with(Rejected, detailOf(result)), false
}

func detailOf(r worker.Result) string {
	switch {
	case r.Detail != "" && r.Reason != "":
		return r.Reason + ": " + r.Detail
	case r.Detail != "":
		return r.Detail
	case r.Err != nil:
		return r.Err.Error()
	}
	return r.Cause.String()
}

// finish removes the message after the effect, and writes down the outcome. The caller may have given up meanwhile.
func (r *Reviewer) finish(ctx context.Context, e Entry, out Outcome, remove remover) Outcome {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unsettled)
	defer cancel()
	left, err := false, error(nil)
	if out.Result != Freed { // that one is to be reprocessed
		left, err = r.remove(ctx, out.Sequence, remove)
	}
	switch {
	case err != nil && left:
		e.Result, out = string(out.Result), out.with(Broken, leftDetail(out.Result, "is still there", err))
		r.recordFailure(ctx, e, out)
		return out
	case err != nil:
		out = out.with(Uncertain, leftDetail(out.Result, "may still be there", err))
		_ = r.record(ctx, e, Unknown, string(out.Result), out.Detail)
		return out
	}
	if err := r.record(ctx, e, Done, string(out.Result), out.Detail); err != nil {
		out.Detail = "It was done, and recording the end of it failed: " + err.Error()
	}
	return out
}

func leftDetail(r Result, where string, err error) string {
	done := map[Result]string{
		Applied: "The documents are stored", Duplicate: "The documents were stored before", Outdated: "Its record is stored", Resubmitted: "The copy is sent", Discarded: "Nothing else was to be done", Resolved: "The claim is resolved",
	}[r]
	return fmt.Sprintf("%s, but the dead letter %s (%v). Do it again: that only finishes.", done, where, err)
}

// remove removes a message and believes no answer but a clear one: when the answer is lost or the lock is, it looks whether
// the message is still there. Left reports of an error that it is.
func (r *Reviewer) remove(ctx context.Context, sequence int64, remove remover) (left bool, err error) {
	if err = remove(ctx); err == nil {
		return false, nil
	}
	// Another try on the same lock is safe: it either works, or finds the lock gone.
	if !errors.Is(err, ErrLockLost) {
		if err = remove(ctx); err == nil {
			return false, nil
		}
	}
	_, peekErr := r.peekOne(ctx, sequence)
	if errors.Is(peekErr, ErrAbsent) {
		return false, nil
	}
	return peekErr == nil, err
}

// maxLedgerText bounds a text from a message in the ledger, in characters.
const maxLedgerText = 256

func (r *Reviewer) entry(c Command, item Item) Entry {
	l, v := item.DeadLetter, item.Verdict
	id, _ := l.MessageID()
	return Entry{
		SentHash: sentHash(c, l), ActionID: rand.Text(), Actor: c.Actor, Why: c.Why, Plan: c.Plan, Origin: c.Origin, Queue: r.settings.Queue, Program: r.settings.Program,
		Sequence: l.Sequence, EnqueuedAt: l.EnqueuedAt, MessageID: Clip(id, maxLedgerText), DocumentID: item.DocumentID, Reason: Clip(l.Reason(), maxLedgerText),
		Verdict: v.Kind, Action: c.Action, StoredHash: v.StoredHash, ArrivedHash: v.ArrivedHash,
	}
}

// errNoLedger is the reason why a reviewer without a ledger does nothing.
var errNoLedger = errors.New("deadletter: there is no ledger to record actions in")

func (r *Reviewer) record(ctx context.Context, e Entry, s State, result, detail string) error {
	if r.ledger == nil {
		return errNoLedger
	}
	e.ID, e.State, e.At, e.Result, e.Detail = e.ActionID+"-"+string(s), s, time.Now().UTC(), result, Clip(detail, 1000)
	return r.ledger.Append(ctx, e)
}

func (r *Reviewer) recordFailure(ctx context.Context, e Entry, out Outcome) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unsettled)
	defer cancel()
	// The intention is on record, and the message is where it was: when this fails too, nothing is lost but the sentence.
	_ = r.record(ctx, e, Failed, string(out.Result), out.Detail)
}
