package traffic

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// A Fate is what became of one message.
type Fate struct {
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

// Audit compares what became of the messages with what stands in the store: the payload of the order under each id, as
// JSON text. It returns one sentence for each message or order that is wrong.
func Audit(fates []Fate, stored map[string]string, words Words) []string {
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	content := map[string]any{}
	for id, text := range stored {
		content[id] = parse([]byte(text))
	}
	origin := map[string]bool{}
	for _, f := range fates {
		m := f.Message
		held, ok := content[m.ID]
		switch same := ok && m.Readable() && reflect.DeepEqual(held, parse(m.Body)); {
		case !m.Readable():
			if f.Completed || !slices.Contains(words.Unreadable, f.Reason) {
				say("%s (%s) %s, although nobody can read it", m.ID, m.Kind, f)
			}
		case !ok:
			say("%s (%s) %s, and nothing is stored under its id", m.ID, m.Kind, f)
		case same && !f.Completed:
			say("%s (%s) %s, although it is just what is stored", m.ID, m.Kind, f)
		case !same && (f.Completed || f.Reason != words.Conflict):
			say("%s (%s) %s, although something else is stored", m.ID, m.Kind, f)
		case same:
			origin[m.ID] = true
		}
	}
	for id := range content {
		if !origin[id] {
			say("%s is stored with content that nobody sent", id)
		}
	}
	return wrong
}

// String tells the fate in words.
func (f Fate) String() string {
	if f.Completed {
		return "was completed"
	}
	return "was dead-lettered as " + f.Reason
}

func parse(text []byte) any {
	var v any
	if json.Unmarshal(text, &v) != nil {
		return nil
	}
	return v
}
