package cosmosdb

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/orderworker/orderworker/testenv/cosmosdb/internal/jsondoc"
	"github.com/orderworker/orderworker/testenv/history"
)

// ContainerSpec describes a container to be made by [Account.CreateContainer].
type ContainerSpec struct {
	// ID names the container.
	ID string
	// PartitionKey are the paths of the partition key. Defaults to /id.
	PartitionKey []string
	// KeyVersion is the version of the partition key hash. Defaults to 2; version 1 looks at 101 bytes of a key.
	KeyVersion int
	// DefaultTTL is the defaultTtl in seconds: 0 leaves it out, so that nothing ever expires; -1 lets documents
	// expire that have a ttl of their own.
	DefaultTTL int
	// UniqueKeys are lists of paths whose values together are unique in a logical partition.
	UniqueKeys [][]string
	// IndexNothing excludes all properties from indexing, which makes writes cheaper.
	IndexNothing bool
	// Members are further members of the definition as JSON text by name, for whatever the other fields cannot say.
	// They win over the other fields.
	Members map[string]string
}

// Document is a stored document as a test sees it.
type Document struct {
	// ID is the id.
	ID string
	// Partition is the JSON of the partition key value: of the value itself, or of an array of several.
	Partition string
	// ETag is the current ETag, with its quotes.
	ETag string
	// Body is the JSON text as a client would read it, with the system properties.
	Body string
}

// CreateDatabase makes a database without a request. It fails when there is one of this name.
func (a *Account) CreateDatabase(id string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.findDatabase(id) != nil {
		return fmt.Errorf("cosmosdb: the database %q already exists", id)
	}
	props := jsondoc.NewObject()
	props.Set("id", id)
	a.addDatabase(props, id)
	return nil
}

// CreateContainer makes a container without a request, and its database where that is missing. It fails when there is a
// container of this name or the definition is not valid.
func (a *Account) CreateContainer(databaseID string, spec ContainerSpec) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	props, err := spec.properties()
	if err != nil {
		return err
	}
	def, err := readDefinition(props)
	if err != nil {
		return fmt.Errorf("cosmosdb: the container %q: %w", spec.ID, err)
	}
	if a.findContainer(databaseID, spec.ID) != nil {
		return fmt.Errorf("cosmosdb: the container %q already exists", databaseID+"/"+spec.ID)
	}
	d := a.findDatabase(databaseID)
	if d == nil {
		own := jsondoc.NewObject()
		own.Set("id", databaseID)
		d = a.addDatabase(own, databaseID)
	}
	fillDefinition(props)
	c := a.addContainer(d, props, spec.ID, def)
	a.attachOffer(&c.offer, manualThroughput(defaultThroughput), c.rid, "dbs/"+d.rid+"/colls/"+c.rid+"/")
	return nil
}

