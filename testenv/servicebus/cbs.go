package servicebus

import (
	"cmp"
	"crypto/hmac"
	"net/http"
	"strings"
	"time"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

// A grant is a token that a connection has put for a path.
type grant struct {
	rights  Rights
	expires time.Time
	timer   *time.Timer
}

// jwtLife is how long a token of type jwt is taken to be good, whose content is not looked at.
const jwtLife = time.Hour

// putToken handles a request at $cbs.
func (b *Broker) putToken(r *request) {
	name, _ := r.property("name").(string)
	path := audiencePath(name)
	var status reply
	b.perform(step{
		point:  fault.Point{Op: history.PutToken, Key: path},
		link:   r.link,
		do:     func() { status = b.grant(r, name, path) },
		answer: func() { r.answer(status) },
		refuse: func(a fault.Action) { r.answer(plannedReply(a, http.StatusUnauthorized)) },
	})
}

// grant checks a token and remembers what it allows.
func (b *Broker) grant(r *request, audience, path string) reply {
	st := reply{status: http.StatusAccepted, description: "Accepted"}
	rights, expires, problem := b.verify(r, audience)
	if problem != "" {
		st = reply{status: http.StatusUnauthorized, description: problem, condition: amqp.UnauthorizedAccess}
	} else if _, err, loud := b.resolve(path); err != nil && !loud && path != "" {
		st = reply{status: http.StatusNotFound, description: err.Description, condition: amqp.NotFound}
	}
	ev := history.Event{Op: history.PutToken, Entity: path, Status: st.status, Effect: st.status == http.StatusAccepted}
	if !ev.Effect {
		ev.Error = st.description
	} else {
		peerOf(r.link).put(path, rights, expires)
	}
	b.opts.History.Add(ev)
	return st
}

// verify returns what a token allows and until when, or what is wrong with it.
func (b *Broker) verify(r *request, audience string) (Rights, time.Time, string) {
	if op, _ := r.property("operation").(string); op != "put-token" {
		return 0, time.Time{}, "operation " + op + " is not known at $cbs"
	}
	token, _ := r.body.(string)
	kind, _ := r.property("type").(string)
	switch {
	case kind == "jwt" && strings.HasPrefix(token, sasPrefix): // Python announces its signatures so; the service looks at the token
		return verifySAS(token, audience, b.opts.Keys, time.Now())
	case kind == "jwt" && !b.opts.AcceptJWT:
		return 0, time.Time{}, "InvalidToken: tokens of type jwt are not accepted; set AcceptJWT"
	case kind == "jwt" && token == "":
		return 0, time.Time{}, "InvalidToken: the token is empty"
	case kind == "jwt":
		return Manage, time.Now().Add(jwtLife), ""
	case kind == "servicebus.windows.net:sastoken":
		return verifySAS(token, audience, b.opts.Keys, time.Now())
	}
	return 0, time.Time{}, "InvalidToken: type " + kind + " is not known"
}

// admitKey lets a connection do what a key allows that the client showed by SASL PLAIN, for as long as the connection lives.
// With a wrong key it may do nothing.
func (b *Broker) admitKey(c *amqp.Conn) {
	name, secret := c.Credentials()
	for _, k := range b.opts.Keys {
		if k.Name == name && hmac.Equal([]byte(k.Secret), []byte(secret)) {
			c.Data.(*peer).put("", k.Rights, time.Now().Add(plainLife))
		}
	}
}

// plainLife is longer than any connection.
const plainLife = 365 * 24 * time.Hour

// audiencePath returns the lower-case path of an audience like amqps://host/queue.
func audiencePath(audience string) string {
	_, rest, ok := strings.Cut(audience, "://")
	if !ok {
		rest = audience
	}
	_, path, _ := strings.Cut(rest, "/")
	return lower(path)
}

// put remembers a grant, and ends what it allows when it expires without having been renewed.
func (p *peer) put(path string, rights Rights, expires time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	if old := p.grants[path]; old != nil {
		old.timer.Stop()
	}
	g := &grant{rights: rights, expires: expires}
	g.timer = time.AfterFunc(max(0, time.Until(expires)), func() { p.expire(path, g) })
	p.grants[path] = g
}

// expire detaches the links that only an expired grant allowed.
func (p *peer) expire(path string, g *grant) {
	p.mu.Lock()
	if p.grants[path] == g {
		delete(p.grants, path)
	}
	p.mu.Unlock()
	below := strings.TrimSuffix(path, managementSuffix)
	orphans := p.links(func(_ *amqp.Link, n *node) bool { return n.kind != nodeCBS && covers(below, n.path) })
	for _, l := range orphans {
		n := nodeOf(l)
		if p.authorize(n, 0) != nil {
			l.Detach(amqp.Errorf(amqp.UnauthorizedAccess, "ExpiredToken: The token is expired. Entity: %s.", n.path))
		}
	}
}

// covers reports whether a grant for a path is one for another path below it too.
func covers(granted, path string) bool {
	return granted == "" || path == granted || strings.HasPrefix(path, granted+"/")
}

// authorize says why a connection may not do something at a node.
func (p *peer) authorize(n *node, need Rights) *amqp.Error {
	var have Rights
	known := false
	now := time.Now()
	p.mu.Lock()
	for path, g := range p.grants {
		granted := strings.TrimSuffix(path, managementSuffix)
		if g.expires.After(now) && (covers(path, n.path) || n.kind == nodeManagement && covers(granted, n.path)) {
			have |= g.rights
			known = true
		}
	}
	p.mu.Unlock()
	if !known {
		return amqp.Errorf(amqp.UnauthorizedAccess, "Unauthorized access. No valid token was put for %s.", n.path)
	}
	have &= n.store.entity.allowed()
	if have&need != need {
		return amqp.Errorf(amqp.UnauthorizedAccess, "Unauthorized access. '%s' claim(s) are required to perform this operation. Resource: %s.", claimName(need), n.path)
	}
	return nil
}

func claimName(r Rights) string {
	return map[Rights]string{Listen: "Listen", Send: "Send"}[r]
}

func (e *entity) allowed() Rights {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rights
}

func plannedReply(a fault.Action, status int) reply {
	return reply{status: cmp.Or(a.Status, status), description: cmp.Or(a.Body, "planned fault"), condition: a.Condition}
}
