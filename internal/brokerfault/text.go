package brokerfault

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/orderworker/orderworker/internal/tokenerror"
)

const (
	maxSaid = 300
	maxText = 1000
)

// Said is what the broker itself answered, condition or status first, on one line of at most some 300 bytes, or "" when err
// carries no answer. Ids that change with each request are taken out of it.
func Said(err error) string {
	err = Cause(err)
	if e := remote(err); e != nil {
		return oneLine(strings.TrimSuffix(string(e.Condition)+": "+sentence(e.Description), ": "), maxSaid)
	}
	if e, ok := errors.AsType[rpcError](err); ok {
		return oneLine(strings.TrimSuffix(fmt.Sprintf("%d: %s", e.RPCCode(), sentence(description(e))), ": "), maxSaid)
	}
	return ""
}

// Text is an error of the broker's client for a log line or a person: on one line and bounded, without the replies of an
// identity endpoint, and what the broker said without ids. It is "" for nil.
func Text(err error) string {
	if err == nil {
		return ""
	}
	if said := Said(err); said != "" {
		return said
	}
	if cause := Cause(err); tokenerror.Is(cause) {
		return oneLine(tokenerror.Text(cause), maxText)
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return oneLine(first, maxText)
}

// Readable returns err with [Text] as its text, for errors that are logged. Nil stays nil.
func Readable(err error) error {
	if err == nil {
		return nil
	}
	return &readable{err}
}

type readable struct{ cause error }

func (e *readable) Error() string { return Text(e.cause) }
func (e *readable) Unwrap() error { return e.cause }

// Explain is the advice for an error with what the broker itself said.
func Explain(f Fault, err error) string {
	if text := Text(err); text != "" {
		return f.Advice() + ": " + text
	}
	return f.Advice()
}

// description is the text of an answer with a status. The client has it in a field, of a type that is not exported.
func description(e rpcError) string {
	v := reflect.Indirect(reflect.ValueOf(e))
	if v.Kind() != reflect.Struct {
		return ""
	}
	if resp := reflect.Indirect(v.FieldByName("Resp")); resp.IsValid() && resp.Kind() == reflect.Struct {
		v = resp
	}
	if d := v.FieldByName("Description"); d.IsValid() && d.Kind() == reflect.String {
		return d.String()
	}
	return ""
}

// sentence is a description of the broker without the ids at its end and within it. The broker appends TrackingId,
// SystemTracker and Timestamp, or Reference, to nearly everything it says.
func sentence(description string) string {
	for _, mark := range []string{"TrackingId:", "SystemTracker:", "Timestamp:", "Reference:"} {
		description, _, _ = strings.Cut(description, mark)
	}
	words := strings.Fields(description)
	for i, word := range words {
		if opaque(word) {
			words[i] = "…"
		}
	}
	return strings.TrimRight(strings.Join(words, " "), " ,;(")
}

// opaque reports whether a word holds an id, a token or a signature: a long run of letters and digits, hyphens among them.
func opaque(word string) bool {
	const long = 20
	run, digits := 0, 0
	for _, c := range word {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-' || c == '+' || c == '='
		digit := '0' <= c && c <= '9'
		switch {
		case digit:
			run, digits = run+1, digits+1
		case letter:
			run++
		default:
			run, digits = 0, 0
		}
		if run >= long && digits >= 4 {
			return true
		}
	}
	return false
}

// oneLine returns s without control characters, at most limit bytes, cut at a character.
func oneLine(s string, limit int) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\uFFFD"), func(c rune) bool { return unicode.IsControl(c) }), " ")
	if len(s) <= limit {
		return s
	}
	end := limit - len("…")
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
