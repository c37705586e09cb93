package fingerprint

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The kinds of differences.
const (
	Added   = "added"   // only the arrived body has it
	Removed = "removed" // only the stored body has it
	Changed = "changed" // both have it, with different values
)

// A Difference says where two bodies differ, and never what stands there.
type Difference struct {
	// Path is a JSON pointer, cut to [MaxPath] bytes. It is empty for the whole body.
	Path string `json:"path"`
	// Kind is "added", "removed" or "changed".
	Kind string `json:"kind"`
}

// Compare returns the first limit differences between a stored and an arrived body by a recipe, ordered by path with array
// elements in their order; what the recipe leaves out is left out here too. Bodies that have no common form to compare by
// (one is not JSON, the form is "bytes", the recipe is unknown) differ as a whole. It returns nil for equal bodies and for a
// limit below one.
func Compare(stored, arrived []byte, r Recipe, limit int) []Difference {
	if limit < 1 {
		return nil
	}
	whole := []Difference{{Kind: Changed}}
	h, err := NewHasher(r)
	if err != nil || r.Form != FormJSON {
		if bytes.Equal(stored, arrived) {
			return nil
		}
		return whole
	}
	a, errA := readTree(stored)
	b, errB := readTree(arrived)
	if errA != nil || errB != nil {
		return whole
	}
	d := differ{limit: limit}
	if len(r.Only) == 0 {
		d.diff("", a, b, h.sel)
		return d.found
	}
	for _, p := range sorted(r.Only) {
		at, _ := h.sel.at(p)
		d.member(p, a.at(p), b.at(p), at)
	}
	return d.found
}

// tree is a JSON value. Scalars are kept in canonical text, so that equal text is equal value.
type tree struct {
	kind     jsontext.Kind
	text     string
	members  map[string]*tree
	elements []*tree
}

func readTree(body []byte) (*tree, error) {
	// The check bounds the depth, so that the recursion here and in the comparison has a bound too.
	if err := Check(body, Limits{}); err != nil {
		return nil, err
	}
	return readValue(newReader(body).dec)
}

func readValue(dec *jsontext.Decoder) (*tree, error) {
	t := &tree{kind: dec.PeekKind()}
	switch t.kind {
	case jsontext.KindBeginObject:
		return t, t.readObject(dec)
	case jsontext.KindBeginArray:
		return t, t.readArray(dec)
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return nil, err
	}
	switch t.kind {
	case jsontext.KindString:
		t.text = string(appendUnquoted(nil, raw))
	case jsontext.KindNumber:
		text, _ := appendNumber(nil, raw)
		t.text = string(text)
	}
	return t, nil
}

func (t *tree) readObject(dec *jsontext.Decoder) error {
	t.members = map[string]*tree{}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != jsontext.KindEndObject {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		if t.members[key], err = readValue(dec); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

func (t *tree) readArray(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != jsontext.KindEndArray {
		e, err := readValue(dec)
		if err != nil {
			return err
		}
		t.elements = append(t.elements, e)
	}
	_, err := dec.ReadToken()
	return err
}

// at returns the value at a pointer, or nil.
func (t *tree) at(pointer string) *tree {
	tokens, _ := parsePointer(pointer)
	for _, token := range tokens {
		switch {
		case t == nil:
			return nil
		case t.kind == jsontext.KindBeginObject:
			t = t.members[token]
		default:
			t = t.element(token)
		}
	}
	return t
}

// element returns an element by the decimal text of its index. RFC 6901 allows no leading zeros.
func (t *tree) element(token string) *tree {
	i, err := strconv.Atoi(token)
	if err != nil || i < 0 || i >= len(t.elements) || strconv.Itoa(i) != token {
		return nil
	}
	return t.elements[i]
}

// differ collects differences up to its limit.
type differ struct {
	limit int
	found []Difference
}

func (d *differ) report(path, kind string) {
	if len(d.found) < d.limit {
		d.found = append(d.found, Difference{Path: cutPath(path), Kind: kind})
	}
}

// member compares two values either of which may be absent.
func (d *differ) member(path string, a, b *tree, sel *selection) {
	switch {
	case sel != nil && sel.ignored, a == nil && b == nil, len(d.found) >= d.limit:
	case a == nil:
		d.report(path, Added)
	case b == nil:
		d.report(path, Removed)
	default:
		d.diff(path, a, b, sel)
	}
}

func (d *differ) diff(path string, a, b *tree, sel *selection) {
	switch {
	case a.kind != b.kind || a.text != b.text:
		d.report(path, Changed)
	case a.kind == jsontext.KindBeginObject:
		names := slices.Collect(maps.Keys(a.members))
		for name := range b.members {
			if _, both := a.members[name]; !both {
				names = append(names, name)
			}
		}
		slices.SortFunc(names, strings.Compare)
		for _, name := range names {
			d.member(appendToken(path, name), a.members[name], b.members[name], sel.member([]byte(name)))
		}
	case a.kind == jsontext.KindBeginArray:
		for i := range max(len(a.elements), len(b.elements)) {
			d.member(path+"/"+strconv.Itoa(i), elementAt(a, i), elementAt(b, i), sel.element(i))
		}
	}
}

func elementAt(t *tree, i int) *tree {
	if i < len(t.elements) {
		return t.elements[i]
	}
	return nil
}
