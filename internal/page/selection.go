package page

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/orderworker/orderworker/internal/deadletter"
)

// selection is what the list shows, by the names of the address, without empty values.
type selection map[string]string

// The names of the address.
var (
	filterNames = [...]string{"text", "verdict", "reason", "age", "key", "after", "before"}
	pagingNames = [...]string{"from", "back"}
)

// ageChoices are the bounds of age that the form offers: younger with <, older with >.
var ageChoices = [...][2]string{
	{"<1h", "in the last hour"}, {"<24h", "in the last day"}, {"<168h", "in the last week"},
	{">1h", "over an hour ago"}, {">24h", "over a day ago"}, {">168h", "over a week ago"},
}

// readSelection is false for values that mean nothing.
func readSelection(values url.Values, now time.Time) (selection, deadletter.Filter, bool) {
	s := selection{}
	for _, name := range slices.Concat(filterNames[:], pagingNames[:]) {
		if v := values.Get(name); v != "" {
			s[name] = v
		}
	}
	ok := true
	number := func(name string) (n int64) {
		if text := s[name]; text != "" {
			var err error
			n, err = strconv.ParseInt(text, 10, 64)
			ok = ok && err == nil
		}
		return n
	}
	f := deadletter.Filter{Text: s["text"], Key: s["key"], FirstSequence: number("from")}
	if after, before := number("after"), number("before"); before > 0 {
		f.After, f.Before = time.Unix(after, 0), time.Unix(before, 0)
	}
	if age := s["age"]; age != "" {
		d, err := time.ParseDuration(age[1:])
		ok = ok && err == nil
		if age[0] == '<' {
			f.After = now.Add(-d)
		} else {
			f.Before = now.Add(-d)
		}
	}
	if s["verdict"] != "" {
		kind, known := deadletter.ParseKind(s["verdict"])
		f.Kinds, ok = []deadletter.Kind{kind}, ok && known
	}
	if s["reason"] != "" {
		f.Reasons = []string{s["reason"]}
	}
	return s, f, ok
}

// selected writes a page for values that mean nothing.
func (s *Server) selected(w http.ResponseWriter, r *http.Request, values url.Values) (selection, deadletter.Filter, bool) {
	selected, f, ok := readSelection(values, time.Now())
	if !ok {
		s.fail(w, r, http.StatusBadRequest, "There is no such selection.")
	}
	return selected, f, ok
}

// With is the selection with other values, from its first page on, as the query of an address: names and values in turn. An
// empty value takes one out.
func (s selection) With(pairs ...string) string {
	values := url.Values{}
	for name, v := range s {
		values.Set(name, v)
	}
	for _, name := range pagingNames {
		values.Del(name)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if values.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" {
			values.Del(pairs[i])
		}
	}
	return "?" + values.Encode()
}

// maxTrail bounds how many pages one can go back one by one.
const maxTrail = 50

// Next is the address of the page that begins at a sequence number. It remembers where the pages before it began, since
// the broker lists forwards only.
func (s selection) Next(from int64) string {
	trail := append(strings.Fields(s["back"]), cmp.Or(s["from"], "0"))
	trail = trail[max(0, len(trail)-maxTrail):]
	return s.With("from", strconv.FormatInt(from, 10), "back", strings.Join(trail, " "))
}

// Previous is the address of the page before this one, empty on the first.
func (s selection) Previous() string {
	trail := strings.Fields(s["back"])
	switch {
	case s["from"] == "":
		return ""
	case len(trail) == 0:
		return s.With()
	}
	last := trail[len(trail)-1]
	return s.With("from", strings.TrimLeft(last, "0"), "back", strings.Join(trail[:len(trail)-1], " "))
}
