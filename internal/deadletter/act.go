package deadletter

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/orderworker/orderworker/worker"
)

// A Command says what is to be done with a message, and who wants it.
type Command struct {
	Action Action
	Choice Choice
	// Actor is who acts, and Why the reason that was given. Both are needed.
	Actor, Why string
	// Plan is the plan of which this is a part, and Step what the plan says of the message. Step is nil for a single action.
	Plan string
	Step *PlanStep
	// Expect is the verdict that the person saw who gave the command. The message is skipped when it has another one now. Empty
	// accepts any.
	Expect Kind

	// Origin says where the message came from when it did not lie in the dead letters, such as "import".
	Origin string

	// Archive keeps a message before it is removed. Nothing is done when it fails. Nil keeps none. It may be called by several
	// goroutines at a time.
	Archive func(*DeadLetter) error

	// sent are the copies that were sent before, and seen what duplicate detection may remember, both for a resubmit.
	sent sentBefore
	seen *seen
	// queueEnd is from where on a copy that is sent now lies in the queue.
	queueEnd int64
}

// A Result is what came of a command.
type Result string

// The results. Only the first four mean that the dead letter is removed.
const (
	// Applied: the documents were stored now.
	Applied Result = "applied"
	// Duplicate: the documents were stored before.
	Duplicate Result = "duplicate"
	// Resubmitted: the broker has taken a copy.
	Resubmitted Result = "resubmitted"
	// Discarded: the dead letter was removed.
	Discarded Result = "discarded"
	// Skipped: nothing was done, since something other is true of the message than was expected.
	Skipped Result = "skipped"
	// Refused: nothing was done, since it would have been of no use or done harm.
	Refused Result = "refused"
	// Rejected: the worker's own steps ended without committed documents.
	Rejected Result = "rejected"
	// NotSeen: a copy was sent and not seen since, so that the dead letter stays.
	NotSeen Result = "not-seen"
	// Absent: the dead letter is gone.
	Absent Result = "gone"
	// Locked: somebody else holds the dead letter.
	Locked Result = "locked"
	// StoreDown: the store cannot be used now.
	StoreDown Result = "store-unavailable"
	// Broken: a step failed, and the dead letter is where it was.
	Broken Result = "failed"
	// WouldAct: the action would be carried out. Only [Reviewer.DryRun] says so.
	WouldAct Result = "would-act"
	// Uncertain: the action had its effect, but nobody knows whether the dead letter is removed.
	Uncertain Result = "uncertain"
)

// Removed reports whether the dead letter is known to be removed by this action.
func (r Result) Removed() bool {
	return r == Applied || r == Duplicate || r == Resubmitted || r == Discarded
}

// An Outcome says what came of a command for one message.
type Outcome struct {
	Sequence  int64   `json:"sequence"`
	MessageID string  `json:"messageId,omitempty"`
	Action    Action  `json:"action"`
	Verdict   Kind    `json:"verdict,omitempty"`
	Result    Result  `json:"result"`
	Detail    string  `json:"detail,omitempty"`
	Charge    float64 `json:"charge,omitempty"`
	// RetryAfter is what the store asked for.
	RetryAfter time.Duration `json:"-"`
}

// unsettled bounds what is still done once the outcome of an action is known, also when the caller has given up.
const unsettled = 20 * time.Second

// remover removes a message that is locked.
type remover func(ctx context.Context) error

