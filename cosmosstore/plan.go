package cosmosstore

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/orderworker/orderworker/internal/storable"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/identity"
	"github.com/orderworker/orderworker/worker/reason"
)

// inboxRecordPart is the name of the inbox record beside the documents of a message, and inboxRecordType its type.
const (
	inboxRecordPart = "inbox-record"
	inboxRecordType = "inboxRecord"
)

// batchOverhead is what azcosmos writes around one create of a batch, the comma included.
const batchOverhead = len(`{"operationType":"Create","resourceBody":},`)

// plan is what one commit writes, encoded and held against the bounds of the service. It does not change, so that a
// write that is repeated is the same write.
type plan struct {
	partition string
	docs      []planned
	// changes are made in the same transaction, after docs are created.
	changes []plannedChange
	// records is how many of docs, from the first, carry the request of the whole message, so that one that exists
	// already can be judged: the inbox record, and if it is a document of its own the handler's first document too.
	records int
	// claimed tells that the first change completes a claim, so that docs do not have the inbox record.
	claimed bool
	// rounded is how many numbers are kept as text too, and roundedBytes what they take. The error of a plan that is
	// too large says so.
	rounded, roundedBytes int
}

type planned struct {
	name string // the handler's name for it; the type for his first document
	id   string
	body []byte
}

// compose plans a commit. It returns an UnstorableError for what can never be stored like this, and a MisconfiguredError
// for what another container would hold.
func (l layout) compose(c worker.Commit, now time.Time) (plan, error) {
	if err := l.checkCommit(c); err != nil {
		return plan{}, err
	}
	p := plan{partition: c.PartitionKey()}
	if l.inboxRecords && !c.WithoutRecord {
		p = l.recordPlan(c, now, "")
	}
	p.records += min(1, len(c.Documents))
	for i, d := range c.Documents {
		exact, err := storable.CheckContent(d)
		if err != nil {
			return plan{}, err
		}
		e := envelope{id: c.DocumentID, kind: d.Type, content: d.Content, exact: exact, ttl: d.TTL}
		name := d.Type
		if i == 0 {
			e.request = recordMember(c, now)
		} else {
			name, e.id, e.request = d.Name, identity.PartDocumentID(c.DocumentID, d.Name), partMember(c, now, d.Name)
		}
		l.add(&p, name, e)
	}
	l.addOutbox(&p, c, now)
	for _, change := range c.Changes {
		planned, err := l.planChange(c, change)
		if err != nil {
			return plan{}, err
		}
		p.changes = append(p.changes, planned)
	}
	return p, p.checkBounds()
}

// recordPlan is the inbox record of a commit in a state as a document of its own, which takes the place of a claim if there is one.
func (l layout) recordPlan(c worker.Commit, now time.Time, state string) plan {
	p := plan{partition: c.PartitionKey(), records: 1}
	e := envelope{id: inboxRecordID(c.DocumentID), kind: inboxRecordType, request: recordMember(c, now), ttl: l.inboxRecordTTL}
	e.request.State = state
	if c.Claim != nil {
		l.addClaim(&p, c, e)
		return p
	}
	l.add(&p, "", e)
	return p
}

func (l layout) add(p *plan, name string, e envelope) {
	e.partition = p.partition
	p.docs = append(p.docs, planned{name: name, id: e.id, body: e.encode(l.path)})
	for _, n := range e.exact {
		p.rounded, p.roundedBytes = p.rounded+1, p.roundedBytes+len(n.Path)+len(n.Text)+len(`"":"",`)
	}
}

// recordIDs are the ids of the documents that may carry the record of a message, the inbox record first.
func (l layout) recordIDs(documentID string) []string {
	if l.inboxRecords {
		return []string{inboxRecordID(documentID), documentID}
	}
	return []string{documentID}
}

// recordIDs are the ids of the documents of the plan that carry the record of the message.
func (p plan) recordIDs() []string {
	var ids []string
	for _, d := range p.docs[:p.records] {
		ids = append(ids, d.id)
	}
	if p.claimed {
		ids = append(ids, p.changes[0].ID)
	}
	return ids
}

// inboxRecordID is the id of the inbox record of a message.
func inboxRecordID(documentID string) string {
	return identity.PartDocumentID(documentID, inboxRecordPart)
}

