package deadletter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orderworker/orderworker/internal/backoff"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/reason"
)

// A Reviewer looks at dead letters and acts on them.
type Reviewer struct {
	broker   Broker
	pipeline Pipeline
	ledger   Ledger
	settings Settings

	neighbours neighbours
	// down tells that the store has not answered for a while.
	down atomic.Bool
}

// NewReviewer returns a reviewer. A nil ledger allows looking and no action.
func NewReviewer(b Broker, p Pipeline, l Ledger, s Settings) *Reviewer {
	return &Reviewer{broker: b, pipeline: p, ledger: l, settings: s}
}

// Settings returns what the reviewer was told of the queue.
func (r *Reviewer) Settings() Settings { return r.settings }

// An Item is a dead letter with its verdict.
type Item struct {
	DeadLetter *DeadLetter
	Verdict    Verdict
	// Stored is the payload of the stored document. It is nil when there is none to show, and Absence then says why.
	Stored  []byte
	Absence string
	// Key is the key of the message as a person should see it, empty when it has none. DocumentID is where it is stored.
	Key, DocumentID string
	// Content is the body as the worker reads it: decoded and decompressed. Nil when it cannot be read.
	Content []byte

	// parameters is the one by which the two are compared.
	parameters fingerprint.Parameters
}

// ErrAbsent is returned for a sequence number under which no dead letter lies.
var ErrAbsent = errors.New("deadletter: no dead letter has this sequence number; it was removed, or never there")

// The sizes of the work on a listing. A page is small because messages may be large: a page of the largest standard messages
// has 25 MB. Pages are looked up side by side, because what is not stored is looked for twice with a pause between.
const (
	pageSize   = 100
	pagesAhead = 3
	lookups    = 150
)

// List yields every dead letter that the filter selects, in the order of sequence numbers, with its verdict of now. It
// reads page by page to the end and keeps a few pages, so that a queue of any length takes the same memory. The store is
// asked only about messages that the filter can select. It stops at the first error of the broker.
func (r *Reviewer) List(ctx context.Context, f Filter) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		caller := ctx
		ctx, cancel := context.WithCancel(caller)
		var work sync.WaitGroup
		defer work.Wait()
		defer cancel()
		slots := make(chan struct{}, lookups)
		var ahead []chan []Item
		// hand yields the pages but for the newest few, and reports whether to go on.
		hand := func(keep int) bool {
			for ; len(ahead) > keep; ahead = ahead[1:] {
				for _, item := range <-ahead[0] {
					if f.Matches(item) && !yield(item, nil) {
						return false
					}
				}
			}
			return true
		}
		for page, err := range r.Pages(ctx, max(f.FirstSequence, 1), f.LastSequence) {
			if err != nil {
				if hand(0) {
					// A caller that gave up is to see that, and not what the client made of it.
					yield(Item{}, cmp.Or(caller.Err(), err))
				}
				return
			}
			page = slices.DeleteFunc(page, func(l *DeadLetter) bool { return !f.MatchesMessage(l) })
			items := make(chan []Item, 1)
			work.Go(func() { items <- r.examine(ctx, page, slots) })
			if ahead = append(ahead, items); !hand(pagesAhead) {
				return
			}
		}
		// A listing that was cut off must not look like a whole one.
		if hand(0) && caller.Err() != nil {
			yield(Item{}, caller.Err())
		}
	}
}

// errOrder is returned where a page by page look would leave messages out.
var errOrder = errors.New("the numbers of the dead letters do not ascend, as in a queue with partitions, so that not all of them can be listed. Use a queue without partitions, or the Service Bus Explorer of the portal")

// Pages yields the dead letters from one sequence number to another, both included, a page at a time and without
// verdicts. A last of zero is no bound.
func (r *Reviewer) Pages(ctx context.Context, first, last int64) iter.Seq2[[]*DeadLetter, error] {
	return func(yield func([]*DeadLetter, error) bool) {
		for from := first; last == 0 || from <= last; {
			messages, err := r.broker.Peek(ctx, from, pageSize)
			if err != nil {
				yield(nil, err)
				return
			}
			next := from
			for i, l := range messages {
				if l.Sequence != 0 && l.Sequence < next {
					yield(nil, fmt.Errorf("%w: %d came after %d", errOrder, l.Sequence, next-1))
					return
				}
				next = max(next, l.Sequence+1)
				if last > 0 && l.Sequence > last {
					messages = messages[:i]
					break
				}
			}
			if len(messages) == 0 || !yield(r.reviewed(messages), nil) {
				return
			}
			if next == from {
				yield(nil, fmt.Errorf("the broker does not say where the dead letters after %d begin", from))
				return
			}
			from = next
		}
	}
}

// reviewed returns those of a page that are dead letters: where these are forwarded to, others lie between them.
func (r *Reviewer) reviewed(messages []*DeadLetter) []*DeadLetter {
	if !r.settings.Forwarded {
		return messages
	}
	return slices.DeleteFunc(messages, func(l *DeadLetter) bool { return !l.deadLettered() })
}

// examine computes the verdicts of a page, taking a slot for each.
func (r *Reviewer) examine(ctx context.Context, messages []*DeadLetter, slots chan struct{}) []Item {
	items := make([]Item, len(messages))
	var work sync.WaitGroup
	for i, l := range messages {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			items[i] = r.patiently(ctx, l)
		})
	}
	work.Wait()
	return items
}

// examineTries is how often the store is asked about one message of many while it is throttled.
const examineTries = 6

