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
	ByAge     Grouping = "age"
)

// ParseGrouping reads a grouping.
func ParseGrouping(text string) (Grouping, error) {
	g := Grouping(text)
	if slices.Contains([]Grouping{ByVerdict, ByReason, ByAge}, g) {
		return g, nil
	}
	return "", fmt.Errorf("%q is not one of verdict, reason, age", text)
}

// A Group counts the messages that have something in common.
type Group struct {
	Name   string    `json:"name"`
	Count  int       `json:"count"`
	Oldest time.Time `json:"oldest,omitzero"`
	// First is the lowest sequence number.
	First int64 `json:"firstSequence"`
}

// Groups counts messages without keeping them. The zero value is not usable: see [NewGroups]. It is not safe for concurrent
// use.
type Groups struct {
	by    Grouping
	now   time.Time
	found map[string]*Group
}

// maxGroups bounds the memory of a count by reason, since reasons can be any text.
const maxGroups = 1000

// otherGroup takes the messages for which there is no more room.
const otherGroup = "(other)"

// NewGroups starts a count. Ages are counted up to now.
func NewGroups(by Grouping, now time.Time) *Groups {
	return &Groups{by: by, now: now, found: map[string]*Group{}}
}

// Add counts a message.
func (g *Groups) Add(l *DeadLetter, v Verdict) {
	name := g.name(l, v)
	group := g.found[name]
	if group == nil && len(g.found) >= maxGroups {
		name = otherGroup
		group = g.found[name]
	}
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

func (g *Groups) name(l *DeadLetter, v Verdict) string {
	switch g.by {
	case ByReason:
		return reasonName(l)
	case ByAge:
		return ageBand(l.EnqueuedAt, g.now)
	}
	return string(v.Kind)
}

// ageBands are the upper bounds of the groups of a count by age, in order.
var ageBands = []struct {
	below time.Duration
	name  string
}{
	{time.Hour, "under an hour"}, {24 * time.Hour, "under a day"}, {7 * 24 * time.Hour, "under a week"}, {30 * 24 * time.Hour, "under 30 days"},
}

func ageBand(at, now time.Time) string {
	if at.IsZero() {
		return "unknown"
	}
	for _, b := range ageBands {
		if now.Sub(at) < b.below {
			return b.name
		}
	}
	return "30 days and more"
}

// All returns the groups: verdicts and ages in their own order, reasons with the largest first.
func (g *Groups) All() []Group {
	out := make([]Group, 0, len(g.found))
	for _, group := range g.found {
		out = append(out, *group)
	}
	slices.SortFunc(out, func(a, b Group) int {
		return cmp.Or(cmp.Compare(g.rank(a.Name), g.rank(b.Name)), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func (g *Groups) rank(name string) int {
	switch g.by {
	case ByVerdict:
		return slices.Index(Kinds(), Kind(name))
	case ByAge:
		for i, b := range ageBands {
			if b.name == name {
				return i
			}
		}
		return len(ageBands)
	}
	return 0
}

// Total returns how many messages were counted.
func (g *Groups) Total() int {
	n := 0
	for _, group := range g.found {
		n += group.Count
	}
	return n
}
