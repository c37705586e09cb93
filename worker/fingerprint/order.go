package fingerprint

import "sort"

// region is a stretch of the text as it arrived, and the range of the objects in it that are out of order.
type region struct{ start, end, moved, movedEnd int32 }

// moved is an object whose members stand out of order in the text: its members in order are a range of parts, and inner is
// the first of the objects within it.
type moved struct{ start, end, part, partEnd, inner int32 }

// since returns the region from a position, and from the object noted next there, to the end of the text.
func (c *canonicaliser) since(start, moved int) region {
	return region{start: int32(start), end: int32(len(c.out)), moved: int32(moved), movedEnd: int32(len(c.moved))}
}

// all is the whole text.
func (c *canonicaliser) all() region { return c.since(0, 0) }

// order puts the members of an object that is about to be closed in the order of own, at once or in the end.
func (c *canonicaliser) order(f *frame, own []member) {
	if c.unread() {
		return
	}
	size := len(c.out) - f.start
	if len(c.moved) > f.moved || size < 2*f.reordered {
		c.note(f, own)
		return
	}
	f.reordered = size
	c.copied += size
	c.scratch = roomFor(c.scratch[:0], size)
	for i := range own {
		m := &own[i]
		if m.end == 0 {
			continue
		}
		if len(c.scratch) > 0 {
			c.scratch = append(c.scratch, ',')
		}
		c.scratch = append(c.scratch, c.out[m.start:m.end]...)
	}
	c.out = append(c.out[:f.start+1], c.scratch...)
}

// note keeps the order of an object that is about to be closed.
func (c *canonicaliser) note(f *frame, own []member) {
	m := moved{start: int32(f.start), end: int32(len(c.out) + 1), part: int32(len(c.parts)), inner: int32(f.moved)}
	c.parts = roomFor(c.parts, f.kept)
	for i := range own {
		if own[i].end != 0 {
			c.parts = append(c.parts, c.region(own[i], f.moved))
		}
	}
	m.partEnd = int32(len(c.parts))
	c.moved = append(roomFor(c.moved, 1), m)
}

// region returns the text of a member whose object noted its first within at inner. The noted objects stand in the order in
// which they end.
func (c *canonicaliser) region(m member, inner int) region {
	noted := c.moved[inner:]
	endsBy := func(position int32) int32 {
		return int32(inner + sort.Search(len(noted), func(i int) bool { return noted[i].end > position }))
	}
	return region{start: m.start, end: m.end, moved: endsBy(m.start), movedEnd: endsBy(m.end)}
}

// drop removes the newest value, with the comma and the name before it.
func (c *canonicaliser) drop(v value) {
	c.out = c.out[:v.undo]
	if len(c.moved) > v.moved {
		c.parts = c.parts[:c.moved[v.moved].part]
		c.moved = c.moved[:v.moved]
	}
}

// piece is a region on its way into order, and the members that follow before it when it began as an object.
type piece struct {
	region
	parts  []region
	object bool
	begun  bool // a member has been written
}

// ordered returns a region with all its objects in order. It writes from the end to the beginning, since of the objects
// within a region the last noted is the last one: so each byte is copied once and nothing is searched for.
func (c *canonicaliser) ordered(r region) []byte {
	if r.moved == r.movedEnd {
		return c.out[r.start:r.end]
	}
	text := make([]byte, r.end-r.start)
	c.copied += len(text)
	at := len(text)
	put := func(b ...byte) { at -= copy(text[at-len(b):], b) }
	open := []piece{{region: r}}
	for len(open) > 0 {
		switch p := &open[len(open)-1]; {
		case p.movedEnd > p.moved:
			m := c.moved[p.movedEnd-1]
			put(c.out[m.end:p.end]...)
			put('}')
			p.end, p.movedEnd = m.start, m.inner
			open = append(open, piece{parts: c.parts[m.part:m.partEnd], object: true})
		case p.end > p.start:
			put(c.out[p.start:p.end]...)
			p.end = p.start
		case len(p.parts) > 0:
			if p.begun {
				put(',')
			}
			p.region, p.parts, p.begun = p.parts[len(p.parts)-1], p.parts[:len(p.parts)-1], true
		default:
			if p.object {
				put('{')
			}
			open = open[:len(open)-1]
		}
	}
	return text
}