// act carries out a command on a locked message, in this order: look, write down the intention, have the effect, remove the
// message, write down the outcome. It removes nothing when ctx ends before the effect, and finishes once the effect was had.
func (r *Reviewer) act(ctx context.Context, o Command, l *DeadLetter, remove remover) Outcome {
	out := Outcome{Sequence: l.Sequence, Action: o.Action}
	out.MessageID, _ = l.MessageID()
	item := r.Examine(ctx, l)
	out.Verdict = item.Verdict.Kind
	e := r.entry(o, item)
	if o.Action == Resubmit {
		if sent, ok := o.sent.of(e); ok {
			e.ActionID = sent.ActionID
			if why := r.unseen(ctx, l, 1); why != "" {
				return out.notSeen(why)
			}
			return r.finish(ctx, e, out.with(Resubmitted, sentDetail(sent)), remove)
		}
	}
	if stop, done := r.check(o, item, out); done {
		return stop
	}
	if o.Action == Resubmit {
		if why := o.seen.claim(out.MessageID, l.Sequence, time.Now()); why != "" {
			return out.with(Refused, why)
		}
	}
	if why := r.behindOther(ctx, o, l); why != "" {
		return out.with(Refused, why)
	}
	if o.Archive != nil {
		if err := o.Archive(l); err != nil {
			return out.with(Broken, "Nothing was done, since the message could not be archived: "+err.Error())
		}
	}
	if err := r.record(ctx, e, Intended, "", ""); err != nil {
		detail := "Nothing was done, since the action could not be recorded: " + err.Error()
		if down, ok := errors.AsType[*worker.UnavailableError](err); ok {
			out.RetryAfter = down.RetryAfter
			return out.with(StoreDown, detail)
		}
		return out.with(Broken, detail)
	}
	out, effect := r.effect(ctx, o, e, l, out)
	if effect && o.Action == Resubmit {
		if why := r.unseen(context.WithoutCancel(ctx), l, o.queueEnd); why != "" {
			out, effect = out.notSeen(why), false
		}
	}
	if !effect {
		r.recordFailure(ctx, e, out)
		return out
	}
	return r.finish(ctx, e, out, remove)
}

// behindOther warns of a message that another one of its key lies before: the first that is applied is the one that is stored. In
// a plan they follow each other.
func (r *Reviewer) behindOther(ctx context.Context, o Command, l *DeadLetter) string {
	if o.Action != Reprocess || o.Plan != "" || o.Origin != "" || o.Choice.Acknowledged || l.Sequence < 2 {
		return ""
	}
	earlier, err := r.OfKey(ctx, l, l.Sequence-1)
	if err != nil || len(earlier) == 0 {
		return ""
	}
	return fmt.Sprintf("%d dead letter(s) of this key came before it, the first is %d. What is applied first is stored, and the others are conflicts then. Reprocess that one first, or acknowledge the warning to go on.", len(earlier), earlier[0])
}

func (o Outcome) with(r Result, detail string) Outcome {
	o.Result, o.Detail = r, detail
	return o
}

// check compares what is true now with what was expected, and asks whether the action makes sense. It reports whether the
// command ends here.
func (r *Reviewer) check(o Command, item Item, out Outcome) (Outcome, bool) {
	v := item.Verdict
	switch {
	case v.Kind == Undecided && v.Retry:
		return out.with(StoreDown, v.Detail), true
	case v.Kind == Undecided:
		return out.with(Broken, v.Meaning()), true
	case changed(o, v):
		return out.with(Skipped, fmt.Sprintf("It was %s when this was decided and is %s now.", o.expected(), v.Kind)), true
	case otherContent(o, item):
		return out.with(Skipped, "It is not the message that the plan was made for."), true
	}
	offer := OfferOf(o.Action, item.DeadLetter, v, r.settings, o.Choice, time.Now())
	switch {
	case offer.Refused != "":
		return out.with(Refused, offer.Refused), true
	case offer.Warning != "" && !o.Choice.Acknowledged:
		return out.with(Refused, offer.Warning+" Acknowledge the warning to go on."), true
	}
	return out, false
}

func (o Command) expected() Kind {
	if o.Step != nil {
		return o.Step.Verdict
	}
	return o.Expect
}

// changed reports whether something else is true now than was expected. A message that was to be reprocessed and has been
// applied since, perhaps by an earlier try of this very command, is what was wanted: reprocessing it only finishes.
func changed(o Command, v Verdict) bool {
	want := o.expected()
	if want == "" || want == v.Kind {
		return false
	}
	return o.Action != Reprocess || want != NeverApplied || v.Kind != AlreadyApplied
}

