package page

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/orderworker/orderworker/internal/deadletter"
)

// functions are what the templates call. None of them returns markup: the templates escape every result.
func functions() template.FuncMap {
	return template.FuncMap{
		"visible": deadletter.Visible,
		"clip":    func(limit int, text string) string { return deadletter.Clip(deadletter.Visible(text), limit) },
		"age":     age,
		"stamp":   func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"machine": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"words":   func(name string) string { return strings.ReplaceAll(name, "-", " ") },
		"what":    what,
		"kinds":   deadletter.Kinds,
		"ages":    func() [][2]string { return ageChoices[:] },
		"plural":  plural,
		"page":    func(f frame, p any) frame { f.Page = p; return f },
	}
}

// age writes how long ago something was.
func age(at, now time.Time) string {
	d := now.Sub(at)
	switch {
	case at.IsZero():
		return "unknown"
	case d < time.Minute:
		return "under a minute"
	case d < time.Hour:
		return plural(int(d.Minutes()), "minute")
	case d < 48*time.Hour:
		return plural(int(d.Hours()), "hour")
	}
	return plural(int(d.Hours()/24), "day")
}

func plural(n int, noun string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// what says in words what a result means.
func what(r deadletter.Result) string {
	words := map[deadletter.Result]string{
		deadletter.Applied: "applied now", deadletter.Duplicate: "was applied before, removed", deadletter.Outdated: "was stale, removed", deadletter.Resubmitted: "sent again, removed",
		deadletter.Discarded: "removed", deadletter.Skipped: "skipped: something else is true now", deadletter.Refused: "refused",
		deadletter.Rejected: "the worker did not apply it", deadletter.Absent: "was gone already", deadletter.Locked: "held by somebody else",
		deadletter.StoreDown: "the store cannot be used now", deadletter.Broken: "failed, nothing removed", deadletter.Uncertain: "not known whether removed",
	}
	if text, ok := words[r]; ok {
		return text
	}
	return string(r)
}
