package deadletter

import (
	"github.com/orderworker/orderworker/worker/fingerprint"
)

// A Change is one place at which a message and the stored document differ, with the values.
type Change struct {
	Path string `json:"path"`
	// Kind is "added", "removed" or "changed", seen from what is stored.
	Kind string `json:"kind"`
	// Stored and Arrived are the JSON texts of the values, cut and safe to show; empty where there is none.
	Stored  string `json:"stored,omitempty"`
	Arrived string `json:"arrived,omitempty"`
}

// The bounds of a difference that is shown.
const (
	maxChanges    = 200
	maxChangeText = 400
)

// Changes returns what differs between the stored document and the message by the parameters of the stored one, or by content
// when it has none, in the order of paths and bounded in number and length. It is empty when the verdict says that the two
// are equal, and when there is nothing to compare.
func (i Item) Changes() []Change {
	if i.Stored == nil || i.Content == nil || i.Verdict.Kind.processed() {
		return nil
	}
	var out []Change
	for _, d := range fingerprint.Compare(i.Stored, i.Content, i.parameters, maxChanges) {
		c := Change{Path: Visible(marked(d.Path, false)), Kind: d.Kind}
		stored, _ := fingerprint.Extract(i.Stored, d.Path)
		arrived, _ := fingerprint.Extract(i.Content, d.Path)
		switch d.Kind {
		case fingerprint.Added:
			c.Arrived = alone(arrived)
		case fingerprint.Removed:
			c.Stored = alone(stored)
		default:
			c.Stored, c.Arrived = apart(stored, arrived)
		}
		out = append(out, c)
	}
	return out
}

// Incomparable says why a comparison of content would not tell whether the message was applied, or nothing.
func (i Item) Incomparable() string {
	switch i.Verdict.Kind {
	case HashMissing, OtherKey, Incomplete, OtherProgram, OtherSettings, Unreadable:
		return i.Verdict.Meaning()
	}
	return ""
}

// alone is a value without another one to compare it with. It is empty when there is none.
func alone(text []byte) string {
	return Clip(Visible(string(text[:min(len(text), 4*maxChangeText)])), maxChangeText)
}
