package fingerprint

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is the deepest nesting of objects and arrays that this package reads, and that Cosmos DB stores.
const MaxDepth = 128

// Limits bound what is read. Both are checked before anything is built from the body.
type Limits struct {
	// MaxBytes bounds the body. Zero is no bound.
	MaxBytes int
	// MaxDepth bounds the nesting of objects and arrays; a scalar has depth zero. Defaults to [MaxDepth], the largest.
	MaxDepth int
}

func (l Limits) depth() int {
	if l.MaxDepth <= 0 || l.MaxDepth > MaxDepth {
		return MaxDepth
	}
	return l.MaxDepth
}

// canonicaliser reads a body once, by recursion, and writes its canonical form. A member is written where it arrives; an object
// whose names came out of order is sorted when it ends.
type canonicaliser struct {
	dec      *jsontext.Decoder
	body     []byte
	maxDepth int
	hasOnly  bool
	repeats  bool // an object may name one member twice
	visit    func(at *selection, number []byte)

	out     []byte
	members []member // of all open objects, the innermost last
	names   []byte   // the members' names by value
	scratch []byte
	text    []byte // the value of the newest string that had escapes
	path    []byte // the pointer of the newest value, when there is a visit
	picks   []pick

	ignoring int  // how many open values are ignored
	picking  int  // how many open values are selected
	ignored  bool // whether anything was ignored
	leaves   int  // scalars and empty containers that count
}

// member is a member of an open object: its name in names, and its text with name and colon in out. One that was left out
// has no text.
type member struct{ name, nameEnd, start, end int32 }

// pick is a value that Only selects.
type pick struct {
	pointer string
	text    []byte
}

func newCanonicaliser(body []byte, l Limits, hasOnly bool) *canonicaliser {
	c := &canonicaliser{
		dec:      jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true)),
		body:     body,
		maxDepth: l.depth(),
		hasOnly:  hasOnly,
	}
	if !hasOnly {
		c.out = make([]byte, 0, len(body)+len(body)/8+16)
	}
	return c
}

// unread reports whether nothing reads the text that is written now.
func (c *canonicaliser) unread() bool { return c.ignoring > 0 || c.hasOnly && c.picking == 0 }

// run reads the one value of the body.
func (c *canonicaliser) run(sel *selection) error {
	if err := c.value(sel, 0, 0); err != nil {
		return err
	}
	end := c.dec.InputOffset()
	if _, err := c.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return &Problem{Kind: NotJSON, Offset: end, Cause: follows(bytes.TrimLeft(c.body[end:], jsonSpace))}
	}
	return nil
}

// value reads the next value and writes it. What is left out is cut off again, back to position undo.
func (c *canonicaliser) value(sel *selection, depth, undo int) error {
	start, ignored, picked := len(c.out), false, false
	if sel != nil {
		ignored, picked = sel.ignored, sel.isOnly
	}
	if ignored {
		c.ignoring++
		c.ignored = true
	}
	if picked {
		c.picking++
	}
	if err := c.read(sel, depth); err != nil {
		return err
	}
	if picked {
		c.picking--
		if c.ignoring == 0 {
			c.picks = append(c.picks, pick{sel.only, slices.Clone(c.out[start:])})
		}
	}
	if ignored {
		c.ignoring--
	}
	if ignored || c.unread() {
		c.out = c.out[:undo]
	}
	return nil
}

func (c *canonicaliser) read(sel *selection, depth int) error {
	switch kind := c.dec.PeekKind(); kind {
	case jsontext.KindBeginObject, jsontext.KindBeginArray:
		if depth == c.maxDepth {
			return &Problem{Kind: TooDeep, Offset: c.dec.InputOffset(), Limit: depth, Cause: "objects and arrays are nested too deep"}
		}
		if _, err := c.dec.ReadToken(); err != nil {
			return c.problem(err)
		}
		if kind == jsontext.KindBeginObject {
			return c.object(sel, depth+1)
		}
		return c.array(sel, depth+1)
	case jsontext.KindEndObject, jsontext.KindEndArray, jsontext.KindInvalid:
		_, err := c.dec.ReadToken()
		return c.problem(err)
	default:
		return c.scalar(sel, kind)
	}
}

func (c *canonicaliser) scalar(sel *selection, kind jsontext.Kind) error {
	raw, err := c.dec.ReadValue()
	if err != nil {
		return c.problem(err)
	}
	c.leaf()
	switch {
	case kind == jsontext.KindNumber:
		return c.number(sel, raw)
	case kind != jsontext.KindString:
		c.out = append(c.out, raw...)
	case !c.unread():
		c.out = c.appendString(raw)
	}
	return nil
}

func (c *canonicaliser) number(sel *selection, raw []byte) error {
	if c.visit != nil {
		c.visit(sel, raw)
	}
	var ok bool
	if c.out, ok = appendNumber(c.out, raw); ok {
		return nil
	}
	return &Problem{Kind: NumberOutOfRange, Offset: c.dec.InputOffset() - int64(len(raw)), Path: cutPath(string(c.dec.StackPointer())),
		Cause: "a number that no double can hold"}
}

