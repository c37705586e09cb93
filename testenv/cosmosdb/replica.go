package cosmosdb

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// consistencyLevels from strong to weak.
var consistencyLevels = []string{"Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual"}

// Lag describes a replica that is behind the writes. Point reads and queries without a session token are served by it;
// those with a token find a replica that has what the token asks for. Batches are always served by the primary.
type Lag struct {
	// By is how long a write takes to reach the replica.
	By time.Duration
	// Frozen is a replica that sees nothing of what is written after the call of [Account.SetLag].
	Frozen bool
	// Tokens lets this replica serve reads with a session token too: where it has not reached the token the answer is
	// 404/1002. The service waits a little before it gives that answer, the account does not.
	Tokens bool
}

// SetLag makes the reading replica lag from now on. The zero Lag lets it catch up.
func (a *Account) SetLag(l Lag) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lag, a.frozenAt = l, a.commits
}

// view is what a replica has of a container.
type view struct {
	lsn  int64
	has  func(*version) bool // nil for everything
	now  time.Time
	lost *reply // the replica cannot serve the request
}

// look chooses the replica that serves a read. A lagging one is at least one commit of the container behind.
func (a *Account) look(q *request, c *container, head *version, now time.Time) view {
	full := view{lsn: c.lsn, now: now}
	token, asked, ok := sessionLSN(q.header.Get("x-ms-session-token"))
	if !ok {
		r := refuse(http.StatusBadRequest, 0, "the session token is malformed")
		return view{lost: &r}
	}
	if token > c.lsn {
		return unreached(c.lsn)
	}
	v := a.behind(q, c, head, now)
	switch {
	case v.has == nil:
		return full
	case asked && token > v.lsn && (a.lag.Tokens || q.lagged):
		return unreached(v.lsn)
	case asked && !a.lag.Tokens && !q.lagged:
		return full
	}
	return v
}

// unreached is the answer of a replica that has not reached the token. It tells how far the replica is.
func unreached(lsn int64) view {
	r := refuse(http.StatusNotFound, substatusSessionUnreached, "the read session is not available for the session token")
	r.session = sessionToken(lsn)
	return view{lost: &r}
}

// behind returns the view of the lagging replica. A view without has is not behind.
func (a *Account) behind(q *request, c *container, head *version, now time.Time) view {
	switch {
	case q.lagged && head != nil:
		return view{lsn: head.lsn - 1, now: now, has: func(v *version) bool { return v.lsn < head.lsn }}
	case q.lagged:
		return view{lsn: c.lsn - 1, now: now, has: func(v *version) bool { return v.lsn < c.lsn }}
	case a.lag.Frozen:
		at := a.frozenAt
		return view{lsn: c.lsnWhere(func(m commit) bool { return m.number <= at }), now: now,
			has: func(v *version) bool { return v.number <= at }}
	case a.lag.By > 0:
		edge := now.Add(-a.lag.By)
		return view{lsn: c.lsnWhere(func(m commit) bool { return !m.at.After(edge) }), now: now,
			has: func(v *version) bool { return !v.at.After(edge) }}
	}
	return view{}
}

// lsnWhere returns the newest log sequence number whose commit satisfies f.
func (c *container) lsnWhere(f func(commit) bool) int64 {
	for _, m := range slices.Backward(c.commits) {
		if f(m) {
			return m.lsn
		}
	}
	return 0
}

// see returns the version of a document in the view, or nil when the view has none or it has expired.
func (a *Account) see(c *container, head *version, w view) *version {
	v := head
	for v != nil && w.has != nil && !w.has(v) {
		v = v.previous
	}
	if v == nil || v.deleted {
		return nil
	}
	if c.def.expired(v, w.now) {
		if v == head {
			a.noteExpiry(c, v)
		}
		return nil
	}
	return v
}

// readDocument is a point read. If-None-Match with the current ETag answers 304.
func (a *Account) readDocument(q *request, c *container, key partitionKey, now time.Time) reply {
	head := c.documents[documentID{key.String(), q.part(5)}]
	w := a.look(q, c, head, now)
	if w.lost != nil {
		return *w.lost
	}
	session := sessionToken(w.lsn)
	v := a.see(c, head, w)
	if v == nil {
		n := notFound()
		r := refuse(n.status, n.substatus, n.message)
		r.charge, r.session = n.charge, session
		return r
	}
	r := reply{status: http.StatusOK, etag: v.etag, session: session, body: v.raw, charge: a.readCharge(len(v.raw))}
	if q.header.Get("If-None-Match") == v.etag {
		r.status, r.body = http.StatusNotModified, nil
	}
	return r
}

// sessionToken writes a session token: the range, and how far it has come.
func sessionToken(lsn int64) string { return rangeID + ":-1#" + strconv.FormatInt(lsn, 10) }

// sessionLSN reads the log sequence number of a session token such as 0:-1#12. asked is false when there is no token.
func sessionLSN(token string) (lsn int64, asked, ok bool) {
	if token == "" {
		return 0, false, true
	}
	rangePart, rest, found := strings.Cut(token, ":")
	if !found || rangePart != rangeID {
		return 0, true, false
	}
	_, number, found := strings.Cut(rest, "#")
	if !found {
		return 0, true, false
	}
	number, _, _ = strings.Cut(number, "#")
	n, err := strconv.ParseInt(number, 10, 64)
	return n, true, err == nil && n >= 0
}

// checkConsistency refuses a request that asks for more consistency than the account has, which is only ever relaxed.
func (a *Account) checkConsistency(q *request) *reply {
	asked := q.header.Get("x-ms-consistency-level")
	if asked == "" {
		return nil
	}
	i, have := slices.Index(consistencyLevels, asked), slices.Index(consistencyLevels, a.opts.Consistency)
	if i < have {
		r := refuse(http.StatusBadRequest, 0, "the consistency level "+asked+" is unknown or stronger than that of the account, "+a.opts.Consistency)
		return &r
	}
	return nil
}
