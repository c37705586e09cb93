package traffic

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// An Outcome is what became of one message.
type Outcome struct {
	Message Message
	// Completed tells that the message was completed; otherwise it was dead-lettered with Reason.
	Completed bool
	Reason    string
}

// Words are the dead-letter reasons that the consumer promises.
type Words struct {
	// Conflict is the reason for content that differs from what is stored.
	Conflict string
	// Unreadable are the reasons for a body that is no order.
	Unreadable []string
}

// storedOrder is what is stored under one id, as JSON texts.
type storedOrder struct {
	Body  string
	Lines []string
}

// auditOrders compares what became of orders with what is stored under each id. It returns one sentence for each
// message or order that is wrong.
func auditOrders(outcomes []Outcome, stored map[string]storedOrder, words Words) []string {
	a := audit{words: words, held: map[string]any{}, sent: map[string]bool{}}
	for id, o := range stored {
		a.held[id] = parse(o.Body)
	}
	for _, f := range outcomes {
		a.message(f)
	}
	for id, o := range stored {
		a.order(id, o)
	}
	slices.Sort(a.wrong)
	return a.wrong
}

type audit struct {
	words Words
	held  map[string]any  // what is stored, decoded
	sent  map[string]bool // ids whose stored content was sent and completed
	wrong []string
}

func (a *audit) say(format string, args ...any) {
	a.wrong = append(a.wrong, fmt.Sprintf(format, args...))
}

func (a *audit) message(f Outcome) {
	m := f.Message
	held, ok := a.held[m.ID]
	same := ok && m.Readable() && reflect.DeepEqual(held, parse(string(m.Body)))
	switch {
	case !m.Readable():
		if f.Completed || !slices.Contains(a.words.Unreadable, f.Reason) {
			a.say("%s (%s) %s, although nobody can read it", m.ID, m.Kind, f)
		}
	case !ok:
		a.say("%s (%s) %s, and nothing is stored under its id", m.ID, m.Kind, f)
	case same && !f.Completed:
		a.say("%s (%s) %s, although it is just what is stored", m.ID, m.Kind, f)
	case !same && (f.Completed || f.Reason != a.words.Conflict):
		a.say("%s (%s) %s, although something else is stored", m.ID, m.Kind, f)
	case same:
		a.sent[m.ID] = true
	}
}

func (a *audit) order(id string, o storedOrder) {
	if !a.sent[id] {
		a.say("%s is stored with content that nobody sent", id)
		return
	}
	var body struct {
		Lines []any `json:"lines"`
	}
	// The body equals one that was sent, so it can be read.
	_ = json.Unmarshal([]byte(o.Body), &body)
	lines := make([]any, 0, len(o.Lines))
	for _, l := range o.Lines {
		lines = append(lines, parse(l))
	}
	if len(lines) != len(body.Lines) || (len(lines) > 0 && !reflect.DeepEqual(lines, body.Lines)) {
		a.say("%s is stored with %d lines and documents for %d, or others", id, len(body.Lines), len(lines))
	}
}

// String tells the outcome in words.
func (f Outcome) String() string {
	if f.Completed {
		return "was completed"
	}
	return "was dead-lettered as " + f.Reason
}

func parse(text string) any {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return nil
	}
	return v
}
