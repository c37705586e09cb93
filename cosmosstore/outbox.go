package cosmosstore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/orderworker/orderworker/internal/storable"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/identity"
)

const (
	// outboxPart is the name of the outbox document beside the documents of a message, and outboxType its type.
	outboxPart = "outbox"
	outboxType = "outbox"
	// outboxQuery finds what is to be sent. Its path is the only one that the container needs to index, and no other document has it.
	outboxQuery = "SELECT * FROM c WHERE c.outbox.unsent = true"
	// outboxPage and outboxPages bound what one search reads: those that deliveries are about to send are among it.
	outboxPage  = 100
	outboxPages = 50
)

// outboxMember is what the messages of one commit are stored as. Each is a text, since the service would round numbers of it.
type outboxMember struct {
	// Unsent is true until everything was sent. Then it is absent.
	Unsent        bool            `json:"unsent,omitempty"`
	Document      string          `json:"document"`
	Messages      []outboxMessage `json:"messages"`
	ReplaySeconds int64           `json:"replaySeconds,omitempty"`
	Attempts      int             `json:"attempts,omitempty"`
}

type outboxMessage struct {
	Name      string `json:"name"`
	To        string `json:"to"`
	MessageID string `json:"messageId"`
	Line      string `json:"line"`
}

// addOutbox adds the outbox of a commit to its plan. It must not expire before it was sent.
func (l layout) addOutbox(p *plan, c worker.Commit, now time.Time) {
	if len(c.Messages) == 0 {
		return
	}
	m := outboxMember{Unsent: true, Document: c.DocumentID, ReplaySeconds: int64(c.Replay / time.Second)}
	for _, s := range c.Messages {
		m.Messages = append(m.Messages, outboxMessage{s.Name, s.To, s.MessageID, string(s.Line)})
	}
	e := envelope{id: outboxID(c.DocumentID), kind: outboxType, content: encoded(m), request: partMember(c, now, outboxPart)}
	if l.defaultTTL != nil {
		e.ttl = neverExpires
	}
	l.add(p, outboxPart, e)
}

// outboxID is the id of the outbox of a message.
func outboxID(documentID string) string { return identity.PartDocumentID(documentID, outboxPart) }

// unsent reads an outbox. Now is the service's time, zero when it is not known.
func (d document) unsent(partition string, now time.Time) (worker.Unsent, bool) {
	m := valueOf[outboxMember](d[outboxType])
	if stringOf(d[storable.MemberType]) != outboxType || len(m.Messages) == 0 {
		return worker.Unsent{}, false
	}
	u := worker.Unsent{Partition: partition, DocumentID: m.Document, Replay: time.Duration(m.ReplaySeconds) * time.Second, Replayed: !m.Unsent,
		Attempts: m.Attempts, ETag: d.etag()}
	for _, s := range m.Messages {
		u.Messages = append(u.Messages, worker.Sending{To: s.To, Name: s.Name, MessageID: s.MessageID, Line: []byte(s.Line)})
	}
	if committed := timeOf(d.request()["committedAt"]); !committed.IsZero() && !now.IsZero() {
		u.Age = max(0, now.Sub(committed))
	}
	return u, true
}

// Pending returns what is to be sent for a document id, as [worker.Outbox] demands.
func (s *Store) Pending(ctx context.Context, partition, documentID string) (worker.Unsent, error) {
	l, err := s.lookup(ctx, partition, documentID)
	if err != nil {
		return worker.Unsent{}, err
	}
	f, err := l.one(ctx, outboxID(documentID))
	if err != nil {
		return worker.Unsent{}, err
	}
	if u, ok := f.unsent(l.partition, serviceTime(f.date)); ok {
		return u, nil
	}
	return worker.Unsent{}, fmt.Errorf("%w: everything of %q was sent", worker.ErrNotFound, documentID)
}

// serviceTime reads the time of a reply, zero when it has none.
func serviceTime(date string) time.Time {
	t, err := http.ParseTime(date)
	if err != nil {
		return time.Time{}
	}
	return t
}

// Overdue returns outboxes that nobody has touched for so long, as [worker.Outbox] demands. How long is told by the service alone, which
// says when a document was written and when it was read.
func (s *Store) Overdue(ctx context.Context, untouched time.Duration, most int) ([]worker.Unsent, error) {
	sess, err := s.session(ctx)
	if err != nil {
		return nil, err
	}
	pager := sess.container.NewQueryItemsPager(outboxQuery, azcosmos.NewPartitionKey(), &azcosmos.QueryOptions{PageSizeHint: outboxPage})
	var found []worker.Unsent
	for n := 0; pager.More() && len(found) < most && n < outboxPages; n++ {
		page, err := pager.NextPage(ctx)
		if err != nil {
			a := answerTo(err)
			return nil, outOfTime(ctx, storeError(opQuery, classify(opQuery, a), a, false))
		}
		now := serviceTime(dateOf(page.RawResponse))
		for _, item := range page.Items {
			d := membersOf(item)
			u, ok := d.unsent(d.partition(sess.layout.path), now)
			if ok && len(found) < most && (untouched <= 0 || now.Sub(d.modifiedAt()) >= untouched) {
				found = append(found, u)
			}
		}
	}
	return found, nil
}

// partition returns the text at the path of the partition key.
func (d document) partition(path []string) string {
	value := d[path[0]]
	for _, name := range path[1:] {
		value = valueOf[document](value)[name]
	}
	return stringOf(value)
}

// TakeUp marks an outbox as touched, as [worker.Outbox] demands.
func (s *Store) TakeUp(ctx context.Context, u worker.Unsent) (worker.Unsent, error) {
	change := plannedChange{Change: worker.Change{Kind: worker.ChangePatch, ID: outboxID(u.DocumentID), ETag: u.ETag}}
	change.patch.AppendSet("/"+outboxType+"/attempts", u.Attempts+1)
	w, err := s.changeOutbox(ctx, u, change)
	if err != nil {
		return u, err
	}
	u.Attempts, u.ETag = u.Attempts+1, w.etag
	return u, nil
}

// Sent records that everything was sent, as [worker.Outbox] demands.
func (s *Store) Sent(ctx context.Context, u worker.Unsent) error {
	change := plannedChange{Change: worker.Change{Kind: worker.ChangeDelete, ID: outboxID(u.DocumentID)}}
	if u.Replay > 0 {
		change.Kind = worker.ChangePatch
		change.patch.AppendRemove("/" + outboxType + "/unsent")
		change.patch.AppendSet("/"+storable.MemberTTL, int64(u.Replay/time.Second))
		change.patch.SetCondition(conditionPrefix + "c.outbox.unsent = true")
	}
	_, err := s.changeOutbox(ctx, u, change)
	if _, moved := errors.AsType[*worker.StateMovedError](err); moved {
		return nil // another has done so
	}
	return err
}

// changeOutbox writes one change of an outbox.
func (s *Store) changeOutbox(ctx context.Context, u worker.Unsent, change plannedChange) (written, error) {
	sess, err := s.session(ctx)
	if err != nil {
		return written{}, err
	}
	w := s.write(ctx, sess, plan{partition: u.Partition, changes: []plannedChange{change}})
	switch {
	case w.class == done:
		return w, nil
	case w.ofChange():
		return w, &worker.StateMovedError{Document: change.ID, Cause: &answerError{op: w.op, answer: w.answer}}
	}
	return w, outOfTime(ctx, storeError(w.op, w.class, w.answer, w.class == ambiguous))
}

var _ worker.Outbox = (*Store)(nil)
