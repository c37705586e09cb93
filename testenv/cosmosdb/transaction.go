package cosmosdb

import (
	"net/http"
	"time"

	"github.com/orderworker/orderworker/testenv/cosmosdb/internal/jsondoc"
	"github.com/orderworker/orderworker/testenv/history"
)

// transaction is a set of writes to one logical partition that happen together or not at all. The account's lock is held
// from its begin to its commit.
type transaction struct {
	account   *Account
	container *container
	key       partitionKey
	now       time.Time
	pending   []*version
}

func (a *Account) begin(c *container, key partitionKey, now time.Time) *transaction {
	return &transaction{account: a, container: c, key: key, now: now}
}

// head returns the newest version of a document in the transaction's eyes, dead or alive, or nil.
func (t *transaction) head(id string) *version {
	for i := len(t.pending) - 1; i >= 0; i-- {
		if t.pending[i].id == id {
			return t.pending[i]
		}
	}
	return t.container.documents[documentID{t.key.String(), id}]
}

// live returns the version of a document that exists now, or nil.
func (t *transaction) live(id string) *version {
	v := t.head(id)
	if v == nil || v.deleted {
		return nil
	}
	if t.container.def.expired(v, t.now) {
		t.account.noteExpiry(t.container, v)
		return nil
	}
	return v
}

// blocked reports whether an expired document still blocks a new one.
func (t *transaction) blocked(id string) bool {
	v := t.head(id)
	return t.account.opts.ExpiredBlocksCreate && v != nil && !v.deleted && t.live(id) == nil
}

// write adds a version made of doc, to which it adds the system properties. old is the document that it replaces, or nil.
func (t *transaction) write(id string, doc *jsondoc.Object, old *version) *version {
	v := &version{id: id, key: t.key, etag: t.account.nextETagLocked(), ts: t.now.Unix()}
	if old != nil {
		v.seq = old.seq
	} else {
		t.container.created++
		v.seq = t.container.created
	}
	rid := resourceID(t.container.database.number, t.container.number, v.seq)
	doc.Set("_rid", rid)
	doc.Set("_self", "dbs/"+t.container.database.rid+"/colls/"+t.container.rid+"/docs/"+rid+"/")
	doc.Set("_etag", v.etag)
	doc.Set("_attachments", "attachments/")
	doc.Set("_ts", float64(v.ts))
	v.raw, v.terms = jsondoc.Encode(doc), terms(doc)
	if own, ok := doc.Get("ttl"); ok {
		if ttl, err := readTTL(own); err == nil {
			v.ttl = &ttl
		}
	}
	t.pending = append(t.pending, v)
	return v
}

// remove adds the end of a document.
func (t *transaction) remove(old *version) {
	t.pending = append(t.pending, &version{id: old.id, key: old.key, seq: old.seq, ts: t.now.Unix(), deleted: true})
}

// commit makes the writes visible, under one log sequence number.
func (t *transaction) commit() {
	if len(t.pending) == 0 {
		return
	}
	c, a := t.container, t.account
	c.lsn++
	a.commits++
	at := commit{lsn: c.lsn, number: a.commits, at: t.now}
	c.commits = append(c.commits, at)
	if len(c.commits) > 2*maxCommits {
		c.commits = append(c.commits[:0], c.commits[len(c.commits)-maxCommits:]...)
	}
	for _, v := range t.pending {
		v.commit = at
		id := v.documentID()
		v.previous = c.documents[id]
		v.forget()
		c.documents[id] = v
	}
}

// forget cuts the chain of older versions.
func (v *version) forget() {
	for range maxVersions {
		if v.previous == nil {
			return
		}
		v = v.previous
	}
	v.previous = nil
}

// noteExpiry tells the history, once, that a document has expired. The service purges later, unseen.
func (a *Account) noteExpiry(c *container, v *version) {
	if v.expiryNoted {
		return
	}
	v.expiryNoted = true
	a.opts.History.Add(history.Event{
		Op: history.ExpireDocument, Entity: c.name(), Key: v.id, Partition: v.key.display(),
		Status: http.StatusNoContent, Effect: true,
	})
}
