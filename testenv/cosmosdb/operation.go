package cosmosdb

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/orderworker/orderworker/testenv/cosmosdb/internal/jsondoc"
)

// maxItem is the size of the largest document and of the largest request, in bytes.
const maxItem = 2 << 20

// maxID is the length of the longest document id, in bytes.
const maxID = 1023

// operation is one thing to do with one document, alone or in a batch.
type operation struct {
	kind    string // one of the words of the batch protocol: Create, Upsert, Replace, Patch, Delete, Read
	id      string // of Replace, Patch, Delete and Read
	ifMatch string
	// ifNoneMatch is of Read, which then answers 304.
	ifNoneMatch string
	body        []byte
	doc         document // of Create, Upsert and Replace
	// key is the text of the partition key, which the operations of a bulk have each for itself.
	key string
}

// bringsDocument reports whether the body of the operation is a whole document.
func (op operation) bringsDocument() bool {
	return op.kind == "Create" || op.kind == "Upsert" || op.kind == "Replace"
}

// result is what became of an operation.
type result struct {
	status    int
	substatus int
	message   string
	charge    float64
	etag      string
	body      []byte
}

func failure(status, substatus int, charge float64, format string, args ...any) result {
	return result{status: status, substatus: substatus, charge: charge, message: fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) result {
	return failure(http.StatusBadRequest, 0, 1, format, args...)
}

// apply carries out one operation within the transaction. After a failed operation the transaction must not be committed.
func (t *transaction) apply(op operation) result {
	switch op.kind {
	case "Create":
		return t.create(op)
	case "Upsert":
		return t.upsert(op)
	case "Replace":
		return t.replace(op)
	case "Patch":
		return t.patch(op)
	case "Delete":
		return t.delete(op)
	case "Read":
		return t.read(op)
	default:
		return badRequest("unknown operation type %q", op.kind)
	}
}

func (t *transaction) create(op operation) result {
	doc, id, refused := t.admit(op.doc)
	if refused != nil {
		return *refused
	}
	if t.live(id) != nil || t.blocked(id) {
		return failure(http.StatusConflict, 0, chargeConflict, "a document with this id and partition key already exists")
	}
	return t.put(id, doc, nil, http.StatusCreated)
}

// upsert creates or replaces. A condition on a document that does not exist is not looked at; this is how clients
// describe the service, and was not tried.
func (t *transaction) upsert(op operation) result {
	doc, id, refused := t.admit(op.doc)
	if refused != nil {
		return *refused
	}
	old := t.live(id)
	if old == nil {
		return t.put(id, doc, nil, http.StatusCreated)
	}
	if refused := matches(op, old); refused != nil {
		return *refused
	}
	return t.put(id, doc, old, http.StatusOK)
}

func (t *transaction) replace(op operation) result {
	doc, id, refused := t.admit(op.doc)
	if refused != nil {
		return *refused
	}
	old, refused := t.target(op)
	if refused != nil {
		return *refused
	}
	if id != op.id {
		return t.rename(id, doc, old)
	}
	return t.put(id, doc, old, http.StatusOK)
}

// rename is a replace whose document has another id than the request: the service moves the document to that id, unless
// one has it. Clients of several languages were seen to rely on it.
func (t *transaction) rename(id string, doc *jsondoc.Object, old *version) result {
	if t.live(id) != nil || t.blocked(id) {
		return failure(http.StatusConflict, 0, chargeConflict, "a document with this id and partition key already exists")
	}
	t.remove(old)
	return t.put(id, doc, old, http.StatusOK)
}

func (t *transaction) patch(op operation) result {
	p, err := readPatch(op.body)
	if err != nil {
		return badRequest("%v", err)
	}
	old, refused := t.target(op)
	if refused != nil {
		return *refused
	}
	if ok, err := p.applies(old.document()); err != nil {
		return badRequest("%v", err)
	} else if !ok {
		return failure(http.StatusPreconditionFailed, 0, chargeConflict, "the condition of the patch is not met")
	}
	doc := old.document().Clone()
	for _, step := range p.steps {
		if err := step.apply(doc); err != nil {
			return badRequest("%v", err)
		}
	}
	doc, _, refused = t.admit(readDocument(jsondoc.Encode(doc)))
	if refused != nil {
		return *refused
	}
	return t.put(op.id, doc, old, http.StatusOK)
}

func (t *transaction) delete(op operation) result {
	old, refused := t.target(op)
	if refused != nil {
		return *refused
	}
	t.remove(old)
	return result{status: http.StatusNoContent, charge: createCharge(t.container.def, old)}
}

func (t *transaction) read(op operation) result {
	v := t.live(op.id)
	if v == nil {
		return notFound()
	}
	if op.ifNoneMatch != "" && (op.ifNoneMatch == "*" || op.ifNoneMatch == v.etag) {
		return result{status: http.StatusNotModified, charge: t.account.readCharge(0), etag: v.etag}
	}
	return result{status: http.StatusOK, charge: t.account.readCharge(len(v.raw)), etag: v.etag, body: v.raw}
}

func notFound() result {
	return failure(http.StatusNotFound, 0, chargeFailedRead, "no document has this id in this partition")
}

// target finds the existing document of an operation and checks its condition.
func (t *transaction) target(op operation) (*version, *result) {
	old := t.live(op.id)
	if old == nil {
		r := notFound()
		return nil, &r
	}
	return old, matches(op, old)
}

func matches(op operation, old *version) *result {
	if op.ifMatch == "" || op.ifMatch == "*" || op.ifMatch == old.etag {
		return nil
	}
	r := failure(http.StatusPreconditionFailed, 0, chargeConflict, "the document has another ETag than If-Match")
	return &r
}

// put writes a document unless it breaks a unique key.
func (t *transaction) put(id string, doc *jsondoc.Object, old *version, status int) result {
	if t.breaksUniqueKey(id, doc) {
		return failure(http.StatusConflict, 0, chargeConflict, "unique index constraint violation")
	}
	v := t.write(id, doc, old)
	charge := createCharge(t.container.def, v)
	if old != nil {
		charge = replaceCharge(t.container.def, v)
	}
	return result{status: status, charge: charge, etag: v.etag, body: v.raw}
}

// admit reads a document and holds it against everything that can be said without looking at other documents.
func (t *transaction) admit(d document) (*jsondoc.Object, string, *result) {
	no := func(r result) (*jsondoc.Object, string, *result) { return nil, "", &r }
	if d.size > maxItem {
		return no(failure(http.StatusRequestEntityTooLarge, 0, 1, "%v", d.err))
	}
	doc, err := d.object, d.err
	if errors.Is(err, jsondoc.ErrTooDeep) {
		return no(badRequest("the document is nested more than %d levels", jsondoc.MaxDepth))
	}
	if err != nil {
		return no(badRequest("the document is not valid: %v", err))
	}
	id, ok := doc.Text("id")
	if !ok || id == "" || len(id) > maxID {
		return no(badRequest("the document needs an id, a string of 1 to %d bytes", maxID))
	}
	if ttl, ok := doc.Get("ttl"); ok {
		if _, err := readTTL(ttl); err != nil {
			return no(badRequest("%v", err))
		}
	}
	key := t.container.def.keyOf(doc)
	if key.String() != t.key.String() {
		return no(failure(http.StatusBadRequest, substatusKeyMismatch, 1, "the partition key of the request is not that of the document"))
	}
	if err := key.checkSize(); err != nil {
		return no(badRequest("%v", err))
	}
	return doc, id, nil
}

// breaksUniqueKey reports whether another document of the logical partition has the same values at the paths of a unique
// key. A missing value counts as null.
func (t *transaction) breaksUniqueKey(id string, doc *jsondoc.Object) bool {
	if len(t.container.def.uniqueKeys) == 0 {
		return false
	}
	self := documentID{t.key.String(), id}
	neighbours := t.neighbours()
	for _, paths := range t.container.def.uniqueKeys {
		want := uniqueValue(doc, paths)
		for _, other := range neighbours {
			if other.documentID() != self && uniqueValue(other.document(), paths) == want {
				return true
			}
		}
	}
	return false
}

// neighbours returns the live documents of the logical partition as the transaction sees them.
func (t *transaction) neighbours() []*version {
	def := t.container.def
	here := def.logicalPartition(t.key)
	ours := map[string]bool{}
	var list []*version
	for id, head := range t.container.documents {
		switch {
		case id.partition == t.key.String():
			ours[id.id] = true
		case def.logicalPartition(head.key) == here && !head.deleted && !def.expired(head, t.now):
			list = append(list, head)
		}
	}
	for _, v := range t.pending {
		ours[v.id] = true
	}
	for id := range ours {
		if v := t.live(id); v != nil {
			list = append(list, v)
		}
	}
	return list
}

func uniqueValue(doc *jsondoc.Object, paths [][]string) string {
	values := make([]any, len(paths))
	for i, p := range paths {
		values[i], _ = jsondoc.At(doc, p)
	}
	return jsondoc.String(values)
}
