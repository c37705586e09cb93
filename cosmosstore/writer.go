package cosmosstore

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// writer writes JSON objects, member by member.
type writer struct{ text []byte }

func (w *writer) begin() { w.text = append(w.text, '{') }
func (w *writer) end()   { w.text = append(w.text, '}') }

// name writes the name of the next member.
func (w *writer) name(name string) {
	if w.text[len(w.text)-1] != '{' {
		w.text = append(w.text, ',')
	}
	w.quote(name)
	w.text = append(w.text, ':')
}

// quote writes a string. What is not UTF-8 becomes U+FFFD.
func (w *writer) quote(s string) {
	w.text, _ = jsontext.AppendQuote(w.text, s)
}

func (w *writer) string(name, value string) {
	w.name(name)
	w.quote(value)
}

// nested writes a string inside of objects, one for each name of the path but the last.
func (w *writer) nested(path []string, value string) {
	for _, name := range path[:len(path)-1] {
		w.name(name)
		w.begin()
	}
	w.string(path[len(path)-1], value)
	for range len(path) - 1 {
		w.end()
	}
}

func (w *writer) number(name string, n int64) {
	w.name(name)
	w.text = strconv.AppendInt(w.text, n, 10)
}

// raw writes a value that is JSON already.
func (w *writer) raw(name string, value []byte) {
	w.name(name)
	w.text = append(w.text, value...)
}
