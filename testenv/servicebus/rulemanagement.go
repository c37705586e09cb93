package servicebus

import (
	"net/http"
	"slices"
	"time"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

// The descriptors of rules in the reply of enumerate-rules.
const (
	describedRule             uint64 = 0x13700000004
	describedEmptyAction      uint64 = 0x13700000005
	describedAction           uint64 = 0x13700000006
	describedSQLFilter        uint64 = 0x1370000006
	describedTrueFilter       uint64 = 0x1370000007
	describedFalseFilter      uint64 = 0x1370000008
	describedCorrelationRules uint64 = 0x1370000009
)

const condExists = "com.microsoft:entity-already-exists"

// onRules wraps an operation on the rules of a subscription.
func onRules(r *request, do func(e *entity, name string) reply) (fault.Point, func() reply, *reply) {
	e := r.node.store.entity
	if e.kind != kindSubscription || r.node.store.dead {
		return early(badRequest("only a subscription has rules, and %s is none", r.node.store.path))
	}
	name, _ := r.field("rule-name").(string)
	return fault.Point{Op: history.ManageRules, Key: name}, func() reply {
		e.mu.Lock()
		defer e.mu.Unlock()
		return do(e, name)
	}, nil
}

func (b *Broker) addRule(r *request) (fault.Point, func() reply, *reply) {
	description, _ := r.field("rule-description").(amqp.Map)
	return onRules(r, func(e *entity, name string) reply {
		filter, action := ruleOf(description)
		if filter == nil {
			return badRequest("add-rule needs a rule-description with a sql-filter, correlation-filter, true-filter or false-filter")
		}
		if err := e.addRuleLocked(Rule{Name: name, Filter: filter, Action: action}); err != nil {
			return failure(err)
		}
		return ok(nil)
	})
}

func (e *entity) addRuleLocked(r Rule) *amqp.Error {
	if e.rules.find(r.Name) >= 0 {
		return amqp.Errorf(condExists, "The messaging entity '%s/Rules/%s' already exists.", e.cfg.Name, r.Name)
	}
	parsed, err := newRule(r, time.Now())
	if err != nil {
		return ruleError(r.Name, err)
	}
	e.rules = append(slices.Clip(e.rules), parsed)
	e.main.recordLocked(history.Event{Op: history.ManageRules, Effect: true, Note: "add " + r.Name}, nil)
	return nil
}

func (b *Broker) removeRule(r *request) (fault.Point, func() reply, *reply) {
	return onRules(r, func(e *entity, name string) reply {
		if err := e.removeRuleLocked(name); err != nil {
			return failure(err)
		}
		return ok(nil)
	})
}

func (e *entity) removeRuleLocked(name string) *amqp.Error {
	i := e.rules.find(name)
	if i < 0 {
		return amqp.Errorf(amqp.NotFound, "The messaging entity '%s/Rules/%s' could not be found.", e.cfg.Name, name)
	}
	e.rules = slices.Delete(slices.Clone(e.rules), i, i+1)
	e.main.recordLocked(history.Event{Op: history.ManageRules, Effect: true, Note: "remove " + name}, nil)
	return nil
}

func (b *Broker) enumerateRules(r *request) (fault.Point, func() reply, *reply) {
	skip, _ := r.field("skip").(int32)
	top, _ := r.field("top").(int32)
	return onRules(r, func(e *entity, _ string) reply {
		var list amqp.List
		for i, one := range e.rules {
			if i >= int(skip) && len(list) < int(top) {
				list = append(list, amqp.Map{{Key: "rule-description", Value: one.described()}})
			}
		}
		if len(list) == 0 {
			return reply{status: http.StatusNoContent, description: "No rules"}
		}
		return ok(amqp.Map{{Key: "rules", Value: list}})
	})
}

// ruleOf reads the filter and the action of a rule description. Without a known filter it returns nil.
func ruleOf(d amqp.Map) (Filter, string) {
	part := func(name string) amqp.Map {
		v, _ := d.Get(name)
		m, _ := v.(amqp.Map)
		return m
	}
	var filter Filter
	for name, found := range map[string]Filter{
		"true-filter": TrueFilter{}, "false-filter": FalseFilter{}, "sql-filter": SQLFilter{Expression: text(part("sql-filter"), "expression")},
		"correlation-filter": correlationOf(part("correlation-filter")),
	} {
		if _, ok := d.Get(name); ok {
			filter = found
		}
	}
	return filter, text(part("sql-rule-action"), "expression")
}

func correlationOf(m amqp.Map) CorrelationFilter {
	f := CorrelationFilter{
		ContentType: text(m, "content-type"), CorrelationID: text(m, "correlation-id"), MessageID: text(m, "message-id"),
		ReplyTo: text(m, "reply-to"), ReplyToSessionID: text(m, "reply-to-session-id"), SessionID: text(m, "session-id"),
		Subject: text(m, "label"), To: text(m, "to"), Properties: map[string]any{},
	}
	v, _ := m.Get("properties")
	properties, _ := v.(amqp.Map)
	for _, p := range properties {
		if name, ok := p.Key.(string); ok {
			f.Properties[name] = p.Value
		}
	}
	return f
}

// described is a rule as enumerate-rules returns it: filter, action, name and time of creation.
func (r *rule) described() amqp.Described {
	action := amqp.Described{Descriptor: describedEmptyAction, Value: amqp.List{}}
	if r.Action != "" {
		action = amqp.Described{Descriptor: describedAction, Value: amqp.List{r.Action, int32(20)}}
	}
	return amqp.Described{Descriptor: describedRule, Value: amqp.List{describedFilter(r.Filter), action, r.Name, r.created}}
}

func describedFilter(f Filter) amqp.Described {
	switch f := f.(type) {
	case SQLFilter:
		return amqp.Described{Descriptor: describedSQLFilter, Value: amqp.List{f.Expression, int32(20)}}
	case FalseFilter:
		return amqp.Described{Descriptor: describedFalseFilter, Value: amqp.List{}}
	case CorrelationFilter:
		properties := amqp.Map{}
		for name, value := range f.Properties {
			properties = append(properties, amqp.Pair{Key: name, Value: value})
		}
		return amqp.Described{Descriptor: describedCorrelationRules, Value: amqp.List{
			orNull(f.CorrelationID), orNull(f.MessageID), orNull(f.To), orNull(f.ReplyTo), orNull(f.Subject), orNull(f.SessionID),
			orNull(f.ReplyToSessionID), orNull(f.ContentType), properties,
		}}
	}
	return amqp.Described{Descriptor: describedTrueFilter, Value: amqp.List{}}
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
