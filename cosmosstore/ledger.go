package cosmosstore

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/orderworker/orderworker/worker/deadletter"
)

// The names under which records of actions stand beside the orders. No document id of a key begins with a tilde and one of
// these words, so that no message can reach a record.
const (
	actionIDPrefix        = "~action."
	actionPartitionPrefix = "~actions."
	actionType            = "deadLetterAction"
)

// A Ledger keeps the records of actions on dead letters in the container of the orders. Each is a document that is created
// once and never changed. The records of one day, in UTC, share a logical partition, so that they can be read again without
// a query over the whole container. In a container whose partition key is the id every record is alone.
//
// It needs the right to create items and to query them.
type Ledger struct{ store *Store }

var _ deadletter.Ledger = (*Ledger)(nil)

// Ledger returns the ledger of the store's container. It may be used as long as the store is open.
func (s *Store) Ledger() *Ledger { return &Ledger{store: s} }

const opQuery operation = "query"

// Append adds an entry. See [deadletter.Ledger].
func (l *Ledger) Append(ctx context.Context, e deadletter.Entry) error {
	s := l.store
	sess, err := s.session(ctx)
	if err != nil {
		return err
	}
	p, err := entryPlan(sess.layout, e)
	if err != nil {
		return err
	}
	var last written
	for try := 1; try <= maxTries; try++ {
		if try > 1 && !pause(ctx, backoff(try-1)) {
			break
		}
		last = s.write(ctx, sess, p)
		switch last.class {
		case done, exists:
			// The id belongs to this entry alone: what stands there is an earlier try.
			return nil
		case unclear, contended, senseless:
			continue
		case misconfigured:
			s.forget(sess)
		}
		break
	}
	return outOfTime(ctx, storeError(last.op, last.class, last.answer, last.class == unclear))
}

// entryPlan is the one document of an entry.
func entryPlan(l layout, e deadletter.Entry) (plan, error) {
	content, err := json.Marshal(e)
	if err != nil {
		return plan{}, fmt.Errorf("cosmosstore: the record of an action cannot be written: %w", err)
	}
	id := actionIDPrefix + e.ID
	if err := checkID(id); err != nil {
		return plan{}, fmt.Errorf("cosmosstore: the id %q of the record of an action %w", id, err)
	}
	p := plan{partition: dayOf(e.At)}
	if l.byID() {
		p.partition = id
	}
	members := map[string]any{memberID: id, memberType: actionType, actionType: json.RawMessage(content)}
	place := members
	for i, name := range l.path {
		if i == len(l.path)-1 {
			place[name] = p.partition
			break
		}
		inner := map[string]any{}
		place[name], place = inner, inner
	}
	body, err := json.Marshal(members)
	p.docs = []planned{{name: actionType, id: id, body: body}}
	return p, err
}

func dayOf(t time.Time) string { return actionPartitionPrefix + t.UTC().Format(time.DateOnly) }

// Entries returns what a query selects, newest first. See [deadletter.Ledger]. It reads day by day, backwards.
func (l *Ledger) Entries(ctx context.Context, q deadletter.Query) iter.Seq2[deadletter.Entry, error] {
	return func(yield func(deadletter.Entry, error) bool) {
		sess, err := l.store.session(ctx)
		if err != nil {
			yield(deadletter.Entry{}, err)
			return
		}
		left := q.Most
		for _, partition := range partitionsOf(sess.layout, q) {
			entries, err := l.newest(ctx, sess, partition, q, left)
			if err != nil {
				yield(deadletter.Entry{}, err)
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
			if left -= len(entries); q.Most > 0 && left <= 0 {
				return
			}
		}
	}
}

// partitionsOf returns the logical partitions in which a query looks, the newest first. One that is empty stands for all.
func partitionsOf(l layout, q deadletter.Query) []string {
	if l.byID() {
		return []string{""}
	}
	to := time.Now()
	if !q.To.IsZero() && q.To.Before(to) {
		to = q.To
	}
	// A clock elsewhere may be ahead by some minutes, and so into the next day.
	to = to.Add(time.Hour)
	var days []string
	for day := to.UTC(); dayOf(day) >= dayOf(q.From); day = day.AddDate(0, 0, -1) {
		days = append(days, dayOf(day))
	}
	return days
}

// newest reads one partition and returns the newest most entries that the query selects, or all when most is zero. It keeps
// no more than twice as many.
func (l *Ledger) newest(ctx context.Context, sess *session, partition string, q deadletter.Query, most int) ([]deadletter.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, ledgerTime)
	defer cancel()
	key := azcosmos.NewPartitionKey()
	if partition != "" {
		key = azcosmos.NewPartitionKeyString(partition)
	}
	text, parameters := queryText(q)
	pager := sess.container.NewQueryItemsPager(text, key, &azcosmos.QueryOptions{QueryParameters: parameters})
	var found []deadletter.Entry
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			a := answerTo(err)
			return nil, outOfTime(ctx, storeError(opQuery, classify(opQuery, a), a, false))
		}
		for _, item := range page.Items {
			var document struct {
				Entry deadletter.Entry `json:"deadLetterAction"`
			}
			if err := json.Unmarshal(item, &document); err != nil {
				return nil, fmt.Errorf("cosmosstore: a record of an action cannot be read: %w", err)
			}
			if q.Matches(document.Entry) {
				found = append(found, document.Entry)
			}
		}
		if most > 0 && len(found) > 2*most {
			found = cut(found, most)
		}
	}
	return cut(found, most), nil
}

// ledgerTime bounds the reading of one partition.
const ledgerTime = 2 * time.Minute

func cut(entries []deadletter.Entry, most int) []deadletter.Entry {
	slices.SortStableFunc(entries, func(a, b deadletter.Entry) int { return b.At.Compare(a.At) })
	if most > 0 && len(entries) > most {
		entries = slices.Clone(entries[:most])
	}
	return entries
}

// queryText lets the service leave out what is not asked for. It asks for no order, since nothing is indexed.
func queryText(q deadletter.Query) (string, []azcosmos.QueryParameter) {
	var text strings.Builder
	text.WriteString("SELECT * FROM c WHERE c.type = @type")
	parameters := []azcosmos.QueryParameter{{Name: "@type", Value: actionType}}
	for _, f := range []struct {
		name  string
		value any
		asked bool
	}{
		{"state", string(q.State), q.State != ""}, {"plan", q.Plan, q.Plan != ""}, {"messageId", q.MessageID, q.MessageID != ""},
		{"sequence", q.Sequence, q.Sequence != 0},
	} {
		if f.asked {
			fmt.Fprintf(&text, " AND c.%s.%s = @%s", actionType, f.name, f.name)
			parameters = append(parameters, azcosmos.QueryParameter{Name: "@" + f.name, Value: f.value})
		}
	}
	return text.String(), parameters
}
