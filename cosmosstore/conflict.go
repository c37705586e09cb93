package cosmosstore

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/reason"
)

// maxConflicts is how often a create is refused and its document not found before the commit gives up.
const maxConflicts = 2

// conflictPause is the pause before a create is tried again that was refused by a document which cannot be found. One that has
// expired may be gone by then.
const conflictPause = 400 * time.Millisecond

// handleConflict acts on a write that was refused because a document exists. Every path to "already committed" goes through it.
// Neither an outcome nor an error means that nothing was found, so that the write is worth another try.
func (k *committer) handleConflict(ctx context.Context) (o worker.Outcome, end bool, err error) {
	k.conflicts++
	i, l := k.last.index, k.lookup()
	if i >= k.plan.records {
		return k.handlePartConflict(ctx, l)
	}
	ids := k.plan.recordIDs()
	// The document that refused the write comes first. When it cannot be read, as when it has expired, another one decides.
	r, err := l.record(ctx, slices.Concat(ids[i:], ids[:i]))
	if r == nil && err == nil && k.conflicts >= maxConflicts {
		err = k.unread(ctx)
	}
	return worker.Outcome{Existing: r}, r != nil || err != nil, err
}

// handlePartConflict acts on a batch that was refused because of a further document, so that the record should not exist. Both
// are looked for: the batch may be an earlier try's, and a unique key refuses a document that does not exist.
func (k *committer) handlePartConflict(ctx context.Context, l lookup) (o worker.Outcome, end bool, err error) {
	r, err := k.readBack(ctx)
	if r != nil || err != nil {
		return worker.Outcome{Existing: r}, true, err
	}
	part := k.plan.docs[k.last.index]
	f, err := l.one(ctx, part.id)
	switch {
	case err != nil:
		return worker.Outcome{}, true, err
	case f.document != nil:
		k.store.standing.answered()
		return worker.Outcome{Blocking: part.name}, true, nil
	case k.conflicts >= maxConflicts:
		return worker.Outcome{}, true, k.unread(ctx)
	}
	return worker.Outcome{}, false, nil
}

// readBack looks whether the record exists after an answer that says nothing. Finding nothing is no error.
func (k *committer) readBack(ctx context.Context) (*worker.Record, error) {
	return k.lookup().record(ctx, k.plan.recordIDs())
}

// lookup reads what belongs to the message of the commit, as new as the last reply.
func (k *committer) lookup() lookup {
	return lookup{store: k.store, sess: k.sess, partition: k.plan.partition, documentID: k.documentID, token: k.last.session, ambiguous: k.stats.ambiguous()}
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
