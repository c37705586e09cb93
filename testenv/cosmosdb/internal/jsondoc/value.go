// Package jsondoc holds JSON as Cosmos DB holds it: numbers are IEEE 754 doubles, members keep their order, and the depth
// is bounded.
//
// A value is nil, a bool, a float64, a string, a []any of values, or an *[Object]. Values are not changed once they are
// shared; whoever wants a changed document takes a [Clone].
package jsondoc

import "slices"

// Object is a JSON object whose members keep the order in which they were added.
type Object struct {
	names  []string
	values map[string]any
}

// NewObject returns an empty object.
func NewObject() *Object { return &Object{values: map[string]any{}} }

// Get returns the value of a member and reports whether it is there.
func (o *Object) Get(name string) (any, bool) {
	v, ok := o.values[name]
	return v, ok
}

// Text returns the value of a member that is a string.
func (o *Object) Text(name string) (string, bool) {
	s, ok := o.values[name].(string)
	return s, ok
}

// Set adds a member at the end, or gives an existing one a new value in its place.
func (o *Object) Set(name string, v any) {
	if _, ok := o.values[name]; !ok {
		o.names = append(o.names, name)
	}
	o.values[name] = v
}

// Delete removes a member and reports whether it was there.
func (o *Object) Delete(name string) bool {
	if _, ok := o.values[name]; !ok {
		return false
	}
	delete(o.values, name)
	o.names = slices.DeleteFunc(o.names, func(n string) bool { return n == name })
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
	c := &Object{names: slices.Clone(o.names), values: make(map[string]any, len(o.values))}
	for n, v := range o.values {
		c.values[n] = Clone(v)
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
	for n, v := range a.values {
		if w, ok := b.values[n]; !ok || !Equal(v, w) {
			return false
		}
	}
	return true
}
