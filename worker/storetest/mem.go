// Package storetest holds the contract that every [worker.Store] must pass, a reference store in memory, and a wrapper
// that makes a store fail. It is for tests only: no shipped program imports it.
//
// To test a handler without a broker and without a database, give it to a [worker.Pipeline] with a [Mem], which takes it
// through admission, commit and judgement: see the example. With the real clients and the real store: package workertest. To test a
// store of your own, call [Run].
package storetest

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/orderworker/orderworker/internal/storable"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/identity"
	"github.com/orderworker/orderworker/worker/reason"
)

// Mem is a store in memory that keeps the contract, and refuses what package cosmosstore and Cosmos DB refuse in any container.
// Make one with [NewMem]. It is safe for concurrent use.
type Mem struct {
	mu        sync.Mutex
	documents map[string]document
	creations map[string]int // how often a first document was created, expired ones included
	entities  map[string]entity
	outboxes  map[string]outbox
	etags     int
}

type document struct {
	worker.Document
	partition string
	expires   time.Time           // zero: never
	record    worker.Record       // of a first document
	claim     *worker.ClaimRecord // of a record in progress; record is not complete then
	// parts say when the further documents of a first one expire; those without a time to live are absent.
	parts map[string]time.Time
}

var _ worker.Store = (*Mem)(nil)

// NewMem returns an empty store.
func NewMem() *Mem {
	return &Mem{documents: map[string]document{}, creations: map[string]int{}, entities: map[string]entity{}, outboxes: map[string]outbox{}}
}

// Commit implements [worker.Store].
func (m *Mem) Commit(ctx context.Context, c worker.Commit) (worker.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return worker.Outcome{}, &worker.UnavailableError{Cause: err}
	}
	if err := fits(c); err != nil {
		return worker.Outcome{}, err
	}
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	first := place(c.PartitionKey(), c.DocumentID, c.DocumentID)
	if o, blocked := m.blockedLocked(first, c, now); blocked {
		return o, nil
	}
	changed, stale, err := m.changeLocked(c)
	if err != nil {
		return worker.Outcome{Calls: 1}, err
	}
	if stale {
		c.Documents, c.Changes, c.Messages, c.Outcome = nil, nil, nil, nil
	}
	created := map[string]document{}
	for i, d := range c.Documents {
		id := first
		if i > 0 {
			id = place(c.PartitionKey(), c.DocumentID, identity.PartDocumentID(c.DocumentID, d.Name))
		}
		if _, taken := m.liveLocked(id, now); taken && i > 0 {
			return worker.Outcome{Blocking: d.Name, Calls: 1, Charge: 2}, nil
		}
		created[id] = newDocument(c, i, d, now, stale)
	}
	if len(c.Documents) == 0 && !c.WithoutRecord {
		created[first] = newDocument(c, 0, worker.Document{}, now, stale)
	}
	maps.Copy(m.documents, created)
	maps.Copy(m.entities, changed)
	m.keepLocked(c, now)
	m.creations[c.DocumentID]++
	return worker.Outcome{Created: !stale, Stale: stale, Calls: 1, Charge: 6 * float64(len(c.Documents)+len(c.Changes))}, nil
}

// fits refuses what Cosmos DB can never take.
func fits(c worker.Commit) error {
	if err := storable.Check(c); err != nil {
		return err
	}
	contents := slices.Clone(c.Documents)
	for _, change := range c.Changes {
		if err := storable.CheckPatch(change); err != nil {
			return err
		}
		if change.Kind == worker.ChangeUpsert || change.Kind == worker.ChangeReplace {
			contents = append(contents, worker.Document{Name: change.ID, Content: change.Content})
		}
	}
	size, n := 0, len(c.Documents)+len(c.Changes)
	for _, d := range contents {
		if _, err := storable.CheckContent(d); err != nil {
			return err
		}
		size += len(d.Content)
	}
	switch {
	case n == 0 && len(c.Messages) == 0 && c.Claim == nil:
		return storable.HandlerFault("no document, no change and no message")
	case n > storable.MaxOperations || size > storable.MaxBytes:
		return storable.Never(reason.TooLarge, "The message makes %d documents and changes of %d bytes; at most %d of %d bytes can be committed together.",
			n, size, storable.MaxOperations, storable.MaxBytes)
	}
	return nil
}

