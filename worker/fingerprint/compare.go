package fingerprint

import (
	"bytes"
	"strconv"
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
	d.compare(a, b, h.sel)
	return d.found
}

// values returns the canonical text of what counts of a body: the whole, or the selected values by pointer.
func (h *Hasher) values(body []byte) ([]pick, error) {
	c, err := read(body, Limits{}, h.sel, len(h.parameters.Only) > 0)
	if err != nil {
		return nil, err
	}
	if c.hasOnly {
		return c.sortedPicks(), nil
	}
	return []pick{{text: c.ordered(c.all())}}, nil
}

// differ walks through two canonical texts side by side and collects differences up to its limit.
type differ struct {
	limit int
	found []Difference
	a, b  cursor
	path  []byte // the pointer of the newest value
	open  []pair
}

// pair is an object or array that is open on both sides.
type pair struct {
	object bool
	base   int // the length of its own pointer
	index  int // of the next element as the bodies count it: ignored ones are not in the texts
	sel    *selection
}

func (d *differ) compare(a, b []pick, sel *selection) {
	for len(a)+len(b) > 0 && len(d.found) < d.limit {
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
			d.a, d.b = cursor{text: a[0].text}, cursor{text: b[0].text}
			below := sel
			if a[0].pointer != "" {
				below, _ = sel.at(a[0].pointer)
			}
			d.walk(below)
			a, b = a[1:], b[1:]
		}
	}
}

func (d *differ) walk(sel *selection) {
	d.open = d.open[:0]
	d.value(sel)
	for len(d.open) > 0 && len(d.found) < d.limit {
		if p := &d.open[len(d.open)-1]; p.object {
			d.member(p)
		} else {
			d.element(p)
		}
	}
}

// value compares two values, or opens them when both are of the same kind.
func (d *differ) value(sel *selection) {
	if kind := d.a.next(); kind == d.b.next() && (kind == '{' || kind == '[') {
		d.a.at, d.b.at = d.a.at+1, d.b.at+1
		d.open = append(d.open, pair{object: kind == '{', base: len(d.path), sel: sel})
		return
	}
	if !bytes.Equal(d.a.skip(), d.b.skip()) {
		d.report(Changed)
	}
}

// member takes the next name in order, from one side or from both.
func (d *differ) member(p *pair) {
	switch order := compareNames(&d.a, &d.b); {
	case d.a.next() == '}' && d.b.next() == '}':
		d.close()
	case order < 0:
		d.path = appendEscaped(append(d.path[:p.base], '/'), d.a.takeName())
		d.report(Removed)
		d.a.skip()
	case order > 0:
		d.path = appendEscaped(append(d.path[:p.base], '/'), d.b.takeName())
		d.report(Added)
		d.b.skip()
	default:
		name := d.a.takeName()
		d.b.takeName()
		d.path = appendEscaped(append(d.path[:p.base], '/'), name)
		d.value(p.sel.member(name))
	}
}

func (d *differ) element(p *pair) {
	endA, endB := d.a.next() == ']', d.b.next() == ']'
	if endA && endB {
		d.close()
		return
	}
	sel := p.sel.element(p.index)
	for sel != nil && sel.ignored {
		p.index++
		sel = p.sel.element(p.index)
	}
	d.path = strconv.AppendInt(append(d.path[:p.base], '/'), int64(p.index), 10)
	p.index++
	switch {
	case endA:
		d.report(Added)
		d.b.skip()
	case endB:
		d.report(Removed)
		d.a.skip()
	default:
		d.value(sel)
	}
}

// close leaves the innermost pair, of which both sides are at their end.
func (d *differ) close() {
	d.open = d.open[:len(d.open)-1]
	d.a.end()
	d.b.end()
}

func (d *differ) report(kind string) {
	if len(d.found) < d.limit {
		// One character more than the bound is enough to see that there is more.
		d.found = append(d.found, Difference{Path: cutPath(string(d.path[:min(len(d.path), MaxPath+1)])), Kind: kind})
	}
}
