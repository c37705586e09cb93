package cosmosstore

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/identity"
	"github.com/orderworker/orderworker/worker/reason"
)

// maxOperations is how many operations the service takes in one batch.
const maxOperations = 100

// markerPart is the name of the marker beside the documents of a message, and markerType its type.
const (
	markerPart = "marker"
	markerType = "marker"
)

// batchOverhead is what azcosmos writes around one create of a batch, the comma included.
const batchOverhead = len(`{"operationType":"Create","resourceBody":},`)

// plan is what one commit writes, encoded and held against the bounds of the service. It does not change, so that a
// write that is repeated is the same write.
type plan struct {
	partition string
	docs      []planned
	// guards is how many of docs, from the first, carry the request of the whole message, so that one that stands in the
	// way can be judged: the guard, and with markers the handler's first document too.
	guards int
}

type planned struct {
	name string // the handler's name for it; the type for his first document
	id   string
	body []byte
}

// compose plans a commit. It returns an UnstorableError for what can never be stored, and a MisconfiguredError for what
// this container cannot store.
func (l layout) compose(c worker.Commit, now time.Time) (plan, error) {
	if err := l.checkCommit(c); err != nil {
		return plan{}, err
	}
	p := plan{partition: c.DocumentID, guards: 1}
	if l.markers {
		p.guards = 2
		if err := l.add(&p, "", envelope{id: markerID(c.DocumentID), kind: markerType, request: guardRequest(c, now), ttl: l.markerTTL}); err != nil {
			return plan{}, err
		}
	}
	for i, d := range c.Documents {
		e := envelope{id: c.DocumentID, kind: d.Type, content: d.Content, request: guardRequest(c, now)}
		name := d.Type
		if i > 0 {
			name = d.Name
			e.id, e.request = identity.PartDocumentID(c.DocumentID, d.Name), partRequest(c, d.Name, now)
		}
		var err error
		if e.exact, err = checkContent(d); err != nil {
			return plan{}, err
		}
		if e.ttl, err = ttlSeconds(d.TTL); err != nil {
			return plan{}, never(reason.NeverStorable, "the time to live of document %q: %v", name, err)
		}
		if err := l.add(&p, name, e); err != nil {
			return plan{}, err
		}
	}
	return p, p.checkBounds()
}

// markerID is the id of the marker of a message.
func markerID(documentID string) string { return identity.PartDocumentID(documentID, markerPart) }

func (l layout) add(p *plan, name string, e envelope) error {
	e.partition = p.partition
	body, err := e.encode(l.path)
	if err != nil {
		return never(reason.NeverStorable, "document %q cannot be written as JSON: %v", name, err)
	}
	p.docs = append(p.docs, planned{name: name, id: e.id, body: body})
	return nil
}

// checkCommit refuses a commit whose shape the container cannot hold.
func (l layout) checkCommit(c worker.Commit) error {
	if len(c.Documents) == 0 {
		return never(reason.NeverStorable, "the handler returned no document")
	}
	if err := checkID(c.DocumentID); err != nil {
		return never(reason.NeverStorable, "the document id %q %v", c.DocumentID, err)
	}
	if l.byID() && (len(c.Documents) > 1 || l.markers) {
		return never(reason.NeverStorable, "the message needs %d documents in one transaction, and in a container whose partition "+
			"key is /id every document is alone; use a container with another partition key, such as /pk", len(c.Documents))
	}
	names := map[string]bool{}
	for i, d := range c.Documents {
		switch {
		case i == 0 && d.Name != "":
			return never(reason.NeverStorable, "the first document has the name %q; it must have none, since it is the guard", d.Name)
		case i > 0 && d.Name == "":
			return never(reason.NeverStorable, "document %d has no name; every document but the first needs one", i+1)
		case names[d.Name]:
			return never(reason.NeverStorable, "two documents have the name %q", d.Name)
		case l.markers && d.Name == markerPart:
			return never(reason.NeverStorable, "the name %q belongs to the store's own marker", d.Name)
		}
		names[d.Name] = true
		if err := l.checkType(d.Type); err != nil {
			return err
		}
		if d.TTL > 0 && l.defaultTTL == nil {
			return &worker.MisconfiguredError{
				Cause: fmt.Errorf("cosmosstore: a document of type %q asks for a time to live, and the container ignores it", d.Type),
				Fix:   "Set the container's default time to live to -1 (on, without a default).",
			}
		}
	}
	return nil
}

func (l layout) checkType(name string) error {
	switch {
	case name == "":
		return never(reason.NeverStorable, "a document has no type")
	case len(name) > 128:
		return never(reason.NeverStorable, "the type of a document has %d bytes, and may have 128", len(name))
	case reserved(name), l.markers && name == markerType:
		return never(reason.NeverStorable, "the type %q is reserved; give the document another type", name)
	case name == l.path[0]:
		return &worker.MisconfiguredError{
			Cause: fmt.Errorf("cosmosstore: the partition key path /%s lies inside documents of type %q", strings.Join(l.path, "/"), name),
			Fix:   "Use a container whose partition key path is /pk, or another type.",
		}
	}
	return nil
}

// checkID refuses an id that addresses another resource, or that a gateway would read otherwise than it was meant. The ids
// of package identity pass.
func checkID(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("is empty")
	case id == ".", id == "..":
		return fmt.Errorf("addresses another resource")
	case len(id) > identity.MaxPartID:
		return fmt.Errorf("has %d bytes, and may have %d", len(id), identity.MaxPartID)
	}
	for i := range len(id) {
		if c := id[i]; c <= ' ' || c >= 0x7F || strings.IndexByte(`/\?#%"`, c) >= 0 {
			return fmt.Errorf("holds a character that must be escaped")
		}
	}
	return nil
}

// checkBounds holds the plan against the bounds of the service, before anything is sent: not every emulator does it.
func (p plan) checkBounds() error {
	if len(p.docs) > maxOperations {
		return never(reason.TooLarge, "the message stands for %d documents, and the store takes %d in one transaction", len(p.docs), maxOperations)
	}
	total := 2
	for _, d := range p.docs {
		if n := len(d.body) + systemBytes; n > maxBytes {
			return never(reason.TooLarge, "document %q would have %d bytes, and the store takes %d", d.name, n, maxBytes)
		}
		total += batchOverhead + escapedLength(d.body)
	}
	if len(p.docs) > 1 && total > maxBytes {
		return never(reason.TooLarge, "the %d documents of the message would be a request of %d bytes, and the store takes %d",
			len(p.docs), total, maxBytes)
	}
	return nil
}

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
