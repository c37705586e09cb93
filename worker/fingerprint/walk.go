package fingerprint

import (
	"errors"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// walker reads a body and knows the JSON pointer of each value. The pointer stands in one buffer that grows and shrinks with
// the nesting: every name is written into it once, however many values lie below, so that work and memory grow with the size
// of the body alone.
type walker struct {
	reader *canonicaliser
	path   []byte
	at     []Exact // those of the list that lie at or below path
	open   []level
}

// level is an open object or array.
type level struct {
	object, named bool // named tells that a name was read whose value is to come
	count         int
	base          int // the length of its own pointer
	within        []Exact
}

// walk calls visit for each number. The list is of originals in the order of comparePointers.
func walk(body []byte, list []Exact, visit func(w *walker, raw []byte)) error {
	w := &walker{reader: newReader(body), at: list}
	for {
		err := w.step(visit)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return w.reader.problem(err)
		}
	}
}

// step reads a name, a scalar, or one end of a container.
func (w *walker) step(visit func(w *walker, raw []byte)) error {
	dec := w.reader.dec
	kind := dec.PeekKind()
	if n := len(w.open); n > 0 {
		switch in := &w.open[n-1]; {
		case in.object && !in.named && kind == jsontext.KindString:
			return w.name(in)
		case !in.object && kind != jsontext.KindEndArray:
			w.path = strconv.AppendInt(append(w.path[:in.base], '/'), int64(in.count), 10)
			w.at = narrow(in.within, in.base, w.path[in.base:])
			in.count++
		}
	}
	if kind == jsontext.KindNumber {
		raw, err := dec.ReadValue()
		if err == nil {
			visit(w, raw)
		}
		w.finish()
		return err
	}
	_, err := dec.ReadToken()
	switch {
	case err != nil:
	case kind == jsontext.KindBeginObject || kind == jsontext.KindBeginArray:
		w.open = append(w.open, level{object: kind == jsontext.KindBeginObject, base: len(w.path), within: w.at})
	case kind == jsontext.KindEndObject || kind == jsontext.KindEndArray:
		w.path = w.path[:w.open[len(w.open)-1].base]
		w.open = w.open[:len(w.open)-1]
		w.finish()
	default:
		w.finish()
	}
	return err
}

func (w *walker) name(in *level) error {
	raw, err := w.reader.dec.ReadValue()
	if err != nil {
		return err
	}
	w.reader.text = appendUnquoted(w.reader.text[:0], raw)
	w.path = appendEscaped(append(w.path[:in.base], '/'), w.reader.text)
	w.at = narrow(in.within, in.base, w.path[in.base:])
	in.named = true
	return nil
}

// finish tells the container that its value is complete.
func (w *walker) finish() {
	if n := len(w.open); n > 0 {
		w.open[n-1].named = false
	}
}
