package cosmosdb

import (
	"net/http"

	"github.com/orderworker/orderworker/testenv/cosmosdb/internal/jsondoc"
)

// rangeID is the id of the only partition key range that a container has.
const rangeID = "0"

// rangesETag never changes, since ranges never split here.
const rangesETag = `"1"`

// readRanges lists the partition key ranges. A client asks again with the ETag until it is answered 304.
func (a *Account) readRanges(q *request) reply {
	c := a.findContainer(q.database(), q.container())
	switch {
	case c == nil:
		return refuse(http.StatusNotFound, substatusOwnerMissing, "the container "+q.entity()+" does not exist; create it first")
	case q.method != http.MethodGet:
		return refuse(http.StatusMethodNotAllowed, 0, q.method+" is not allowed on partition key ranges")
	case q.header.Get("If-None-Match") == rangesETag:
		return reply{status: http.StatusNotModified, etag: rangesETag, charge: chargeFeed}
	}
	o := jsondoc.NewObject()
	o.Set("_rid", c.rid+"-range")
	o.Set("id", rangeID)
	o.Set("_etag", rangesETag)
	o.Set("minInclusive", "")
	o.Set("maxExclusive", "FF")
	o.Set("ridPrefix", 0.0)
	o.Set("_self", "dbs/"+c.database.rid+"/colls/"+c.rid+"/pkranges/"+rangeID+"/")
	o.Set("throughputFraction", 1.0)
	o.Set("status", "online")
	o.Set("parents", []any{})
	ts, _ := c.props.Get("_ts")
	o.Set("_ts", ts)
	r := reply{status: http.StatusOK, etag: rangesETag, charge: chargeFeed}
	r.body = feedBody(c.rid, "PartitionKeyRanges", []any{o})
	return r
}

// feedBody is the envelope of a list.
func feedBody(rid, member string, list []any) []byte {
	o := jsondoc.NewObject()
	o.Set("_rid", rid)
	o.Set(member, list)
	o.Set("_count", float64(len(list)))
	return jsondoc.Encode(o)
}
