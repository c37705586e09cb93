package storable

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/reason"
)

// CheckContent refuses a content that can never be stored, with a [worker.UnstorableError], and returns the numbers that a
// double would round.
func CheckContent(d worker.Document) ([]fingerprint.Exact, error) {
	name := cmp.Or(d.Name, d.Type)
	found, err := fingerprint.Inexact(d.Content, fingerprint.Limits{MaxDepth: maxDepth - contentLevel})
	if p, ok := errors.AsType[*fingerprint.Problem](err); ok {
		fix := "Correct the sender, or the handler."
		if p.Kind == fingerprint.TooLarge {
			fix = "Send such numbers as strings, or with at most 15 digits."
		}
		return nil, &worker.UnstorableError{Reason: problemReason(p.Kind), Cause: err,
			Detail: fmt.Sprintf("The content of document %q cannot be stored: %s. %s", name, strings.TrimPrefix(p.Error(), "fingerprint: "), fix)}
	}
	if err != nil {
		return nil, Never(reason.NeverStorable, "The content of document %q cannot be stored: %v. Correct the handler.", name, err)
	}
	return found, nil
}

func problemReason(k fingerprint.ProblemKind) string {
	switch k {
	case fingerprint.TooDeep:
		return reason.TooDeep
	case fingerprint.TooLarge:
		return reason.TooLarge
	case fingerprint.DuplicateName:
		return reason.DuplicateName
	case fingerprint.NumberOutOfRange:
		return reason.NumberOutOfRange
	case fingerprint.InvalidUTF8:
		return reason.InvalidUTF8
	case fingerprint.NotJSON:
		return reason.NotJSON
	}
	return reason.NeverStorable
}
