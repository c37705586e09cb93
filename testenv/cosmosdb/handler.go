package cosmosdb

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
)

// ending says what becomes of a reply.
type ending int

const (
	sent   ending = iota
	cut           // the connection breaks instead
	silent        // nothing is sent until the client gives up
	ended         // the account was closed meanwhile
)

// outcome is how a request ends.
type outcome struct {
	ending   ending
	reply    reply
	activity string
	// condition tells how a cut looks in process: StreamReset, ConnectionRefused, or nothing for a closed connection.
	condition string
}

// serve carries a request through: who sent it, the faults before its effect, the effect, the faults after it. ctx ends
// when the client has gone; it ends silences, and nothing else.
func (a *Account) serve(ctx context.Context, q *request) outcome {
	activity := a.activity(q)
	a.nameResources(q)
	if r := a.authenticate(q, time.Now()); r != nil {
		return a.finish(q, activity, *r)
	}
	if o := a.applyFault(ctx, q, fault.Before, activity, reply{}); o != nil {
		return *o
	}
	r, alive := a.perform(q, activity)
	if !alive {
		return outcome{ending: ended}
	}
	if o := a.applyFault(ctx, q, fault.After, activity, r); o != nil {
		return *o
	}
	return outcome{reply: r, activity: activity}
}

// finish records a reply that needed no lock and returns it.
func (a *Account) finish(q *request, activity string, r reply) outcome {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.record(q, activity, r, nil)
	return outcome{reply: r, activity: activity}
}

// perform does what the request asks for, in one step as far as others can see. alive is false when the account has
// been closed meanwhile, and then nothing has happened.
func (a *Account) perform(q *request, activity string) (r reply, alive bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.shut {
		return reply{}, false
	}
	var writes []history.Write
	r, writes = a.dispatch(q)
	if c := a.findContainer(q.database(), q.container()); c != nil && q.entity() != "" {
		if r.session == "" {
			r.session = c.session()
		}
		r = locate(q, r, c)
	}
	a.record(q, activity, r, writes)
	return r, true
}

// dispatch finds the handler. writes are what was written to documents.
func (a *Account) dispatch(q *request) (r reply, writes []history.Write) {
	if q.isData() && a.denied != nil {
		return refuse(a.denied.status, a.denied.substatus, "the identity has no data plane role that allows this on the account"), nil
	}
	if q.resource != accountResource {
		if r := a.checkHeadersLocked(q); r != nil {
			return *r, nil
		}
	}
	switch q.resource {
	case accountResource:
		return a.readAccount(q), nil
	case partitionDelete:
		return a.refuseLocked(q, "the deletion of all documents of a partition key"), nil
	case documentFeed, documentResource:
		return a.serveDocuments(q)
	case databaseFeed, databaseResource, containerFeed, containerResource, offerFeed, offerResource:
		return a.serveManagement(q), nil
	case rangeFeed:
		return a.readRanges(q), nil
	default:
		return a.refuseLocked(q, "the path "+q.path), nil
	}
}

// refuseLocked answers a request for something that the account does not implement, and remembers it.
func (a *Account) refuseLocked(q *request, what string) reply {
	refused := q.method + " " + q.path + ": " + what
	a.refusals = append(a.refusals, refused)
	if a.opts.OnRefusal != nil {
		a.opts.OnRefusal(refused)
	}
	r := refuse(http.StatusNotImplemented, 0, "the embedded Cosmos DB does not implement "+what)
	a.opts.History.Add(history.Event{Op: history.RefusedByCosmos, Entity: q.entity(), Key: q.key, Status: r.status, Error: what})
	return r
}

// record tells the history about a request that reached its end.
func (a *Account) record(q *request, activity string, r reply, writes []history.Write) {
	e := history.Event{
		Op: q.op, Entity: q.entity(), Key: q.key, Status: r.status, Substatus: r.substatus,
		Charge: r.charge, Activity: activity, Error: r.message, Writes: writes,
		Effect: r.status/100 == 2 && changes(q) && (len(writes) > 0 || r.status != http.StatusMultiStatus && !readsAlone(q)),
	}
	if q.op == history.ExecuteBatch {
		for _, w := range writes {
			if w.Created {
				e.Documents = append(e.Documents, w.ID)
			}
		}
	}
	if key, ok, err := parsePartitionKey(q.header.Get(keyHeader)); ok && err == nil && q.isData() {
		e.Partition = key.display()
	}
	a.opts.History.Add(e)
}

// changes reports whether the request changes something when it succeeds.
func changes(q *request) bool {
	switch q.op {
	case history.ReadAccount, history.ReadDocument, history.QueryDocuments, history.ReadChangeFeed, history.ReadContainer:
		return false
	}
	return q.method != http.MethodGet && !q.isQuery()
}

// activity returns the client's id of the request, or makes one up.
func (a *Account) activity(q *request) string {
	if id := q.header.Get("x-ms-activity-id"); id != "" {
		return id
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.anyActivity++
	return fmt.Sprintf("00000000-0000-0000-0000-%012x", a.anyActivity)
}
