package query

import (
	"cmp"
	"slices"

	"github.com/orderworker/orderworker/testenv/cosmosdb/internal/jsondoc"
)

// Matches reports whether the condition is true for a document.
func (c Condition) Matches(doc *jsondoc.Object, params map[string]any) bool {
	return c.where == nil || c.where.eval(environment{doc: doc, params: params}) == true
}

// Matches reports whether a document passes the WHERE clause.
func (q *Query) Matches(doc *jsondoc.Object, params map[string]any) bool {
	return Condition{where: q.where}.Matches(doc, params)
}

// Ordered reports whether the query has an ORDER BY.
func (q *Query) Ordered() bool { return q.order != nil }

// Counts reports whether the query is SELECT VALUE COUNT(...).
func (q *Query) Counts() bool { return q.count }

// Windowed reports whether the query has TOP, OFFSET or LIMIT.
func (q *Query) Windowed() bool { return q.Skip > 0 || q.Limit >= 0 }

// Compare orders two documents by the ORDER BY clause: undefined, null, booleans, numbers, strings, arrays, objects.
func (q *Query) Compare(a, b *jsondoc.Object) int {
	c := compare(q.order.eval(environment{doc: a}), q.order.eval(environment{doc: b}))
	if q.desc {
		return -c
	}
	return c
}

// Project returns what the SELECT clause makes of a document, and reports whether it is anything.
func (q *Query) Project(doc *jsondoc.Object, params map[string]any) (any, bool) {
	env := environment{doc: doc, params: params}
	switch {
	case q.star:
		return doc, true
	case q.count:
		// COUNT counts the documents for which its argument is defined.
		v := q.items[0].expr.eval(env)
		return v, v != undefined{}
	case q.value:
		v := q.items[0].expr.eval(env)
		return v, v != undefined{}
	}
	out := jsondoc.NewObject()
	for _, i := range q.items {
		if v := i.expr.eval(env); v != (undefined{}) {
			out.Set(i.name, v)
		}
	}
	return out, true
}

// Pinned returns the values that the WHERE clause demands at paths, and reports whether it demands one at each: then all
// results come from one logical partition.
func (q *Query) Pinned(paths [][]string, params map[string]any) ([]any, bool) {
	values := make([]any, len(paths))
	for i, p := range paths {
		v, ok := pinned(q.where, p, params)
		if !ok {
			return nil, false
		}
		values[i] = v
	}
	return values, true
}

func pinned(e expression, path []string, params map[string]any) (any, bool) {
	switch e := e.(type) {
	case logic:
		if !e.and {
			return nil, false
		}
		if v, ok := pinned(e.left, path, params); ok {
			return v, true
		}
		return pinned(e.right, path, params)
	case comparison:
		p, ok := e.left.(*pathExpression)
		if !ok || e.op != "=" || !p.names(path) {
			return nil, false
		}
		switch e.right.(type) {
		case literal, parameter:
			return e.right.eval(environment{params: params}), true
		}
	}
	return nil, false
}

// names reports whether the path consists of exactly these member names.
func (p *pathExpression) names(path []string) bool {
	return slices.EqualFunc(p.steps, path, func(s any, name string) bool { return s == name })
}

func (l literal) eval(environment) any { return l.value }

func (p parameter) eval(e environment) any {
	if v, ok := e.params[p.name]; ok {
		return v
	}
	return undefined{}
}

func (p *pathExpression) eval(e environment) any {
	v := e.doc
	for _, s := range p.steps {
		ok := false
		switch s := s.(type) {
		case string:
			var o *jsondoc.Object
			if o, ok = v.(*jsondoc.Object); ok {
				v, ok = o.Get(s)
			}
		case int:
			list, isList := v.([]any)
			if ok = isList && s < len(list); ok {
				v = list[s]
			}
		}
		if !ok {
			return undefined{}
		}
	}
	return v
}

func (n not) eval(e environment) any {
	if b, ok := n.of.eval(e).(bool); ok {
		return !b
	}
	return undefined{}
}

// eval decides as soon as one side decides: false for AND, true for OR. Otherwise what is not a boolean makes the result
// undefined.
func (l logic) eval(e environment) any {
	decisive := !l.and
	left := l.left.eval(e)
	if left == decisive {
		return decisive
	}
	right := l.right.eval(e)
	if right == decisive {
		return decisive
	}
	_, a := left.(bool)
	_, b := right.(bool)
	if a && b {
		return !decisive
	}
	return undefined{}
}

func (c comparison) eval(e environment) any {
	a, b := c.left.eval(e), c.right.eval(e)
	if rank(a) != rank(b) || rank(a) == 0 {
		return undefined{}
	}
	switch c.op {
	case "=":
		return jsondoc.Equal(a, b)
	case "!=", "<>":
		return !jsondoc.Equal(a, b)
	}
	if rank(a) >= rank([]any{}) {
		return undefined{}
	}
	n := compare(a, b)
	switch c.op {
	case "<":
		return n < 0
	case "<=":
		return n <= 0
	case ">":
		return n > 0
	default:
		return n >= 0
	}
}

func (c call) eval(e environment) any {
	args := make([]any, len(c.args))
	for i, a := range c.args {
		args[i] = a.eval(e)
	}
	return c.function.eval(args)
}

// rank is the place of a value's type in the order of types; undefined is 0.
func rank(v any) int {
	switch v.(type) {
	case undefined:
		return 0
	case nil:
		return 1
	case bool:
		return 2
	case float64:
		return 3
	case string:
		return 4
	case []any:
		return 5
	default:
		return 6
	}
}

func compare(a, b any) int {
	if c := cmp.Compare(rank(a), rank(b)); c != 0 {
		return c
	}
	switch a := a.(type) {
	case bool:
		b := b.(bool)
		switch {
		case a == b:
			return 0
		case b:
			return -1
		}
		return 1
	case float64:
		return cmp.Compare(a, b.(float64))
	case string:
		return cmp.Compare(a, b.(string))
	case []any, *jsondoc.Object:
		return cmp.Compare(jsondoc.String(a), jsondoc.String(b))
	}
	return 0
}
