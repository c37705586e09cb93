package servicebus

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

// adminMissingLocked reports whether a request is about one entity that does not exist.
func (b *Broker) adminMissingLocked(a adminRequest) bool {
	return a.kind == adminEntity && b.namespace.entities[a.path()] == nil
}

// adminGetLocked returns an entity, a rule, or a list of them.
func (b *Broker) adminGetLocked(a adminRequest) adminReply {
	e := b.namespace.entities[a.path()]
	switch {
	case a.kind == adminNamespace:
		return adminReply{status: http.StatusOK, body: b.namespaceEntry()}
	case a.kind == adminRule && e != nil && a.list:
		return feed("Rules", a, e.rules, func(r *rule) string { return b.ruleEntry(e, r) })
	case a.kind == adminRule && e != nil && e.rules.find(a.rule) >= 0:
		return adminReply{status: http.StatusOK, body: b.ruleEntry(e, e.rules[e.rules.find(a.rule)])}
	case a.kind == adminSubscription && a.list:
		if topic := b.namespace.entities[lower(a.parent)]; topic != nil {
			return feed("Subscriptions", a, topic.subscriptions, b.entityEntryLocked)
		}
		return a.notFound()
	case a.list && a.kind != adminRule:
		return feed(string(a.kind)+"s", a, b.entitiesLocked(map[adminKind]kind{adminQueue: kindQueue, adminTopic: kindTopic}[a.kind]), b.entityEntryLocked)
	case a.kind == adminEntity && (e == nil || e.kind == kindSubscription):
		return feed[*entity]("Publicly Listed Services", a, nil, nil) // the service answers so, and not with 404
	case a.kind != adminRule && e != nil:
		return adminReply{status: http.StatusOK, body: b.entityEntryLocked(e)}
	}
	return a.notFound()
}

func (a adminRequest) notFound() adminReply {
	return adminError(http.StatusNotFound, "SubCode=40400. Not Found. The %s '%s' could not be found.", a.kind, strings.Trim(a.path()+"/"+a.rule, "/"))
}

// entitiesLocked returns the entities of a kind in the order of their paths.
func (b *Broker) entitiesLocked(k kind) []*entity {
	return slices.DeleteFunc(b.namespace.allLocked(), func(e *entity) bool { return e.kind != k })
}

// adminPutLocked creates or updates an entity or a rule.
func (b *Broker) adminPutLocked(a adminRequest) adminReply {
	if a.kind == adminRule {
		return b.putRuleLocked(a)
	}
	e := b.namespace.entities[a.path()]
	switch {
	case a.update && e == nil:
		return a.notFound()
	case a.update:
		return b.updateLocked(a, e)
	case e != nil:
		return adminError(http.StatusConflict, "SubCode=40900. Conflict. The messaging entity '%s' already exists.", e.cfg.Name)
	}
	made, faults := b.makeLocked(a)
	if len(faults) > 0 {
		return adminError(http.StatusBadRequest, "SubCode=40000. %s", strings.Join(faults, "; "))
	}
	if made == nil {
		return a.notFound()
	}
	b.addLocked(made)
	return adminReply{status: http.StatusCreated, body: b.entityEntryLocked(made)}
}

// makeLocked makes the entity that a request describes, and says what is wrong with it. Without its topic it returns nil.
func (b *Broker) makeLocked(a adminRequest) (*entity, []string) {
	r := &settingsReader{broker: b, d: a.description}
	cfg := r.settings(Queue{Name: a.name, DefaultMessageTimeToLive: Forever}.withDefaults())
	var e *entity
	switch a.kind {
	case adminSubscription:
		topic := b.namespace.entities[lower(a.parent)]
		if topic == nil || topic.kind != kindTopic {
			return nil, nil
		}
		s := Subscription{Queue: cfg, Rules: r.defaultRule()}
		r.faults = append(r.faults, append(names{}.checkSubscription(a.name), s.faults()...)...)
		e = newSubscription(topic, s)
	default:
		r.faults = append(r.faults, append(names{}.check(a.name), cfg.faults()...)...)
		e = newEntity(b, map[adminKind]kind{adminQueue: kindQueue, adminTopic: kindTopic}[a.kind], cfg)
	}
	e.details, e.status = r.details(), r.status(Active)
	return e, r.faults
}