func (c *canonicaliser) array(sel *selection, depth int) error {
	c.out = append(c.out, '[')
	count, base := 0, len(c.path)
	for ; c.dec.PeekKind() != jsontext.KindEndArray; count++ {
		undo := len(c.out)
		if c.out[undo-1] != '[' {
			c.out = append(c.out, ',')
		}
		if c.visit != nil {
			c.path = strconv.AppendInt(append(c.path[:base], '/'), int64(count), 10)
		}
		if err := c.value(sel.element(count), depth, undo); err != nil {
			return err
		}
	}
	c.path = c.path[:base]
	if err := c.end(count); err != nil {
		return err
	}
	c.out = append(c.out, ']')
	return nil
}

func (c *canonicaliser) object(sel *selection, depth int) error {
	c.out = append(c.out, '{')
	start, first, names, base, sorted := len(c.out), len(c.members), len(c.names), len(c.path), true
	for c.dec.PeekKind() != jsontext.KindEndObject {
		name, err := c.name(c.members[first:], &sorted)
		if err != nil {
			return err
		}
		if c.visit != nil {
			c.path = appendEscaped(append(c.path[:base], '/'), c.names[name.name:])
		}
		if err := c.value(sel.member(c.names[name.name:]), depth, int(name.start)); err != nil {
			return err
		}
		name.end = int32(len(c.out))
		c.members = append(roomFor(c.members, 1), name)
	}
	c.path = c.path[:base]
	own := c.members[first:]
	if err := c.end(len(own)); err != nil {
		return err
	}
	if !sorted {
		if err := c.sort(start, own); err != nil {
			return err
		}
	}
	c.members, c.names = c.members[:first], c.names[:names]
	c.out = append(c.out, '}')
	return nil
}

// name reads the name of the next member, and notes when it does not follow those of its object in order. The member begins
// where its text, with a comma before it, does.
func (c *canonicaliser) name(earlier []member, sorted *bool) (member, error) {
	raw, err := c.dec.ReadValue()
	if err != nil {
		return member{}, c.problem(err)
	}
	m := member{name: int32(len(c.names)), start: int32(len(c.out))}
	c.names = appendUnquoted(roomFor(c.names, len(raw)), raw)
	m.nameEnd = int32(len(c.names))
	if n := len(earlier); n > 0 && *sorted {
		switch order := c.compareNames(earlier[n-1], m); {
		case order == 0 && !c.repeats:
			return m, c.duplicate(string(c.dec.StackPointer()))
		case order > 0:
			*sorted = false
		}
	}
	if c.out[m.start-1] != '{' {
		c.out = append(c.out, ',')
	}
	c.out = append(c.appendString(raw), ':')
	return m, nil
}

func (c *canonicaliser) compareNames(a, b member) int {
	return bytes.Compare(c.names[a.name:a.nameEnd], c.names[b.name:b.nameEnd])
}

// sort puts the members of an object, whose text begins at start, in the order of their names.
func (c *canonicaliser) sort(start int, own []member) error {
	slices.SortFunc(own, c.compareNames)
	c.scratch = append(c.scratch[:0], c.out[start:]...)
	c.out = c.out[:start]
	for i, m := range own {
		if i > 0 && !c.repeats && c.compareNames(own[i-1], m) == 0 {
			return c.duplicate(appendToken(string(c.dec.StackPointer()), string(c.names[m.name:m.nameEnd])))
		}
		if m.end == m.start {
			continue
		}
		if len(c.out) > start {
			c.out = append(c.out, ',')
		}
		c.out = append(c.out, bytes.TrimPrefix(c.scratch[int(m.start)-start:int(m.end)-start], []byte{','})...)
	}
	return nil
}

// end reads the end of an object or array with so many members or elements.
func (c *canonicaliser) end(count int) error {
	if _, err := c.dec.ReadToken(); err != nil {
		return c.problem(err)
	}
	if count == 0 {
		c.leaf()
	}
	return nil
}

// leaf counts a scalar or an empty container that is part of the fingerprint.
func (c *canonicaliser) leaf() {
	if !c.unread() {
		c.leaves++
	}
}

// roomFor makes room by doubling, so that all the memory that a stack ever asked for is at most twice what it has in the end.
func roomFor[T any](s []T, n int) []T {
	if cap(s)-len(s) >= n {
		return s
	}
	// Not slices.Grow, which makes the room twice in a build with the race detector.
	grown := make([]T, len(s), len(s)+max(n, len(s), 8))
	copy(grown, s)
	return grown
}

func (c *canonicaliser) duplicate(path string) error {
	return &Problem{Kind: DuplicateName, Offset: c.dec.InputOffset(), Path: cutPath(path), Cause: "an object names one member twice"}
}
