package cosmosdb

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// readChangeFeed answers the latest version of every document that was written after a position, in order of writing, and
// 304 when there is none. Both carry the next position as ETag. Like the service's latest version mode it shows no
// deletes, no expiries and nothing in between; the documents of one batch are never torn apart by a page.
func (a *Account) readChangeFeed(q *request, c *container, key partitionKey) reply {
	if mode := q.header.Get("A-IM"); !strings.EqualFold(mode, "Incremental Feed") {
		return a.refuseLocked(q, "the change feed mode "+mode)
	}
	after, since, refused := feedStart(q, c)
	if refused != nil {
		return *refused
	}
	within, refused := a.readKeyRange(q, c.def)
	if refused != nil {
		return *refused
	}
	var changed []*version
	for _, head := range c.documents {
		if head.lsn > after && head.ts >= since && !head.deleted && head.key.hasPrefix(key) && c.def.inside(head.key, within) && !c.def.expired(head, time.Now()) {
			changed = append(changed, head)
		}
	}
	slices.SortFunc(changed, func(x, y *version) int {
		if x.lsn != y.lsn {
			return int(x.lsn - y.lsn)
		}
		return int(x.seq - y.seq)
	})
	var list []any
	position := c.lsn
	for _, v := range changed {
		if len(list) >= q.maxItems() && v.lsn != position {
			break
		}
		doc := v.document().Clone()
		doc.Set("_lsn", float64(v.lsn))
		list = append(list, doc)
		position = v.lsn
	}
	r := reply{status: http.StatusOK, charge: chargeFeed + chargeQueryPerDoc*float64(len(list))}
	if len(list) == 0 {
		r.status = http.StatusNotModified
	} else {
		if len(list) == len(changed) {
			position = c.lsn
		}
		r.body = feedBody(c.rid, "Documents", list)
	}
	r.etag = `"` + strconv.FormatInt(position, 10) + `"`
	return r
}

// feedStart reads where a feed begins: after the log sequence number of an ETag, at a time in seconds, now, or at the
// beginning. The client writes the time with the zone UTC, where HTTP wants GMT; both are taken.
func feedStart(q *request, c *container) (after, since int64, refused *reply) {
	if s := q.header.Get("If-Modified-Since"); s != "" {
		at, err := time.Parse(time.RFC1123, s)
		if err != nil {
			r := refuse(http.StatusBadRequest, 0, "If-Modified-Since is not a date")
			return 0, 0, &r
		}
		since = at.Unix()
	}
	etag := q.header.Get("If-None-Match")
	switch etag {
	case "":
		return 0, since, nil
	case "*":
		return c.lsn, since, nil
	}
	n, err := strconv.ParseInt(strings.Trim(etag, `"`), 10, 64)
	if err != nil || n < 0 {
		r := refuse(http.StatusBadRequest, 0, "the ETag is not a position in this change feed")
		return 0, 0, &r
	}
	return n, since, nil
}
