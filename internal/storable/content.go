package storable

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/reason"
)

// reasons are the codes of what is wrong with a content.
var reasons = map[fingerprint.ProblemKind]string{
	fingerprint.TooDeep:          reason.TooDeep,
	fingerprint.TooLarge:         reason.TooLarge,
	fingerprint.DuplicateName:    reason.DuplicateName,
	fingerprint.NumberOutOfRange: reason.NumberOutOfRange,
	fingerprint.InvalidUTF8:      reason.InvalidUTF8,
	fingerprint.NotJSON:          reason.NotJSON,
}

// CheckContent refuses a content that can never be stored, with a [worker.UnstorableError], and returns the numbers that a
// double would round.
func CheckContent(d worker.Document) ([]fingerprint.Exact, error) {
	found, err := fingerprint.Inexact(d.Content, fingerprint.Limits{MaxDepth: maxDepth - contentLevel})
	if err == nil {
		return found, nil
	}
	code, fix := reason.NeverStorable, "Correct the sender, or the handler."
	if p, ok := errors.AsType[*fingerprint.Problem](err); ok {
		code = cmp.Or(reasons[p.Kind], code)
		if p.Kind == fingerprint.TooLarge {
			fix = "Send such numbers as strings, or with at most 15 digits."
		}
	}
	return nil, &worker.UnstorableError{Reason: code, Cause: err, Detail: fmt.Sprintf("The content of document %+q cannot be stored: %s. %s",
		cmp.Or(d.Name, d.Type), strings.TrimPrefix(err.Error(), "fingerprint: "), fix)}
}

// CheckPatch refuses values of a patch that no document can hold. A number that a double would round is one of them: beside a
// patch there is no place for its text.
func CheckPatch(c worker.Change) error {
	for _, o := range c.Operations {
		value, err := json.Marshal(o.Value)
		if err != nil {
			return HandlerFault("a patch of document %+q at %s whose value is no JSON: %v", c.ID, o.Path, err)
		}
		rounded, err := fingerprint.Inexact(value, fingerprint.Limits{MaxDepth: maxDepth - contentLevel})
		switch {
		case err != nil:
			return HandlerFault("a patch of document %+q at %s whose value cannot be stored: %v", c.ID, o.Path, err)
		case len(rounded) > 0:
			return HandlerFault("a patch of document %+q at %s with the number %s, which the store would round. Give it as a string, or replace the "+
				"whole document", c.ID, o.Path, rounded[0].Text)
		}
	}
	return nil
}
