package cosmosdb

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/orderworker/orderworker/testenv/cosmosdb/internal/jsondoc"
)

// readAccount describes the account. Every region has the same address.
func (a *Account) readAccount(q *request) reply {
	if q.method != http.MethodGet {
		return refuse(http.StatusMethodNotAllowed, 0, q.method+" is not allowed on an account")
	}
	host := q.host
	if a.opts.AdvertisedHost != "" && !q.compute {
		host = a.opts.AdvertisedHost
	}
	region := func(name string) any {
		o := jsondoc.NewObject()
		o.Set("name", name)
		o.Set("databaseAccountEndpoint", q.scheme+"://"+host+"/")
		return o
	}
	var readable, writable []any
	for i, name := range a.regions {
		readable = append(readable, region(name))
		if i == 0 || a.multiWrite {
			writable = append(writable, region(name))
		}
	}
	policy := jsondoc.NewObject()
	policy.Set("defaultConsistencyLevel", a.opts.Consistency)
	o := jsondoc.NewObject()
	o.Set("_self", "")
	o.Set("id", a.opts.Name)
	o.Set("_rid", a.opts.Name+".documents.azure.com")
	o.Set("media", "//media/")
	o.Set("addresses", "//addresses/")
	o.Set("_dbs", "//dbs/")
	o.Set("writableLocations", writable)
	o.Set("readableLocations", readable)
	o.Set("enableMultipleWriteLocations", a.multiWrite)
	o.Set("userConsistencyPolicy", policy)
	r := answer(http.StatusOK, o)
	r.charge = 0
	return r
}

// serveManagement handles databases, containers and throughput. Does: create, read, replace of containers and offers,
// delete, the queries of azcosmos. Does not: users, permissions, stored procedures.
func (a *Account) serveManagement(q *request) reply {
	if q.byToken && (q.method != http.MethodGet && !q.isQuery()) {
		return refuse(http.StatusForbidden, substatusControlPlaneToken, "a Microsoft Entra ID token gives no right to manage databases and containers")
	}
	r := a.manage(q)
	if !r.failed() {
		r.charge = chargeManage
	}
	return r
}

func (a *Account) manage(q *request) reply {
	switch {
	case q.resource == offerFeed || q.resource == offerResource:
		return a.serveOffers(q)
	case (q.isQuery() || q.method == http.MethodGet) && (q.resource == databaseFeed || q.resource == containerFeed):
		return a.queryManagement(q)
	case q.resource == databaseFeed && q.method == http.MethodPost:
		return a.createDatabase(q)
	case q.resource == databaseResource && q.method == http.MethodGet:
		return a.onDatabase(q, func(d *database) reply { return answer(http.StatusOK, d.props) })
	case q.resource == databaseResource && q.method == http.MethodDelete:
		return a.onDatabase(q, a.deleteDatabase)
	case q.resource == containerFeed && q.method == http.MethodPost:
		return a.onDatabase(q, func(d *database) reply { return a.createContainer(q, d) })
	case q.resource == containerResource && q.method == http.MethodGet:
		return a.onContainer(q, func(c *container) reply { return answer(http.StatusOK, c.props) })
	case q.resource == containerResource && q.method == http.MethodPut:
		return a.onContainer(q, func(c *container) reply { return a.replaceContainer(q, c) })
	case q.resource == containerResource && q.method == http.MethodDelete:
		return a.onContainer(q, a.deleteContainer)
	default:
		return a.refuseLocked(q, "this operation on "+q.path)
	}
}

func (a *Account) onDatabase(q *request, f func(*database) reply) reply {
	d := a.findDatabase(q.database())
	if d == nil {
		return refuse(http.StatusNotFound, 0, fmt.Sprintf("the database %q does not exist", q.database()))
	}
	if r := stale(q, d.props); r != nil {
		return *r
	}
	return f(d)
}

func (a *Account) onContainer(q *request, f func(*container) reply) reply {
	c := a.findContainer(q.database(), q.container())
	if c == nil {
		sub := 0
		if a.findDatabase(q.database()) == nil {
			sub = substatusOwnerMissing
		}
		return refuse(http.StatusNotFound, sub, fmt.Sprintf("the container %q does not exist", q.entity()))
	}
	if r := stale(q, c.props); r != nil {
		return *r
	}
	return f(c)
}

// stale holds If-Match and If-None-Match against a resource.
func stale(q *request, props *jsondoc.Object) *reply {
	etag, _ := props.Text("_etag")
	if m := q.header.Get("If-Match"); m != "" && m != "*" && m != etag {
		r := refuse(http.StatusPreconditionFailed, 0, "the resource has another ETag than If-Match")
		return &r
	}
	if q.method == http.MethodGet && q.header.Get("If-None-Match") == etag {
		return &reply{status: http.StatusNotModified, etag: etag}
	}
	return nil
}