func newDocument(c worker.Commit, i int, d worker.Document, now time.Time, stale bool) document {
	d.Content = bytes.Clone(d.Content)
	doc := document{Document: d, partition: c.PartitionKey()}
	if d.TTL > 0 {
		doc.expires = now.Add(d.TTL)
	}
	if i > 0 {
		return doc
	}
	f := c.Fingerprint
	doc.record = worker.Record{
		DocumentID: c.DocumentID, Key: c.Key.String(), Attempt: c.Attempt, Fingerprint: &f,
		Program: c.Program, ProgramVersion: c.ProgramVersion,
		Type: d.Type, Content: bytes.Clone(d.Content),
		MessageID: c.MessageID, SequenceNumber: c.SequenceNumber, EnqueuedAt: c.EnqueuedAt, CommittedAt: now, Outcome: bytes.Clone(c.Outcome),
		Stale: stale, Outbox: len(c.Messages) > 0,
	}
	doc.parts = map[string]time.Time{}
	for _, part := range c.Documents[min(1, len(c.Documents)):] {
		doc.record.Parts = append(doc.record.Parts, part.Name)
		if part.TTL > 0 {
			doc.parts[part.Name] = now.Add(part.TTL)
		}
	}
	return doc
}

// Find implements [worker.Store].
func (m *Mem) Find(ctx context.Context, partition, documentID string) (worker.Record, error) {
	if err := ctx.Err(); err != nil {
		return worker.Record{}, &worker.UnavailableError{Cause: err}
	}
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	first, ok := m.liveLocked(place(partition, documentID, documentID), now)
	if !ok || first.claim != nil && first.claim.Released {
		return worker.Record{}, worker.ErrNotFound
	}
	return m.recordLocked(first, now), nil
}

// Documents returns the documents that are stored for a document id, as the handler returned them: the first one, and the others
// in their order. Those that are missing or have expired are left out.
func (m *Mem) Documents(documentID string) []worker.Document {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	first, ok := m.liveLocked(documentID, now)
	if !ok || first.claim != nil {
		return nil
	}
	documents := []worker.Document{first.Document}
	for _, name := range first.record.Parts {
		if d, ok := m.liveLocked(identity.PartDocumentID(documentID, name), now); ok {
			documents = append(documents, d.Document)
		}
	}
	return documents
}

// Ready implements [worker.Store].
func (m *Mem) Ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &worker.UnavailableError{Cause: err}
	}
	return nil
}

// Len returns the number of documents.
func (m *Mem) Len() int {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for id := range m.documents {
		if _, ok := m.liveLocked(id, now); ok {
			n++
		}
	}
	return n
}

// Creations returns how often the documents under an id were created.
func (m *Mem) Creations(documentID string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.creations[documentID]
}

// Plant stores a record under an id, as another program would: one without key and fingerprint is any other document.
func (m *Mem) Plant(id string, r worker.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.DocumentID = id
	m.documents[id] = document{record: r, Document: worker.Document{Type: r.Type, Content: r.Content}}
}

// Remove takes a document away, as another program would.
func (m *Mem) Remove(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.documents, id)
}

func (m *Mem) liveLocked(id string, now time.Time) (document, bool) {
	d, ok := m.documents[id]
	if ok && !d.expires.IsZero() && !now.Before(d.expires) {
		delete(m.documents, id)
		return document{}, false
	}
	return d, ok
}

// recordLocked returns a copy of a record, with the parts that are missing now.
func (m *Mem) recordLocked(d document, now time.Time) worker.Record {
	r := d.record
	r.Content = bytes.Clone(r.Content)
	if d.claim != nil {
		claim := *d.claim
		claim.Over = !now.Before(claim.Since.Add(claim.Lease))
		r.Claim = &claim
	}
	r.MissingParts = nil
	for _, part := range r.Parts {
		_, stored := m.liveLocked(place(d.partition, r.DocumentID, identity.PartDocumentID(r.DocumentID, part)), now)
		if end, ok := d.parts[part]; !stored && (!ok || now.Before(end)) {
			r.MissingParts = append(r.MissingParts, part)
		}
	}
	return r
}
