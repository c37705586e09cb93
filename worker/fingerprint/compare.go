package fingerprint

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// The kinds of differences.
const (
	Added   = "added"   // only the arrived body has it
	Removed = "removed" // only the stored body has it
	Changed = "changed" // both have it, with different values
)

// A Difference says where two bodies differ, and never with what values.
type Difference struct {
	// Path is a JSON pointer, cut to [MaxPath] bytes. It is empty for the whole body.
	Path string `json:"path"`
	// Kind is "added", "removed" or "changed".
	Kind string `json:"kind"`
}

// Compare returns the first limit differences between a stored and an arrived body by parameters, ordered by path with array
// elements in their order; what the parameters leave out is left out here too. Bodies that have no common form to compare by
// (one is not JSON, the form is "bytes", the parameters are unknown) differ as a whole. It returns nil for equal bodies and for a
// limit below one. Work and memory grow with the sizes of the bodies and with the limit, not with the length of paths.
func Compare(stored, arrived []byte, r Parameters, limit int) []Difference {
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
	a, errA := h.values(stored)
	b, errB := h.values(arrived)
	if errA != nil || errB != nil {
		return whole
	}
	d := differ{limit: limit}
	d.picks(a, b, h.sel)
	return d.found
}

// values returns the canonical text of what counts of a body: the whole, or the selected values by pointer.
func (h *Hasher) values(body []byte) ([]pick, error) {
	c := newCanonicaliser(body, Limits{}, len(h.parameters.Only) > 0)
	if err := c.check(Limits{}, h.sel); err != nil {
		return nil, err
	}
	if c.hasOnly {
		return c.sortedPicks(), nil
	}
	return []pick{{text: c.out}}, nil
}

// differ walks through two canonical texts side by side and collects differences up to its limit. Both texts are valid, so
// reading them gives no error.
type differ struct {
	limit int
	found []Difference
	a, b  side
	path  []byte // the pointer of the newest value
}

func (d *differ) full() bool { return len(d.found) >= d.limit }

// picks compares what two lists in the order of their pointers select.
func (d *differ) picks(a, b []pick, sel *selection) {
	for len(a)+len(b) > 0 && !d.full() {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].pointer < b[0].pointer:
			d.path = append(d.path[:0], a[0].pointer...)
			d.report(Removed)
			a = a[1:]
		case len(a) == 0 || a[0].pointer > b[0].pointer:
			d.path = append(d.path[:0], b[0].pointer...)
			d.report(Added)
			b = b[1:]
		default:
			d.path = append(d.path[:0], a[0].pointer...)
			d.a, d.b = newSide(a[0].text), newSide(b[0].text)
			below := sel
			if a[0].pointer != "" {
				below, _ = sel.at(a[0].pointer)
			}
			d.value(below)
			a, b = a[1:], b[1:]
		}
	}
}

func (d *differ) value(sel *selection) {
	switch kind := d.a.kind(); {
	case kind != d.b.kind():
	case kind == jsontext.KindBeginObject:
		d.object(sel)
		return
	case kind == jsontext.KindBeginArray:
		d.array(sel)
		return
	}
	if !bytes.Equal(d.a.value(), d.b.value()) {
		d.report(Changed)
	}
}

func (d *differ) object(sel *selection) {
	base := len(d.path)
	d.a.token()
	d.b.token()
	d.a.next()
	d.b.next()
	for (d.a.more || d.b.more) && !d.full() {
		switch order := compareNames(&d.a, &d.b); {
		case order < 0:
			d.member(base, &d.a, Removed)
		case order > 0:
			d.member(base, &d.b, Added)
		default:
			d.path = appendEscaped(append(d.path[:base], '/'), d.a.name)
			d.value(sel.member(d.a.name))
			d.a.next()
			d.b.next()
		}
	}
	d.path = d.path[:base]
}

// member reports a member that one side alone has.
func (d *differ) member(base int, s *side, kind string) {
	d.path = appendEscaped(append(d.path[:base], '/'), s.name)
	d.report(kind)
	s.value()
	s.next()
}

// array compares elements. Their numbers are those of the bodies: ignored elements are not in the texts.
func (d *differ) array(sel *selection) {
	base, index := len(d.path), 0
	d.a.token()
	d.b.token()
	for ; !d.full(); index++ {
		at := sel.element(index)
		if at != nil && at.ignored {
			continue
		}
		endA, endB := d.a.kind() == jsontext.KindEndArray, d.b.kind() == jsontext.KindEndArray
		d.path = strconv.AppendInt(append(d.path[:base], '/'), int64(index), 10)
		switch {
		case endA && endB:
			d.a.token()
			d.b.token()
			d.path = d.path[:base]
			return
		case endA:
			d.report(Added)
			d.b.value()
		case endB:
			d.report(Removed)
			d.a.value()
		default:
			d.value(at)
		}
	}
}

func (d *differ) report(kind string) {
	if !d.full() {
		// One character more than the bound is enough to see that there is more.
		d.found = append(d.found, Difference{Path: cutPath(string(d.path[:min(len(d.path), MaxPath+1)])), Kind: kind})
	}
}

// side reads one of two canonical texts.
type side struct {
	dec  *jsontext.Decoder
	name []byte // of the next member
	more bool   // whether the object has one
}

func newSide(text []byte) side {
	return side{dec: jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))}
}

func (s *side) kind() jsontext.Kind { return s.dec.PeekKind() }

// token reads the beginning or the end of an object or array.
func (s *side) token() { _, _ = s.dec.ReadToken() }

// value reads a whole value.
func (s *side) value() []byte {
	raw, _ := s.dec.ReadValue()
	return raw
}

// next reads the name of the next member, or the end of the object.
func (s *side) next() {
	if s.more = s.kind() == jsontext.KindString; s.more {
		s.name = appendUnquoted(s.name[:0], s.value())
		return
	}
	s.token()
}

// compareNames compares the next names of two objects. The end of an object comes after all names.
func compareNames(a, b *side) int {
	switch {
	case !a.more:
		return 1
	case !b.more:
		return -1
	}
	return bytes.Compare(a.name, b.name)
}