func (a *Account) createDatabase(q *request) reply {
	props, id, r := readProperties(q)
	if r != nil {
		return *r
	}
	if a.findDatabase(id) != nil {
		return refuse(http.StatusConflict, 0, fmt.Sprintf("the database %q already exists", id))
	}
	o, r := readOffer(q)
	if r != nil {
		return *r
	}
	d := a.addDatabase(props, id)
	a.attachOffer(&d.offer, o, d.rid, "dbs/"+d.rid+"/")
	return answer(http.StatusCreated, d.props)
}

func (a *Account) addDatabase(props *jsondoc.Object, id string) *database {
	a.rids++
	d := &database{id: id, number: a.rids, rid: resourceID(a.rids), props: props}
	a.stamp(props, d.rid, "dbs/"+d.rid+"/")
	props.Set("_colls", "colls/")
	props.Set("_users", "users/")
	a.databases = append(a.databases, d)
	return d
}

func (a *Account) deleteDatabase(d *database) reply {
	a.databases = slices.DeleteFunc(a.databases, func(x *database) bool { return x == d })
	return reply{status: http.StatusNoContent}
}

func (a *Account) createContainer(q *request, d *database) reply {
	props, id, r := readProperties(q)
	if r != nil {
		return *r
	}
	if a.findContainer(d.id, id) != nil {
		return refuse(http.StatusConflict, 0, fmt.Sprintf("the container %q already exists", d.id+"/"+id))
	}
	def, err := readDefinition(props)
	if err != nil {
		return refuse(http.StatusBadRequest, 0, err.Error())
	}
	o, r := readOffer(q)
	if r != nil {
		return *r
	}
	if o == nil && d.offer == nil {
		o = manualThroughput(defaultThroughput)
	}
	fillDefinition(props)
	c := a.addContainer(d, props, id, def)
	a.attachOffer(&c.offer, o, c.rid, "dbs/"+d.rid+"/colls/"+c.rid+"/")
	return answer(http.StatusCreated, c.props)
}

func (a *Account) addContainer(d *database, props *jsondoc.Object, id string, def definition) *container {
	a.rids++
	c := &container{id: id, number: a.rids, rid: resourceID(d.number, a.rids), database: d, props: props, def: def,
		documents: map[documentID]*version{}}
	a.stamp(props, c.rid, "dbs/"+d.rid+"/colls/"+c.rid+"/")
	props.Set("_docs", "docs/")
	props.Set("_sprocs", "sprocs/")
	props.Set("_triggers", "triggers/")
	props.Set("_udfs", "udfs/")
	props.Set("_conflicts", "conflicts/")
	d.containers = append(d.containers, c)
	return c
}

// replaceContainer changes what may be changed: not the partition key, and not the unique keys.
func (a *Account) replaceContainer(q *request, c *container) reply {
	props, id, r := readProperties(q)
	if r != nil {
		return *r
	}
	def, err := readDefinition(props)
	switch {
	case err != nil:
		return refuse(http.StatusBadRequest, 0, err.Error())
	case id != c.id:
		return refuse(http.StatusBadRequest, 0, "the id of a container cannot be changed")
	case fmt.Sprint(def.keyPaths, def.keyVersion) != fmt.Sprint(c.def.keyPaths, c.def.keyVersion):
		return refuse(http.StatusBadRequest, 0, "the partition key of a container cannot be changed")
	case fmt.Sprint(def.uniqueKeys) != fmt.Sprint(c.def.uniqueKeys):
		return refuse(http.StatusBadRequest, 0, "the unique keys of a container cannot be changed")
	}
	fillDefinition(props)
	a.stamp(props, c.rid, "dbs/"+c.database.rid+"/colls/"+c.rid+"/")
	c.props, c.def = props, def
	return answer(http.StatusOK, c.props)
}

func (a *Account) deleteContainer(c *container) reply {
	c.database.containers = slices.DeleteFunc(c.database.containers, func(x *container) bool { return x == c })
	return reply{status: http.StatusNoContent}
}

// stamp sets the system properties of a resource.
func (a *Account) stamp(props *jsondoc.Object, rid, self string) {
	props.Set("_rid", rid)
	props.Set("_self", self)
	props.Set("_etag", a.nextETagLocked())
	props.Set("_ts", float64(time.Now().Unix()))
}

// readProperties reads a body that describes a database or a container. Members that the account does not know are kept.
func readProperties(q *request) (*jsondoc.Object, string, *reply) {
	props, err := jsondoc.ParseObject(q.body)
	if err != nil {
		r := refuse(http.StatusBadRequest, 0, "the body is not valid: "+err.Error())
		return nil, "", &r
	}
	id, ok := props.Text("id")
	if !ok || id == "" || len(id) > 255 {
		r := refuse(http.StatusBadRequest, 0, "the resource needs an id, a string of 1 to 255 bytes")
		return nil, "", &r
	}
	return props, id, nil
}
