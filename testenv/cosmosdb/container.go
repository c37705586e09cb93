package cosmosdb

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/orderworker/orderworker/testenv/cosmosdb/internal/jsondoc"
)

// database is a database and its containers. The account's lock guards it.
type database struct {
	id, rid    string
	number     int64
	props      *jsondoc.Object
	offer      *offer
	containers []*container
}

// container is a container and its documents. The account's lock guards it.
type container struct {
	id, rid  string
	number   int64
	database *database
	props    *jsondoc.Object
	def      definition
	offer    *offer

	documents map[documentID]*version // the newest version of each, deleted ones included
	lsn       int64                   // counts committed transactions
	created   int64                   // counts documents ever created
	commits   []commit                // the newest commits, in order
}

// documentID identifies a document in a container.
type documentID struct{ partition, id string }

// commit tells when a transaction was committed: by the log sequence number of its container, by the count of the
// account, and by the clock.
type commit struct {
	lsn, number int64
	at          time.Time
}

// version is one state of a document, and never changes but for its links.
type version struct {
	id   string
	key  partitionKey
	raw  []byte // the encoded document with its system properties
	etag string
	ts   int64 // seconds since 1970, as in _ts
	seq  int64 // in order of creation; replacing a document keeps it
	commit
	deleted bool
	ttl     *int64 // its own time to live in seconds
	terms   int    // the values that an index holds

	read     *jsondoc.Object // by document, once
	previous *version
	// expiryNoted tells that the history has been told of the expiry.
	expiryNoted bool
}

// maxVersions bounds how many versions of a document a lagging replica can show.
const maxVersions = 32

// maxCommits bounds how many commits a lagging replica can be behind.
const maxCommits = 4096

// document returns the document for those who look into it, which must not change it. Most documents are written and nobody
// ever does, so it is decoded when the first one asks. The account's lock is held.
func (v *version) document() *jsondoc.Object {
	if v.read == nil {
		v.read, _ = jsondoc.ParseObject(v.raw) // it was encoded here
	}
	return v.read
}

func (v *version) documentID() documentID { return documentID{v.key.String(), v.id} }

// expired reports whether the time to live of a version has ended. Every write starts it again.
func (d definition) expired(v *version, now time.Time) bool {
	if d.ttl == nil {
		return false
	}
	ttl := *d.ttl
	if v.ttl != nil {
		ttl = *v.ttl
	}
	return ttl > 0 && now.Unix() >= v.ts+ttl
}

// session is the session token after the newest commit.
func (c *container) session() string { return sessionToken(c.lsn) }

func (c *container) name() string { return c.database.id + "/" + c.id }

func (a *Account) findDatabase(id string) *database {
	i := slices.IndexFunc(a.databases, func(d *database) bool { return d.id == id })
	if i < 0 {
		return nil
	}
	return a.databases[i]
}

func (a *Account) findContainer(databaseID, id string) *container {
	d := a.findDatabase(databaseID)
	if d == nil {
		return nil
	}
	i := slices.IndexFunc(d.containers, func(c *container) bool { return c.id == id })
	if i < 0 {
		return nil
	}
	return d.containers[i]
}

// nextETagLocked returns an ETag that no resource of the account has had.
func (a *Account) nextETagLocked() string {
	a.etags++
	return fmt.Sprintf(`"%08x-0000-0700-0000-%012x"`, a.etags, a.etags)
}

// resourceID builds a _rid from counters, in the form of the service, which its clients take apart: base64 with '-' for
// '/', of 4 bytes for a database, 4 more with the highest bit set for a container, and 8 more for a document, whose last
// byte has nothing in its upper half (ResourceId of the clients).
func resourceID(levels ...int64) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(levels[0]))
	if len(levels) > 1 {
		b = binary.BigEndian.AppendUint32(b, uint32(levels[1])|1<<31)
	}
	if len(levels) > 2 {
		b = binary.LittleEndian.AppendUint64(b, uint64(levels[2]))
	}
	return strings.ReplaceAll(base64.StdEncoding.EncodeToString(b), "/", "-")
}