// patiently is Examine that waits while the store is throttled. When the store has answered nobody for as many tries, it is down,
// and nobody waits until it answers again.
func (r *Reviewer) patiently(ctx context.Context, l *DeadLetter) Item {
	for try := 0; ; try++ {
		item := r.Examine(ctx, l)
		v := item.Verdict
		switch {
		case v.Kind != Undecided:
			r.down.Store(false)
			return item
		case !v.Retry || r.down.Load():
			return item
		case try+1 >= examineTries:
			r.down.Store(true)
			return item
		}
		if !backoff.Sleep(ctx, max(v.RetryAfter, storeBackoff().Wait(try))) {
			return item
		}
	}
}

// Examine computes the verdict of one message now.
func (r *Reviewer) Examine(ctx context.Context, l *DeadLetter) Item {
	item := Item{DeadLetter: l}
	if len(l.Damage) > 0 {
		item.Verdict, item.Absence = Decide(l, worker.Result{}, r.settings, time.Now()), unexamined
		return item
	}
	if other := foreign(l, r.settings); other != "" {
		item.Verdict, item.Absence = Decide(l, worker.Result{}, r.settings, time.Now()), "It was not looked for: only "+other+" knows where it would be stored."
		return item
	}
	result := r.pipeline.Preview(ctx, l.Received())
	item.Verdict = Decide(l, result, r.settings, time.Now())
	item.Verdict.Doubt = r.doubt(ctx, l, result.Outcome.Existing)
	item.Absence = "Nothing is stored under its key."
	if item.Verdict.Kind == Undecided {
		item.Absence = unanswered
	}
	if result.Admitted {
		item.Key, item.DocumentID = result.Message.Key.String(), result.Message.DocumentID
		item.Content = result.Message.Body
	}
	if item.Verdict.Kind == Unreadable {
		r.lookUp(ctx, &item)
	}
	item.parameters = result.Message.Fingerprint.Parameters
	if e := result.Outcome.Existing; e != nil {
		item.Stored = e.Content
		if e.Fingerprint != nil {
			item.parameters = e.Fingerprint.Parameters
		}
	}
	switch {
	case item.Stored != nil:
		item.Absence = ""
	case result.Outcome.Existing != nil:
		item.Absence = "The record of its key is stored by itself, and holds no document."
	}
	return item
}

// Why there is no stored document to show, where the store was not asked or did not answer.
const (
	unexamined = "It was not looked for, since part of the message cannot be read."
	unanswered = "Whether anything is stored under its key is not known, since the store gave no answer."
)

// lookUp adds to an unreadable message what is stored under its key, for a copy of it that can be read may have been applied.
func (r *Reviewer) lookUp(ctx context.Context, item *Item) {
	key, record, err := r.pipeline.Lookup(ctx, item.DeadLetter.Received())
	if _, none := errors.AsType[*reason.Refusal](err); none {
		item.Absence = "It has no key under which anything could be stored."
		return
	}
	item.Key, item.DocumentID = key.String(), key.DocumentID()
	v := &item.Verdict
	switch {
	case errors.Is(err, worker.ErrNotFound):
	case err != nil:
		item.Absence = unanswered
	case record.Key != item.Key:
		item.Absence = "A document that does not say its key is stored under its document id."
	default:
		v.CommittedAt, item.Stored, item.Absence = record.CommittedAt, record.Content, ""
		v.Detail += " Under its key a document is stored, committed at " + stamp(record.CommittedAt) + ", and nobody can tell whether it is this message: another one with this key was applied, and may have been a copy of this one."
		return
	}
	v.Detail += " " + item.Absence
}

// Forwarded returns how many of the first messages in the queue itself carry a dead-letter reason: other queues forward their dead
// letters to it, and there they are ordinary messages.
func (r *Reviewer) Forwarded(ctx context.Context) (int, error) {
	page, err := r.broker.PeekQueue(ctx, 1, pageSize)
	n := 0
	for _, l := range page {
		if l.deadLettered() {
			n++
		}
	}
	return n, err
}

// deadLettered reports whether a message was dead-lettered once.
func (l *DeadLetter) deadLettered() bool {
	_, ok := l.Message.ApplicationProperties[propertyReason]
	return ok
}

// OfKey returns the numbers of the other dead letters up to a number with the MessageId or the document id of a message; zero is
// no bound.
func (r *Reviewer) OfKey(ctx context.Context, l *DeadLetter, last int64) ([]int64, error) {
	var found []int64
	id, _ := l.MessageID()
	for messages, err := range r.Pages(ctx, 1, last) {
		if err != nil {
			return nil, err
		}
		for _, other := range messages {
			otherID, _ := other.MessageID()
			if other.Sequence != l.Sequence && (id != "" && otherID == id || l.documentID() != "" && other.documentID() == l.documentID()) {
				found = append(found, other.Sequence)
			}
		}
	}
	return found, nil
}

// Find peeks one message and computes its verdict. It returns ErrAbsent when the message is not there.
func (r *Reviewer) Find(ctx context.Context, sequence int64) (Item, error) {
	l, err := r.peekOne(ctx, sequence)
	if err != nil {
		return Item{}, err
	}
	return r.Examine(ctx, l), nil
}

func (r *Reviewer) peekOne(ctx context.Context, sequence int64) (*DeadLetter, error) {
	messages, err := r.broker.Peek(ctx, sequence, 1)
	switch {
	case err != nil:
		return nil, err
	case len(messages) == 0 || messages[0].Sequence != sequence || len(r.reviewed(messages)) == 0:
		return nil, ErrAbsent
	}
	return messages[0], nil
}
