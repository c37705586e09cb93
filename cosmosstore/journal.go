package cosmosstore

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/orderworker/orderworker/internal/backoff"
	"github.com/orderworker/orderworker/internal/storable"
)

// The names of journal documents. No document id of a key begins with a tilde and one of these words, so that no message can
// reach a journal entry.
const (
	actionIDPrefix        = "~action."
	actionPartitionPrefix = "~actions."
	actionType            = "deadLetterAction"
	memberAt              = "at"
)

// A Journal keeps entries, such as the actions on dead-lettered messages, in the container of the documents. Each is a
// document that is created once and never changed. The entries of one day, in UTC, share a logical partition, so that they
// can be read again without a query over the whole container. In a container whose partition key is the id every entry has
// a logical partition of its own.
//
// It needs the right to create items and to query them. It is safe for concurrent use.
type Journal struct{ store *Store }

// Journal returns the journal of the store's container. It may be used as long as the store is open.
func (s *Store) Journal() *Journal { return &Journal{store: s} }

// A JournalEntry is one record in a [Journal].
type JournalEntry struct {
	// ID is unique: an entry with an ID that is stored already is the same entry.
	ID string
	At time.Time
	// Content is one JSON object.
	Content json.RawMessage
}

// A JournalQuery selects entries of a [Journal].
type JournalQuery struct {
	// From and To bound At: From is included and must be set, To is not included; zero is no bound.
	From, To time.Time
	// Equal selects entries whose Content has these values in members of these names.
	Equal map[string]any
	// Most bounds the number of entries, the newest first. Zero is no bound.
	Most int
}

func (q JournalQuery) covers(at time.Time) bool {
	return !at.Before(q.From) && (q.To.IsZero() || at.Before(q.To))
}

const opQuery operation = "query"

// Append adds an entry. It returns nil only when the entry is known to be stored, and repeats ambiguous writes by itself.
func (l *Journal) Append(ctx context.Context, e JournalEntry) error {
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
		if try > 1 && !backoff.Sleep(ctx, writeBackoff().Wait(try-2)) {
			break
		}
		last = s.write(ctx, sess, p)
		if last.class == done || last.class == exists { // the id belongs to this entry alone: what is stored is an earlier try
			return nil
		}
		if last.class != ambiguous && last.class != contended && last.class != unexpected {
			break
		}
	}
	if last.class == misconfigured {
		s.forget(sess)
	}
	return outOfTime(ctx, storeError(last.op, last.class, last.answer, last.class == ambiguous))
}

// entryPlan is the one document of an entry.
func entryPlan(l layout, j JournalEntry) (plan, error) {
	e := envelope{id: actionIDPrefix + j.ID, kind: actionType, content: j.Content, at: j.At}
	if problem := storable.IDProblem(e.id); problem != "" {
		return plan{}, fmt.Errorf("cosmosstore: the id %q of a journal entry %s", e.id, problem)
	}
	p := plan{partition: dayOf(j.At)}
	if l.byID() {
		p.partition = e.id
	}
	l.add(&p, actionType, e)
	return p, nil
}

func dayOf(t time.Time) string { return actionPartitionPrefix + t.UTC().Format(time.DateOnly) }

// Entries returns what a query selects, newest first, and stops at the first error. It reads day by day, backwards.
func (l *Journal) Entries(ctx context.Context, q JournalQuery) iter.Seq2[JournalEntry, error] {
	return func(yield func(JournalEntry, error) bool) {
		sess, err := l.store.session(ctx)
		if err != nil {
			yield(JournalEntry{}, err)
			return
		}
		left := q.Most
		for _, partition := range partitionsOf(sess.layout, q) {
			entries, err := l.newest(ctx, sess, partition, q, left)
			if err != nil {
				yield(JournalEntry{}, err)
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

// partitionsOf returns the logical partitions in which a query looks, the newest first. An empty name means all.
func partitionsOf(l layout, q JournalQuery) []string {
	if l.byID() {
		return []string{""}
	}
	to := time.Now().Add(time.Hour) // a clock elsewhere may be ahead by some minutes, and so into the next day
	if !q.To.IsZero() && q.To.Before(to) {
		to = q.To
	}
	var days []string
	for day := to.UTC(); dayOf(day) >= dayOf(q.From); day = day.AddDate(0, 0, -1) {
		days = append(days, dayOf(day))
	}
	return days
}

// partitionTime bounds the reading of one partition.
const partitionTime = 2 * time.Minute

// maxJournalPage is how many entries one answer holds at most.
const maxJournalPage = 1000

// newest reads one partition and returns the newest most entries that the query selects, or all when most is zero. One partition
// is read from its newest entry on, and no further than it must be: _ts is indexed whatever the container's policy says
// (https://learn.microsoft.com/azure/cosmos-db/index-policy). All partitions together have no such order.
func (l *Journal) newest(ctx context.Context, sess *session, partition string, q JournalQuery, most int) ([]JournalEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, partitionTime)
	defer cancel()
	key := azcosmos.NewPartitionKey()
	if partition != "" {
		key = azcosmos.NewPartitionKeyString(partition)
	}
	text, parameters := queryText(q)
	options := azcosmos.QueryOptions{QueryParameters: parameters}
	ordered := partition != "" && most > 0
	if ordered {
		text += " ORDER BY c._ts DESC"
		options.PageSizeHint = int32(min(most+1, maxJournalPage))
	}
	pager := sess.container.NewQueryItemsPager(text, key, &options)
	var found []JournalEntry
	last := int64(math.MinInt64) // older entries than this are not among the newest
	for older := true; older && pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			a := answerTo(err)
			return nil, outOfTime(ctx, storeError(opQuery, classify(opQuery, a), a, false))
		}
		for _, item := range page.Items {
			var d struct {
				ID      string          `json:"id"`
				At      time.Time       `json:"at"`
				Second  int64           `json:"_ts"`
				Content json.RawMessage `json:"deadLetterAction"`
			}
			if err := json.Unmarshal(item, &d); err != nil {
				return nil, fmt.Errorf("cosmosstore: a journal entry cannot be read: %w", err)
			}
			if d.Second < last {
				older = false
				break
			}
			if q.covers(d.At) {
				found = append(found, JournalEntry{ID: strings.TrimPrefix(d.ID, actionIDPrefix), At: d.At, Content: d.Content})
			}
			if ordered && len(found) >= most {
				last = d.Second // others of the same second may be newer
			}
		}
	}
	slices.SortStableFunc(found, func(a, b JournalEntry) int { return b.At.Compare(a.At) })
	if most > 0 {
		found = found[:min(len(found), most)]
	}
	return found, nil
}

// queryText lets the service leave out what is not asked for. It asks for no order, since no member is indexed.
func queryText(q JournalQuery) (string, []azcosmos.QueryParameter) {
	var text strings.Builder
	text.WriteString("SELECT * FROM c WHERE c.type = @type")
	parameters := []azcosmos.QueryParameter{{Name: "@type", Value: actionType}}
	for _, name := range slices.Sorted(maps.Keys(q.Equal)) {
		fmt.Fprintf(&text, " AND c.%s.%s = @%s", actionType, name, name)
		parameters = append(parameters, azcosmos.QueryParameter{Name: "@" + name, Value: q.Equal[name]})
	}
	return text.String(), parameters
}
