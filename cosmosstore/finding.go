package cosmosstore

import (
	"errors"
	"strings"

	"github.com/orderworker/orderworker/internal/tokenerror"
	"github.com/orderworker/orderworker/worker"
)

// Severity says how bad a finding is. Faults sort before warnings.
type Severity string

// The severities.
const (
	// Fault: the store refuses to work like this.
	Fault Severity = "fault"
	// Warning: the store works, and something may go wrong or cost more than it must.
	Warning Severity = "warning"
)

// A Finding is something that [Store.Check] has to say about the account, the container or the options.
type Finding struct {
	Severity Severity
	// Text says what was found, and Fix what to do about it. Both are whole sentences or close to it.
	Text string
	Fix  string
}

// Findings returns an error of [Open] or of a [Store] as faults, one for each thing that must be put right.
func Findings(err error) []Finding {
	if err == nil {
		return nil
	}
	cause, fix := err, "Correct the setting that it names."
	if m, ok := errors.AsType[*worker.MisconfiguredError](err); ok {
		cause, fix = m.Cause, m.Fix
	} else if u, ok := errors.AsType[*worker.UnavailableError](err); ok {
		fix := "Check that endpoint, network and account are up, and try again."
		if e, ok := errors.AsType[*answerError](u.Cause); ok && e.answer.failure == noToken {
			fix = tokenerror.Fix + "."
		}
		return []Finding{{Severity: Fault, Text: plainSentence(u.Cause), Fix: fix}}
	}
	joined, ok := cause.(interface{ Unwrap() []error })
	if !ok {
		return []Finding{{Severity: Fault, Text: plainSentence(cause), Fix: fix}}
	}
	var found []Finding
	for _, e := range joined.Unwrap() {
		found = append(found, Findings(e)...)
	}
	return found
}

// plainSentence is an error's text without the name of the package.
func plainSentence(err error) string { return strings.TrimPrefix(err.Error(), "cosmosstore: ") }
