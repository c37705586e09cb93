package fingerprint

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits bound what is read. Both are checked before anything is built from the body.
type Limits struct {
	// MaxBytes bounds the body. Zero is no bound.
	MaxBytes int
	// MaxDepth bounds the nesting of objects and arrays; a scalar has depth zero. Defaults to the largest, 9999.
	MaxDepth int
}

// deepest is one below what the tokeniser takes.
const deepest = 9999

func (l Limits) depth() int {
	if l.MaxDepth <= 0 || l.MaxDepth > deepest {
		return deepest
	}
	return l.MaxDepth
}

// canonicaliser reads a body once and writes its canonical form. Open objects and arrays are frames on a stack of its own.
// A member is written where it arrives, and moved to its place when its object ends and only if it is out of order. An object
// that holds little more than one that was moved already is noted instead, and put in order in the end, so that the nesting
// does not multiply the work: a byte moves at most as often as the body can be halved.
type canonicaliser struct {
	dec      *jsontext.Decoder
	body     []byte
	maxDepth int
	hasOnly  bool

	out     []byte
	frames  []frame
	members []member // of all open objects, the innermost last
	names   []byte   // the members' names by value
	scratch []byte
	moved   []moved  // the noted objects, an inner one before the outer
	parts   []region // their members, in order
	text    []byte   // the value of the newest string that had escapes
	picks   []pick

	copied   int  // bytes that were moved, for the bound that tests hold
	ignoring int  // how many open values are ignored
	picking  int  // how many open values are selected
	ignored  bool // whether anything was ignored
	weighing bool // whether to find out if a double would round a number
	rounds   bool // whether one would
	leaves   int  // scalars and empty containers that count
}

// value is one value on its way: where its text begins and what the parameters says of it.
type value struct {
	start, undo int // in out; undo is before the comma and the name
	moved       int // how many were noted before it
	sel         *selection
}

type frame struct {
	value             // the container itself
	object            bool
	wantValue         bool // the name of a member has been read
	ordered           bool // the names came in order so far
	count             int  // members or elements in the body
	kept              int  // those not ignored
	members, names    int  // where this object's begin
	element           value
	lastName, endName int // the newest name, in names
	reordered         int // the length of the longest text within that was moved
}

// member is a member of an open object: its name in names and its text in out. An ignored one has no text.
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

// unread reports whether nobody will read the text that is written now, so that it need not be right, nor kept.
func (c *canonicaliser) unread() bool { return c.ignoring > 0 || c.hasOnly && c.picking == 0 }

// run reads the one value of the body.
func (c *canonicaliser) run(sel *selection) error {
	root := value{sel: sel}
	if err := c.next(root); err != nil {
		return err
	}
	for len(c.frames) > 0 {
		if err := c.step(&c.frames[len(c.frames)-1]); err != nil {
			return err
		}
	}
	end := c.dec.InputOffset()
	if _, err := c.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return &Problem{Kind: NotJSON, Offset: end, Cause: follows(bytes.TrimLeft(c.body[end:], " \t\r\n"))}
	}
	return nil
}

// step reads one token inside the innermost frame.
func (c *canonicaliser) step(f *frame) error {
	if f.object && !f.wantValue {
		if c.dec.PeekKind() == jsontext.KindEndObject {
			return c.endObject(f)
		}
		return c.readName(f)
	}
	if !f.object && c.dec.PeekKind() == jsontext.KindEndArray {
		return c.endArray(f)
	}
	if !f.object {
		f.element = value{undo: len(c.out), moved: len(c.moved), sel: f.sel.element(f.count)}
		if f.kept > 0 {
			c.out = append(c.out, ',')
		}
		f.element.start = len(c.out)
	}
	return c.next(f.element)
}

// next reads a scalar, or opens a container.
func (c *canonicaliser) next(v value) error {
	c.enter(v)
	switch kind := c.dec.PeekKind(); kind {
	case jsontext.KindBeginObject, jsontext.KindBeginArray:
		return c.open(v, kind == jsontext.KindBeginObject)
	case jsontext.KindEndObject, jsontext.KindEndArray, jsontext.KindInvalid:
		_, err := c.dec.ReadToken()
		return c.problem(err)
	default:
		raw, err := c.dec.ReadValue()
		if err != nil {
			return c.problem(err)
		}
		return c.scalar(v, kind, raw)
	}
}

func (c *canonicaliser) scalar(v value, kind jsontext.Kind, raw []byte) error {
	switch kind {
	case jsontext.KindString:
		if !c.unread() {
			c.out = c.appendString(raw)
		}
	case jsontext.KindNumber:
		var ok bool
		c.rounds = c.rounds || c.weighing && !survivesDouble(raw)
		if c.out, ok = appendNumber(c.out, raw); !ok {
			return &Problem{Kind: NumberOutOfRange, Offset: c.dec.InputOffset() - int64(len(raw)),
				Path: cutPath(string(c.dec.StackPointer())), Cause: "a number that no double can hold"}
		}
	default:
		c.out = append(c.out, raw...)
	}
	c.leaf()
	c.leave(v, 0)
	return nil
}