// updateLocked changes the settings of an entity, and detaches its links as the service does.
func (b *Broker) updateLocked(a adminRequest, e *entity) adminReply {
	if string(a.kind) != e.kind.String() {
		return adminError(http.StatusConflict, "SubCode=40900. Conflict. The entity '%s' is a %s.", e.cfg.Name, e.kind)
	}
	r := &settingsReader{broker: b, d: a.description, existing: e}
	cfg := r.settings(e.cfg)
	for name, changed := range map[string]bool{
		"RequiresSession": cfg.RequiresSession != e.cfg.RequiresSession, "RequiresDuplicateDetection": cfg.RequiresDuplicateDetection != e.cfg.RequiresDuplicateDetection,
	} {
		if changed {
			r.faults = append(r.faults, "The value for the "+name+" property of an existing "+e.kind.String()+" cannot be changed.")
		}
	}
	r.faults = append(r.faults, cfg.faults()...)
	if len(r.faults) > 0 {
		return adminError(http.StatusBadRequest, "SubCode=40000. %s", strings.Join(r.faults, "; "))
	}
	e.cfg, e.details, e.status, e.updated = cfg, r.details(), r.status(e.status), time.Now()
	e.duplicates.window = cfg.DuplicateDetectionHistoryTimeWindow
	return adminReply{status: http.StatusOK, body: b.entityEntryLocked(e), after: func() {
		b.spawn(func() {
			if b.sleep(updateDelay) {
				b.detachLinks(e, amqp.Errorf(amqp.DetachForced, "The entity '%s' was updated.", e.cfg.Name))
			}
		})
	}}
}

// updateDelay is how long after the answer an update detaches links. A live test of azservicebus counts on receiving before.
const updateDelay = 200 * time.Millisecond

func (b *Broker) detachLinks(e *entity, err *amqp.Error) {
	for _, l := range b.linksOf(e, func(*amqp.Link, *node) bool { return true }) {
		l.Detach(err)
	}
}

// adminDeleteLocked deletes an entity with its messages, or a rule.
func (b *Broker) adminDeleteLocked(a adminRequest) adminReply {
	e := b.namespace.entities[a.path()]
	if e == nil || a.list {
		return a.notFound()
	}
	if a.kind == adminRule {
		if err := e.removeRuleLocked(a.rule); err != nil {
			return a.notFound()
		}
		return adminReply{status: http.StatusOK}
	}
	gone := append([]*entity{e}, e.subscriptions...)
	for _, one := range gone {
		b.namespace.deleteLocked(one)
	}
	return adminReply{status: http.StatusOK, after: func() {
		for _, one := range gone {
			b.detachLinks(one, amqp.Errorf(amqp.NotFound, "The messaging entity '%s' could not be found: it was deleted.", one.cfg.Name))
		}
	}}
}

// deleteLocked forgets an entity and everything in it. Who still has a link to it finds it disabled and empty.
func (n *namespace) deleteLocked(e *entity) {
	delete(n.entities, lower(e.cfg.Name))
	e.status = Disabled
	for _, s := range []*store{&e.main, &e.dead} {
		if s.sessions != nil {
			for _, w := range slices.Clone(s.sessions.waiting) {
				w.fallDueLocked(time.Now())
			}
		}
		s.all.each(0, func(m *message) bool {
			s.removeLocked(m)
			return true
		})
	}
	if e.topic != nil {
		e.topic.subscriptions = slices.DeleteFunc(e.topic.subscriptions, func(o *entity) bool { return o == e })
	}
}
