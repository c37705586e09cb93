package cosmosdb

import (
	"strconv"
	"strings"
)

// nameResources replaces the parts of a path that are _rids by the names of their resources. Clients address a resource so
// when a program hands them a resource instead of its id: its _self is such a path. They sign the last _rid alone, in lower
// case. A path without _rids, or with unknown ones, stays as it is.
func (a *Account) nameResources(q *request) {
	if q.resource < databaseResource || q.resource > rangeFeed {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.findDatabase(q.database()) != nil {
		return
	}
	names, rid := a.namesOf(q)
	if names == nil {
		return
	}
	q.parts, q.rid = names, strings.ToLower(rid)
	if q.resource == documentResource {
		q.key = q.part(5)
	}
}

// namesOf returns the path with names, and the last _rid in it; nil when a _rid is not known.
func (a *Account) namesOf(q *request) (names []string, last string) {
	for _, d := range a.databases {
		if d.rid != q.database() {
			continue
		}
		names, last = append([]string{"dbs", d.id}, q.parts[2:]...), d.rid
		if len(names) < 4 {
			return names, last
		}
		for _, c := range d.containers {
			if c.rid != q.container() {
				continue
			}
			names[3], last = c.id, c.rid
			if q.resource == documentResource {
				names[5], last = c.idOf(q.part(5)), q.part(5)
			}
			return names, last
		}
	}
	return nil, ""
}

// idOf returns the id of the document with a _rid; without one, an id that no document has.
func (c *container) idOf(rid string) string {
	for id, v := range c.documents {
		if !v.deleted && resourceID(c.database.number, c.number, v.seq) == rid {
			return id.id
		}
	}
	return rid
}

// locate adds where the resource is, and how far its container has come. Clients keep session tokens by these headers.
func locate(q *request, r reply, c *container) reply {
	rid, name := c.rid, "dbs/"+c.database.id+"/colls/"+c.id
	if q.resource == containerResource {
		rid, name = c.database.rid, "dbs/"+c.database.id
	}
	return r.with("x-ms-content-path", rid).with("x-ms-alt-content-path", name).with("lsn", strconv.FormatInt(c.lsn, 10))
}
