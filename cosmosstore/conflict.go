package cosmosstore

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/reason"
)

// conflictWaits are the pauses between the reads of a document that refused a create and that no replica shows. A replica
// catches up within milliseconds; an expired document is gone when the create is tried once more.
var conflictWaits = [...]time.Duration{20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond}

// maxConflicts is how often a create is refused and its document not found before the commit gives up.
const maxConflicts = 2

// meet acts on a write that was refused because a document stands there. It is what every path to "already committed" goes
// through. Neither an outcome nor an error means that nothing was found, so that the write is worth another try.
func (k *committer) meet(ctx context.Context) (o worker.Outcome, end bool, err error) {
	k.conflicts++
	if k.last.index >= k.plan.guards {
		return k.meetPart(ctx)
	}
	r, err := k.lookFor(ctx, k.plan.docs[k.last.index].id, conflictWaits[:])
	if r == nil && err == nil && k.conflicts >= maxConflicts {
		err = k.unread(ctx)
	}
	return worker.Outcome{Existing: r}, r != nil || err != nil, err
}

// meetPart acts on a batch that was refused because of a document other than the guard, so that the guard should not exist.
// Both are looked for: the batch may be an earlier try's, and a unique key refuses a document that does not exist.
func (k *committer) meetPart(ctx context.Context) (o worker.Outcome, end bool, err error) {
	r, err := k.readBack(ctx)
	if r != nil || err != nil {
		return worker.Outcome{Existing: r}, true, err
	}
	f := k.finder(k.last.session)
	part := k.plan.docs[k.last.index]
	_, there, err := f.readPart(ctx, part.id)
	switch {
	case err != nil:
		return worker.Outcome{}, true, err
	case there:
		k.store.standing.answered()
		return worker.Outcome{Blocking: part.name}, true, nil
	case k.conflicts >= maxConflicts:
		return worker.Outcome{}, true, k.unread(ctx)
	}
	return worker.Outcome{}, false, nil
}

// unread is the error for a create that is refused although nothing is found to compare with.
func (k *committer) unread(ctx context.Context) error {
	w, unique := k.last, k.sess.layout.uniqueKeys
	probe := k.storesFault
	if len(unique) > 0 {
		probe = k.probeAll // any number of messages may break a unique key
	}
	if err := probe(ctx); err != nil {
		return err
	}
	cause, id := &answerError{op: w.op, answer: w.answer}, k.plan.docs[w.index].id
	if len(unique) > 0 {
		return uncertain(reason.ConflictUnread, cause, "The store refused to create document %q because one like it exists, and finds none with "+
			"this id: another document, perhaps of this very message, has the same values in a unique key of the container (%s). Nothing was stored. "+
			"Remove that document, or use a container without unique keys, and reprocess this message.", id, strings.Join(unique, "; "))
	}
	return uncertain(reason.ConflictUnread, cause, "The store refused to create document %q because it exists, and finds no such document: it "+
		"has just expired, or a replica lags behind. Nothing was stored. Wait, look for the document, and reprocess this message.", id)
}

// readBack looks whether the guard exists after an answer that says nothing. Finding nothing is no error.
func (k *committer) readBack(ctx context.Context) (*worker.Record, error) {
	return k.lookFor(ctx, k.plan.docs[0].id, conflictWaits[:1])
}

// lookFor reads a document that carries a request, again after each of waits while it is not found, and at last where it must
// be if it exists.
func (k *committer) lookFor(ctx context.Context, id string, waits []time.Duration) (*worker.Record, error) {
	token := k.last.session
	for i := 0; ; i++ {
		g := k.store.read(ctx, k.sess, k.plan.partition, id, token)
		switch g.class {
		case done:
			if r, err := parseRecord(id, g.body); err == nil {
				k.store.standing.answered()
				return k.finder(g.session).complete(ctx, r)
			}
			k.store.report(ctx, opRead, answer{text: errNotTheDocument.Error()}, k.documentID)
		case lagging:
			token = "" // what a read without a token finds is true too
		case absent, senseless:
		case refused:
			if token == "" || g.answer.status != http.StatusBadRequest {
				return nil, k.store.unreadable(ctx, k.sess, g.answer, k.documentID)
			}
			token = "" // one that a gateway does not understand is answered so
		default:
			if g.class == misconfigured {
				k.store.forget(k.sess)
			}
			return nil, outOfTime(ctx, storeError(opRead, g.class, g.answer, k.tally.ambiguous()))
		}
		if i == len(waits) {
			return k.lookAtPrimary(ctx, id, g.class != absent)
		}
		if !pause(ctx, waits[i]/2+rand.N(waits[i])) {
			return nil, outOfTime(ctx, storeError(opRead, unavailable, answer{failure: timedOut, text: "no answer in time"}, k.tally.ambiguous()))
		}
	}
}

// lookAtPrimary is the last look for a document. Blind tells that the reads before it gave no answer that makes sense: when
// it gives none either, it is the store that cannot be read, and no message is to blame.
func (k *committer) lookAtPrimary(ctx context.Context, id string, blind bool) (*worker.Record, error) {
	g := k.store.readPrimary(ctx, k.sess, k.plan.partition, id)
	switch g.class {
	case done:
		if r, err := parseRecord(id, g.body); err == nil {
			k.store.standing.answered()
			return k.finder(g.session).complete(ctx, r)
		}
	case absent:
		return nil, nil
	case unavailable:
		return nil, outOfTime(ctx, storeError(opRead, g.class, g.answer, k.tally.ambiguous()))
	}
	if !blind {
		return nil, nil // a role that allows reads may not allow batches of them
	}
	if g.class == misconfigured {
		k.store.forget(k.sess)
		return nil, storeError(opRead, g.class, g.answer, k.tally.ambiguous())
	}
	cause := &answerError{op: opRead, answer: g.answer, note: "the document of this message cannot be looked for in any way"}
	return nil, outOfTime(ctx, &worker.UnavailableError{RetryAfter: g.answer.retryAfter, Ambiguous: k.tally.ambiguous(), Cause: cause})
}

// finder reads what belongs to the message of the commit, as new as a session token says.
func (k *committer) finder(token string) finder {
	return finder{store: k.store, sess: k.sess, documentID: k.documentID, token: token}
}