func (c *canonicaliser) open(v value, object bool) error {
	if len(c.frames) == c.maxDepth {
		return &Problem{Kind: TooDeep, Offset: c.dec.InputOffset(), Limit: c.maxDepth, Cause: "objects and arrays are nested too deep"}
	}
	if _, err := c.dec.ReadToken(); err != nil {
		return c.problem(err)
	}
	c.frames = append(c.frames, frame{value: v, object: object, ordered: true, members: len(c.members), names: len(c.names)})
	if object {
		c.out = append(c.out, '{')
	} else {
		c.out = append(c.out, '[')
	}
	return nil
}

func (c *canonicaliser) readName(f *frame) error {
	undo := len(c.out)
	raw, err := c.dec.ReadValue()
	if err != nil {
		return c.problem(err)
	}
	if raw.Kind() != jsontext.KindString {
		return &Problem{Kind: NotJSON, Offset: c.dec.InputOffset(), Cause: "the name of a member is not a string"}
	}
	start := len(c.names)
	c.names = appendUnquoted(roomFor(c.names, len(raw)), raw)
	name := c.names[start:]
	if f.count > 0 && f.ordered {
		switch bytes.Compare(c.names[f.lastName:f.endName], name) {
		case 0:
			return c.duplicate(string(c.dec.StackPointer()))
		case 1:
			f.ordered = false
		}
	}
	f.lastName, f.endName, f.wantValue = start, len(c.names), true
	if f.kept > 0 {
		c.out = append(c.out, ',')
	}
	c.members = append(roomFor(c.members, 1), member{name: int32(start), nameEnd: int32(len(c.names)), start: int32(len(c.out))})
	c.out = append(c.appendString(raw), ':')
	f.element = value{start: len(c.out), undo: undo, moved: len(c.moved), sel: f.sel.member(name)}
	return nil
}

func (c *canonicaliser) endObject(f *frame) error {
	if _, err := c.dec.ReadToken(); err != nil {
		return c.problem(err)
	}
	if !f.ordered {
		own := c.members[f.members:]
		slices.SortFunc(own, func(a, b member) int {
			return bytes.Compare(c.names[a.name:a.nameEnd], c.names[b.name:b.nameEnd])
		})
		for i := 1; i < len(own); i++ {
			if a, b := own[i-1], own[i]; bytes.Equal(c.names[a.name:a.nameEnd], c.names[b.name:b.nameEnd]) {
				return c.duplicate(appendToken(string(c.dec.StackPointer()), string(c.names[b.name:b.nameEnd])))
			}
		}
		c.order(f, own)
	}
	c.members, c.names = c.members[:f.members], c.names[:f.names]
	return c.close(f, '}')
}

func (c *canonicaliser) endArray(f *frame) error {
	if _, err := c.dec.ReadToken(); err != nil {
		return c.problem(err)
	}
	return c.close(f, ']')
}

func (c *canonicaliser) close(f *frame, end byte) error {
	c.out = append(c.out, end)
	if f.count == 0 {
		c.leaf()
	}
	v, reordered := f.value, f.reordered
	c.frames = c.frames[:len(c.frames)-1]
	c.leave(v, reordered)
	return nil
}

// enter and leave stand around every value.
func (c *canonicaliser) enter(v value) {
	if v.sel == nil {
		return
	}
	if v.sel.ignored {
		c.ignoring++
		c.ignored = true
	}
	if v.sel.isOnly {
		c.picking++
	}
}

// leave takes what the parameters wants of a finished value, and tells the container around it.
func (c *canonicaliser) leave(v value, reordered int) {
	drop := false
	if v.sel != nil {
		if v.sel.isOnly {
			c.picking--
			if c.ignoring == 0 {
				c.picks = append(c.picks, pick{v.sel.only, slices.Clone(c.ordered(c.since(v.start, v.moved)))})
			}
		}
		if v.sel.ignored {
			c.ignoring--
			drop = true
		}
	}
	if drop || c.unread() {
		c.drop(v)
	}
	if len(c.frames) == 0 {
		return
	}
	f := &c.frames[len(c.frames)-1]
	f.count++
	f.reordered = max(f.reordered, reordered)
	if !drop {
		f.kept++
	}
	if f.object {
		f.wantValue = false
		if !drop {
			c.members[len(c.members)-1].end = int32(len(c.out))
		}
	}
}

// leaf counts a scalar or an empty container, unless the parameters passes it over.
func (c *canonicaliser) leaf() {
	if c.ignoring == 0 && (!c.hasOnly || c.picking > 0) {
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
