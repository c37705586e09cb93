package cosmosstore

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/orderworker/orderworker/internal/backoff"
	"github.com/orderworker/orderworker/internal/storable"
	"github.com/orderworker/orderworker/worker"
)

// againPause is the pause before an absence is believed that the primary did not confirm.
const againPause = 50 * time.Millisecond

// lookup reads what is stored for one message. It is the only way in which documents are read.
type lookup struct {
	store      *Store
	sess       *session
	partition  string
	documentID string
	token      string // a session token, or "": reads see what the reply that carried it saw
	ambiguous  bool   // a write of this call may have happened, which errors say
}

// found is a document that was read. The zero value says that there is none.
type found struct {
	document
	body  []byte
	token string
}

// one looks for a document: by a read, and where that does not show it, since a replica or a region may lag behind, at the
// primary.
func (l lookup) one(ctx context.Context, id string) (found, error) {
	g := l.store.read(ctx, l.sess, l.partition, id, l.token)
	if g.class == refused && g.answer.status == http.StatusBadRequest && l.token != "" {
		l.token = "" // a gateway that does not understand the token answers like this
		g = l.store.read(ctx, l.sess, l.partition, id, "")
	}
	switch g.class {
	case done:
		if d, ok := parseDocument(id, g.body); ok {
			return found{d, g.body, g.session}, nil
		}
		g.class, g.answer.text = unexpected, "the reply is not the document that was asked for"
		l.store.report(ctx, opRead, g.answer, l.documentID)
	case absent, lagging, unexpected, refused:
	default:
		return found{}, l.failed(ctx, g)
	}
	return l.atPrimary(ctx, id, g)
}

// atPrimary is the last look for a document, after the last read came to g. When the primary gives no answer, as with a role
// that allows no batches, an absence that two reads saw is believed.
func (l lookup) atPrimary(ctx context.Context, id string, g reading) (found, error) {
	p := l.store.readPrimary(ctx, l.sess, l.partition, id)
	if d, ok := parseDocument(id, p.body); ok && p.class == done {
		return found{d, p.body, p.session}, nil
	}
	switch {
	case p.class == absent:
		return found{}, nil
	case p.class == unavailable:
		return found{}, l.failed(ctx, p)
	case g.class == absent:
		return l.again(ctx, id)
	case g.class == lagging:
		return found{}, l.failed(ctx, g)
	case g.class == unexpected && p.class == misconfigured:
		return found{}, l.failed(ctx, p)
	}
	return found{}, l.store.unreadable(ctx, l.sess, g.answer, l.documentID)
}

// again reads a document a second time, and takes anything but the document for its absence.
func (l lookup) again(ctx context.Context, id string) (found, error) {
	if !backoff.Sleep(ctx, againPause) {
		return found{}, l.outOfTime(ctx)
	}
	g := l.store.read(ctx, l.sess, l.partition, id, l.token)
	if d, ok := parseDocument(id, g.body); ok && g.class == done {
		return found{d, g.body, g.session}, nil
	}
	return found{}, nil
}

// failed is the error for a read that says something of the store and nothing of the document.
func (l lookup) failed(ctx context.Context, g reading) error {
	if g.class == misconfigured {
		l.store.forget(l.sess)
	}
	return outOfTime(ctx, storeError(opRead, g.class, g.answer, l.ambiguous))
}

func (l lookup) outOfTime(ctx context.Context) error {
	return l.failed(ctx, reading{class: unavailable, answer: answer{failure: timedOut, text: "no answer in time"}})
}

// record returns the record of the message from the first of the documents with these ids that can be read, each of which may
// carry it, or nil when there is none.
func (l lookup) record(ctx context.Context, ids []string) (*worker.Record, error) {
	var unread error
	for _, id := range ids {
		f, err := l.one(ctx, id)
		switch {
		case isUncertain(err): // another document of the commit may decide
			unread = err
		case err != nil:
			return nil, err
		case f.document != nil:
			l.store.standing.answered()
			l.token = f.token
			return l.complete(ctx, f.record())
		}
	}
	return nil, unread
}

func isUncertain(err error) bool {
	_, ok := errors.AsType[*worker.UncertainError](err)
	return ok
}

// complete adds to a record what its judgement needs: the content, if it is an inbox record of its own, and the parts that are
// missing.
func (l lookup) complete(ctx context.Context, r stored) (*worker.Record, error) {
	own := r.DocumentID != l.documentID
	r.DocumentID = l.documentID
	if r.Unknown != "" { // what its parts are is not known either
		return &r.Record, nil
	}
	if own && r.noDocuments {
		r.Type, r.Content = "", nil
	} else if own {
		first, err := l.one(ctx, l.documentID)
		if err != nil && !isUncertain(err) {
			return nil, err
		}
		if first.document != nil { // or somebody has deleted it
			r.Type, r.Content = stringOf(first.document[storable.MemberType]), first.content()
		}
	}
	err := l.addMissing(ctx, &r)
	return &r.Record, err
}
