package cosmosstore

import (
	"context"
	"errors"
	"strings"

	"github.com/orderworker/orderworker/internal/storable"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/reason"
)

// fail is the error for a last write that no other try will change.
func (k *committer) fail(ctx context.Context) error {
	w, maybe := k.last, lostAnswer(k.stats.ambiguous())
	cause := &answerError{op: w.op, answer: w.answer}
	if w.op == opBatchChange && w.class == refused {
		// The service took the batch and names the operation: it is about this document, and says nothing of the store.
		k.store.writes.answered()
		return uncertain(reason.InvalidEffects, cause, "The store refuses the %s of document %q (%v): as a rule a path, "+
			"a value or a condition that does not fit the document as it is stored. Fix the handler or the document, and reprocess this message.%s",
			k.change().Kind, k.change().ID, w.answer, maybe)
	}
	if doubtful := w.class == refused || w.class == tooLarge && !k.plan.large(); !doubtful {
		if w.class == misconfigured {
			k.store.forget(k.sess)
		}
		err := storeError(w.op, w.class, w.answer, k.stats.ambiguous())
		if u, ok := errors.AsType[*worker.UnstorableError](err); ok {
			u.Detail += maybe
		}
		return err
	}
	if err := k.storesFault(ctx); err != nil {
		return err
	}
	if w.class == tooLarge {
		return refusal(reason.TooLarge, cause, "The store refuses the %s of this message as too large (%v), although it has %d bytes and the "+
			"store takes %d. Find what limits requests between the worker and the store, and reprocess this message.%s",
			w.op, w.answer, k.plan.size(), storable.MaxBytes, maybe)
	}
	return refusal(reason.NeverStorable, cause, "The store refuses the %s of this message (%v), while it answers others. Look the status "+
		"up in the documentation of Cosmos DB; when its cause is gone, reprocess this message.%s", w.op, w.answer, maybe)
}

// lostAnswer is a sentence for a commit with a write whose answer was lost, or nothing.
func lostAnswer(ambiguous bool) string {
	if !ambiguous {
		return ""
	}
	return " The answer to an earlier try of it was lost, and nothing was found afterwards: look once more whether the order is stored."
}

// giveUp is the error of a commit whose tries or whose time are used up.
func (k *committer) giveUp(ctx context.Context) error {
	w := k.last
	switch {
	case ctx.Err() != nil:
	case w.ofChange():
		return k.movedError()
	case w.class == exists:
		return k.unread(ctx)
	case w.class == unexpected:
		if err := k.storesFault(ctx); err != nil {
			return err
		}
		return refusal(reason.NeverStorable, &answerError{op: w.op, answer: w.answer},
			"The store gave an unexpected response to the %s of %d documents (%v) %d times, and they are not stored. Find what answers in its place, "+
				"such as a proxy, and reprocess this message.", w.op, len(k.plan.docs), w.answer, maxTries)
	}
	a := w.answer
	if a.failure == timedOut {
		a = timedOutAfter(k.stats.soFar().last)
	}
	return outOfTime(ctx, storeError(w.op, w.class, a, k.stats.ambiguous()))
}

// unread is the error for a create that is refused although nothing is found to compare with.
func (k *committer) unread(ctx context.Context) error {
	w, unique := k.last, k.sess.layout.uniqueKeys
	if err := k.storesFault(ctx); err != nil {
		return err
	}
	cause, id := &answerError{op: w.op, answer: w.answer}, k.plan.docs[w.index].id
	if len(unique) > 0 {
		return uncertain(reason.ConflictUnread, cause, "The store refused to create document %q because one like it exists, and finds none with "+
			"this id: another document, perhaps of this very message, has the same values in a unique key of the container (%s). Nothing was stored. "+
			"Remove that document, or use a container without unique keys, and reprocess this message.", id, strings.Join(unique, "; "))
	}
	return refusal(reason.ConflictUnread, cause, "The store refused to create document %q because it exists, and finds no such document: it "+
		"has just expired, or a replica lags behind. Nothing was stored. Wait, look for the document, and reprocess this message.", id)
}