func (s ContainerSpec) properties() (*jsondoc.Object, error) {
	key, version := s.PartitionKey, s.KeyVersion
	if len(key) == 0 {
		key = []string{"/id"}
	}
	if version == 0 {
		version = 2
	}
	kind := "Hash"
	if len(key) > 1 {
		kind = "MultiHash"
	}
	text := fmt.Sprintf(`{"id":%q,"partitionKey":{"paths":%s,"kind":%q,"version":%d},`+
		`"indexingPolicy":{"indexingMode":"consistent","automatic":true,"includedPaths":[%s],"excludedPaths":[%s]}}`,
		s.ID, stringList(key), kind, version, s.included(), s.excluded())
	props, err := jsondoc.ParseObject([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("cosmosdb: the container %q: %w", s.ID, err)
	}
	if s.DefaultTTL != 0 {
		props.Set("defaultTtl", float64(s.DefaultTTL))
	}
	if len(s.UniqueKeys) > 0 {
		var keys []string
		for _, paths := range s.UniqueKeys {
			keys = append(keys, `{"paths":`+stringList(paths)+`}`)
		}
		unique, err := jsondoc.Parse([]byte(`{"uniqueKeys":[` + strings.Join(keys, ",") + `]}`))
		if err != nil {
			return nil, fmt.Errorf("cosmosdb: the unique keys of %q: %w", s.ID, err)
		}
		props.Set("uniqueKeyPolicy", unique)
	}
	for name, text := range s.Members {
		v, err := jsondoc.Parse([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("cosmosdb: the member %s of %q: %w", name, s.ID, err)
		}
		props.Set(name, v)
	}
	return props, nil
}

func (s ContainerSpec) included() string {
	if s.IndexNothing {
		return ""
	}
	return `{"path":"/*"}`
}

func (s ContainerSpec) excluded() string {
	if s.IndexNothing {
		return `{"path":"/*"}`
	}
	return `{"path":"/\"_etag\"/?"}`
}

func stringList(list []string) string {
	values := make([]any, len(list))
	for i, s := range list {
		values[i] = s
	}
	return jsondoc.String(values)
}

// Seed stores a document, or replaces it, as if a client had, but without faults. The history notes it. The partition key is
// taken from the document. It fails when the service would refuse the document.
func (a *Account) Seed(databaseID, containerID, text string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.findContainer(databaseID, containerID)
	if c == nil {
		return fmt.Errorf("cosmosdb: the container %q does not exist", databaseID+"/"+containerID)
	}
	d := readDocument([]byte(text))
	if d.err != nil {
		return fmt.Errorf("cosmosdb: the seeded document: %w", d.err)
	}
	t := a.begin(c, c.def.keyOf(d.object), time.Now())
	if r := t.apply(operation{kind: "Upsert", doc: d}); r.status >= 400 {
		return fmt.Errorf("cosmosdb: the seeded document: %d: %s", r.status, r.message)
	}
	t.commit()
	writes := t.writes()
	op, status := history.UpsertDocument, http.StatusOK
	if writes[0].Created {
		op, status = history.CreateDocument, http.StatusCreated
	}
	a.opts.History.Add(history.Event{Op: op, Entity: c.name(), Key: writes[0].ID, Partition: t.key.display(),
		Status: status, Effect: true, Note: history.Seeded, Writes: writes})
	return nil
}

// Documents returns the documents of a container that exist now, in order of creation. It sees what the primary has,
// whatever the lag, and returns nothing for a container that does not exist.
func (a *Account) Documents(databaseID, containerID string) []Document {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.findContainer(databaseID, containerID)
	if c == nil {
		return nil
	}
	var list []Document
	for _, v := range a.visible(c, view{lsn: c.lsn, now: time.Now()}) {
		list = append(list, Document{ID: v.id, Partition: v.key.display(), ETag: v.etag, Body: string(v.raw)})
	}
	return list
}

// visible returns the documents of a container in a view, in order of creation.
func (a *Account) visible(c *container, w view) []*version {
	var list []*version
	for _, head := range c.documents {
		if v := a.see(c, head, w); v != nil {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, func(x, y *version) int { return int(x.seq - y.seq) })
	return list
}

// Document returns the oldest document with an id, in whatever partition, and reports whether there is one.
func (a *Account) Document(databaseID, containerID, id string) (Document, bool) {
	for _, d := range a.Documents(databaseID, containerID) {
		if d.ID == id {
			return d, true
		}
	}
	return Document{}, false
}

// Count returns how many documents a container has.
func (a *Account) Count(databaseID, containerID string) int {
	return len(a.Documents(databaseID, containerID))
}

// DeleteDocument removes every document with an id, in whatever partition, without a request, and returns how many.
func (a *Account) DeleteDocument(databaseID, containerID, id string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.findContainer(databaseID, containerID)
	if c == nil {
		return 0
	}
	n, now := 0, time.Now()
	for _, head := range c.documents {
		if head.id != id {
			continue
		}
		t := a.begin(c, head.key, now)
		if old := t.live(id); old != nil {
			t.remove(old)
			t.commit()
			a.opts.History.Add(history.Event{Op: history.DeleteDocument, Entity: c.name(), Key: id,
				Partition: old.key.display(), Status: http.StatusNoContent, Effect: true, Note: "deleted without a request", Writes: t.writes()})
			n++
		}
	}
	return n
}

// Purge removes the documents that have expired, as the service does in the background, and returns how many.
func (a *Account) Purge() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, now := 0, time.Now()
	for _, d := range a.databases {
		for _, c := range d.containers {
			for _, v := range c.documents {
				if !v.deleted && c.def.expired(v, now) {
					a.noteExpiry(c, v)
					t := a.begin(c, v.key, now)
					t.remove(v)
					t.commit()
					n++
				}
			}
		}
	}
	return n
}