// checkCommit refuses a commit whose shape the container cannot hold.
func (l layout) checkCommit(c worker.Commit) error {
	if err := storable.Check(c); err != nil {
		return err
	}
	if len(c.Documents) == 0 && len(c.Changes) == 0 && len(c.Messages) == 0 && c.Claim == nil {
		return storable.HandlerFault("no document, no change and no message")
	}
	needsRecord := len(c.Changes) > 0 || len(c.Documents) == 0 || len(c.Outcome) > 0 || c.Version != nil || c.Claim != nil || c.PartitionKey() != c.DocumentID
	if needsRecord && !c.WithoutRecord && !l.inboxRecords {
		return &worker.MisconfiguredError{Fix: "Set Options.InboxRecords (WORKER_INBOX_RECORD=true).", Cause: errors.New(
			"cosmosstore: the handler changes documents or only sends messages, or the messages share partitions or are claimed, and the store keeps no inbox records of their own")}
	}
	if l.byID() && (len(c.Documents) > 1 || len(c.Messages) > 0 || l.inboxRecords && !c.WithoutRecord) {
		return misfit(fixRecreate, "a message needs %d documents in one transaction, and in a container with the partition key path /id "+
			"every document is alone", len(c.Documents)+min(1, len(c.Messages)))
	}
	if len(c.Messages) > 0 && l.path[0] == outboxType {
		return misfit(fixRecreate, "a message sends others, which are stored under /%s, and that is the partition key path of the container", outboxType)
	}
	if c.Replay > 0 && l.defaultTTL == nil {
		return misfit(fixTTLOff, "a reply is to be kept for %v, and the container ignores times to live", c.Replay)
	}
	for _, d := range c.Documents {
		if l.inboxRecords && d.Name == inboxRecordPart || d.Name == outboxPart {
			return storable.HandlerFault("a document with the name %+q, which belongs to the store's own documents. Give it another name", d.Name)
		}
		if err := l.checkType(d.Type); err != nil {
			return err
		}
		if d.TTL > 0 && l.defaultTTL == nil {
			return misfit(fixTTLOff, "a document of type %+q asks for a time to live, and the container ignores it", d.Type)
		}
	}
	return nil
}

func (l layout) checkType(name string) error {
	if problem := typeProblem(name, l.inboxRecords); problem != "" {
		return storable.HandlerFault("a document whose type %+q %s", name, problem)
	}
	if name != l.path[0] {
		return nil
	}
	f := typeInPath(l.path, name)
	if l.typesKnown { // all of them fit, so this one is the handler's mistake
		return storable.HandlerFault("a document of the type %+q, which is not among the types that the store was opened for, and %s", name, f.Text)
	}
	return misfit(f.Fix, "%s", f.Text)
}

// typeProblem says why no document of a handler can have a type of this name, or "".
func typeProblem(name string, inboxRecords bool) string {
	if inboxRecords && name == inboxRecordType || name == outboxType {
		return "is reserved"
	}
	return storable.TypeProblem(name)
}

// checkBounds holds the plan against the bounds of the service, before anything is sent: not every emulator does it.
func (p plan) checkBounds() error {
	if n := p.operations(); n > storable.MaxOperations {
		return storable.Never(reason.TooLarge, "What the handler returned is %d documents and changes, and the store takes %d in one "+
			"transaction. Let it make fewer, or send the message in several, with keys of their own.", n, storable.MaxOperations)
	}
	for _, d := range p.docs {
		if n := len(d.body) + systemBytes; n > storable.MaxBytes {
			return storable.Never(reason.TooLarge, "Document %+q would have %d bytes, and the store takes %d. %s", d.name, n, storable.MaxBytes, p.sizeFix(n))
		}
	}
	if n := p.size(); n > storable.MaxBytes {
		return storable.Never(reason.TooLarge, "The %d documents and changes of the message would be a request of %d bytes, and the store takes %d. %s",
			p.operations(), n, storable.MaxBytes, p.sizeFix(n))
	}
	return nil
}

// operations is how many operations the plan takes in a transaction.
func (p plan) operations() int { return len(p.docs) + len(p.changes) }

// single reports whether the plan is one create, which needs no batch.
func (p plan) single() bool { return len(p.docs) == 1 && len(p.changes) == 0 }

// sizeFix says what can be done about a size that is over the bound.
func (p plan) sizeFix(size int) string {
	if size-p.roundedBytes > storable.MaxBytes {
		return "Send less in one message, such as large attachments by reference."
	}
	return fmt.Sprintf("Of these, %d are for %d numbers that the store would round to a double, and that are therefore kept as text too: "+
		"send such numbers as strings, or with at most 15 digits.", p.roundedBytes, p.rounded)
}

// size is the number of bytes of the request that the plan becomes, or of the document when it is one.
func (p plan) size() int {
	if p.single() {
		return len(p.docs[0].body) + systemBytes
	}
	total := 2
	for _, d := range p.docs {
		total += batchOverhead + escapedLength(d.body)
	}
	for _, c := range p.changes {
		total += changeOverhead + escapedLength(c.body)
	}
	return total
}

// large reports whether a plan is so large that a store which counts otherwise may find it too large.
func (p plan) large() bool { return p.size() > storable.MaxBytes/4*3 }

// escapedLength is the length of JSON after azcosmos has written it into a batch: encoding/json escapes what HTML minds.
func escapedLength(body []byte) int {
	n := len(body)
	for _, c := range body {
		if c == '<' || c == '>' || c == '&' {
			n += len(`\u003c`) - 1
		}
	}
	for _, sep := range []string{"\u2028", "\u2029"} {
		n += bytes.Count(body, []byte(sep)) * (len(`\u2028`) - len(sep))
	}
	return n
}
