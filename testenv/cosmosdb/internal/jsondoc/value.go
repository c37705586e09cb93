// Package jsondoc holds JSON as Cosmos DB holds it: numbers are IEEE 754 doubles, members keep their order, and the depth
// is bounded.
//
// A value is nil, a bool, a float64, a string, a []any of values, or an *[Object]. Values are not changed once they are
// shared; anyone who wants a changed document takes a [Clone].
package jsondoc

import (
	"maps"
	"slices"
)

// Object is a JSON object whose members keep the order in which they were added.
type Object struct {
	names  []string
	values []any
	places map[string]int // of the names, once there are more than few
}

// few is how many names are found faster by looking at each.
const few = 16

// NewObject returns an empty object.
func NewObject() *Object { return &Object{} }

// place returns the position of a member, or -1.
func (o *Object) place(name string) int {
	if o.places == nil {
		return slices.Index(o.names, name)
	}
	if i, ok := o.places[name]; ok {
		return i
	}
	return -1
}

// Get returns the value of a member and reports whether it is there.
func (o *Object) Get(name string) (any, bool) {
	if i := o.place(name); i >= 0 {
		return o.values[i], true
	}
	return nil, false
}

// Text returns the value of a member that is a string.
func (o *Object) Text(name string) (string, bool) {
	v, _ := o.Get(name)
	s, ok := v.(string)
	return s, ok
}

// Set adds a member at the end, or gives an existing one a new value in its place.
func (o *Object) Set(name string, v any) {
	if i := o.place(name); i >= 0 {
		o.values[i] = v
		return
	}
	o.names, o.values = append(o.names, name), append(o.values, v)
	switch {
	case o.places != nil:
		o.places[name] = len(o.names) - 1
	case len(o.names) > few:
		o.index()
	}
}

func (o *Object) index() {
	o.places = make(map[string]int, len(o.names))
	for i, n := range o.names {
		o.places[n] = i
	}
}

// Delete removes a member and reports whether it was there.
func (o *Object) Delete(name string) bool {
	i := o.place(name)
	if i < 0 {
		return false
	}
	o.names, o.values = slices.Delete(o.names, i, i+1), slices.Delete(o.values, i, i+1)
	if o.places != nil {
		o.index()
	}
	return true
}

// Names returns the member names in order. The caller must not change the slice.
func (o *Object) Names() []string { return o.names }

// Len returns the number of members.
func (o *Object) Len() int { return len(o.names) }

// Clone returns a deep copy of a value.
func Clone(v any) any {
	switch v := v.(type) {
	case *Object:
		return v.Clone()
	case []any:
		c := make([]any, len(v))
		for i, e := range v {
			c[i] = Clone(e)
		}
		return c
	default:
		return v
	}
}

// Clone returns a deep copy of the object.
func (o *Object) Clone() *Object {
	c := &Object{names: slices.Clone(o.names), values: make([]any, len(o.values)), places: maps.Clone(o.places)}
	for i, v := range o.values {
		c.values[i] = Clone(v)
	}
	return c
}

// Equal reports whether two values are the same JSON value. The order of members does not matter.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case *Object:
		b, ok := b.(*Object)
		return ok && equalObjects(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, Equal)
	default:
		switch b.(type) {
		case *Object, []any:
			return false
		}
		return a == b
	}
}

func equalObjects(a, b *Object) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i, n := range a.names {
		if w, ok := b.Get(n); !ok || !Equal(a.values[i], w) {
			return false
		}
	}
	return true
}
