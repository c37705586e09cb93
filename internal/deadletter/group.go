package deadletter

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A Grouping says what dead letters are counted by.
type Grouping string

// The groupings.
const (
	ByVerdict Grouping = "verdict"
	ByReason  Grouping = "reason"
)

// ParseGrouping reads a grouping.
func ParseGrouping(text string) (Grouping, error) {
	if g := Grouping(text); g == ByVerdict || g == ByReason {
		return g, nil
	}
	return "", fmt.Errorf("%q is neither verdict nor reason", text)
}

// A Group counts the messages that have something in common.
type Group struct {
	Name   string    `json:"name"`
	Count  int       `json:"count"`
	Oldest time.Time `json:"oldest,omitzero"`
	// First is the lowest sequence number.
	First int64 `json:"firstSequence"`
}

// Groups counts messages without keeping them. It is not safe for concurrent use.
type Groups struct {
	by    Grouping
	found map[string]*Group
}

// NewGroups starts a count.
func NewGroups(by Grouping) *Groups { return &Groups{by: by, found: map[string]*Group{}} }

// Add counts a message.
func (g *Groups) Add(l *DeadLetter, v Verdict) {
	name := string(v.Kind)
	if g.by == ByReason {
		name = reasonName(l)
	}
	group := g.found[name]
	if group == nil {
		group = &Group{Name: name, First: l.Sequence}
		g.found[name] = group
	}
	group.Count++
	group.First = min(group.First, l.Sequence)
	if !l.EnqueuedAt.IsZero() && (group.Oldest.IsZero() || l.EnqueuedAt.Before(group.Oldest)) {
		group.Oldest = l.EnqueuedAt
	}
}

// All returns the groups: verdicts in their own order, reasons with the largest first.
func (g *Groups) All() []Group {
	out := make([]Group, 0, len(g.found))
	for _, group := range g.found {
		out = append(out, *group)
	}
	slices.SortFunc(out, func(a, b Group) int {
		if g.by == ByVerdict {
			return cmp.Compare(slices.Index(Kinds(), Kind(a.Name)), slices.Index(Kinds(), Kind(b.Name)))
		}
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	return out
}