// otherContent reports whether a step was planned for another message than the one that lies there. The broker does not
// use a sequence number twice, but a queue can be deleted and made again.
func otherContent(o Command, item Item) bool {
	if o.Step == nil {
		return false
	}
	id, _ := item.DeadLetter.MessageID()
	return o.Step.MessageID != id || !o.Step.EnqueuedAt.Equal(item.DeadLetter.EnqueuedAt)
}

// effect does what the action is about, and reports whether it was done. When it was not, the message must stay.
func (r *Reviewer) effect(ctx context.Context, o Command, e Entry, l *DeadLetter, out Outcome) (Outcome, bool) {
	switch o.Action {
	case Reprocess:
		return r.process(ctx, l, out)
	case Resubmit:
		return r.send(ctx, o, e, l, out)
	}
	return out.with(Discarded, ""), true
}

func (r *Reviewer) process(ctx context.Context, l *DeadLetter, out Outcome) (Outcome, bool) {
	result := r.pipeline.Process(ctx, l.Received())
	out.Charge, out.RetryAfter = result.Charge, result.RetryAfter
	switch {
	case result.Committed() && (result.Judgement == worker.Duplicate || result.Judgement == worker.Redelivered):
		return out.with(Duplicate, ""), true
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

// send sends the copy and writes down that it did, before anything is removed. The own additions are left out when the
// copy is too large with them.
func (r *Reviewer) send(ctx context.Context, o Command, e Entry, l *DeadLetter, out Outcome) (Outcome, bool) {
	detail := ""
	err := r.sendCopy(ctx, o, l, false)
	if errors.Is(err, ErrTooLarge) {
		detail = "The copy carries no resubmit count, since it would have been too large with it."
		err = r.sendCopy(ctx, o, l, true)
	}
	switch {
	case errors.Is(err, ErrTooLarge):
		return out.with(Refused, "The message is larger than the queue takes, even without what was added to it when it was dead-lettered. Reprocess it in place."), false
	case err != nil:
		return out.with(Broken, "The send failed, and the copy may have been taken all the same; that does no harm, since the worker applies it once: "+err.Error()), false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unsettled)
	defer cancel()
	if err := r.record(ctx, e, Sent, string(Resubmitted), detail); err != nil {
		// The copy is on its way. Removing the message loses nothing, and the intention is in the ledger.
		detail = "The copy was sent, and recording it failed: " + err.Error()
	}
	return out.with(Resubmitted, detail), true
}

func (r *Reviewer) sendCopy(ctx context.Context, o Command, l *DeadLetter, plain bool) error {
	encoded, err := Copy(l, o.Choice, time.Now(), plain)
	if err != nil {
		return err
	}
	return r.broker.Send(ctx, encoded)
}

// finish removes the message after the effect, and writes down the outcome. The caller may have given up meanwhile.
func (r *Reviewer) finish(ctx context.Context, e Entry, out Outcome, remove remover) Outcome {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unsettled)
	defer cancel()
	left, err := r.remove(ctx, out.Sequence, remove)
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
		Applied: "The documents are stored", Duplicate: "The documents were stored before", Resubmitted: "The copy is sent", Discarded: "Nothing else was to be done",
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

func (r *Reviewer) entry(o Command, item Item) Entry {
	l, v := item.DeadLetter, item.Verdict
	id, _ := l.MessageID()
	return Entry{
		SentHash: sentHash(o, l), ActionID: rand.Text(), Actor: o.Actor, Why: o.Why, Plan: o.Plan, Origin: o.Origin, Queue: r.settings.Queue, Program: r.settings.Program,
		Sequence: l.Sequence, EnqueuedAt: l.EnqueuedAt, MessageID: Clip(id, maxLedgerText), DocumentID: item.DocumentID, Reason: Clip(l.Reason(), maxLedgerText),
		Verdict: v.Kind, Action: o.Action, StoredHash: v.StoredHash, ArrivedHash: v.ArrivedHash,
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
