package admission

import (
	"errors"
	"strconv"

	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/reason"
)

// explain turns a problem of a body into the refusal that a person reads. It is the only place that maps one to the other.
func explain(err error, content []byte) *reason.Refusal {
	p, ok := errors.AsType[*fingerprint.Problem](err)
	if !ok {
		return reason.Refuse(reason.NotJSON, "The body cannot be read: %v.", err)
	}
	where := place(p, len(content))
	switch p.Kind {
	case fingerprint.InvalidUTF8:
		return reason.Refuse(reason.InvalidUTF8, "The body is not text that UTF-8 can hold: %s%s. The sender must encode its text as UTF-8.", p.Cause, where)
	case fingerprint.DuplicateName:
		return reason.Refuse(reason.DuplicateName, "The body has an object that names one member twice%s, and readers would disagree on which counts. "+
			"The sender must send each member once.", where)
	case fingerprint.TooDeep:
		return reason.Refuse(reason.TooDeep, "The body nests objects and arrays deeper than %d levels%s, and the store takes no deeper document. "+
			"The sender must send a flatter structure.", p.Limit, where)
	case fingerprint.TooLarge:
		return reason.Refuse(reason.TooLarge, "The body has %d bytes; at most %d can be stored. The sender must send less, or a reference to the content.",
			len(content), p.Limit)
	case fingerprint.NumberOutOfRange:
		return reason.Refuse(reason.NumberOutOfRange, "The body has a number that no double can hold%s, so the store would lose it. "+
			"The sender must send it as a string.", where)
	case fingerprint.NothingSelected:
		return reason.Refuse(reason.MissingSelection, "The body has none of the values that are compared (settings only and ignore), so it could not be "+
			"told from another. The sender must send them, or the settings must change.")
	}
	return reason.Refuse(reason.NotJSON, "The body is not one JSON value: %s%s. The sender must send JSON (RFC 8259).", p.Cause, where)
}

func place(p *fingerprint.Problem, size int) string {
	text := ""
	if p.Path != "" {
		text += " at " + strconv.QuoteToASCII(p.Path)
	}
	if p.Offset >= 0 {
		text += " (offset " + strconv.FormatInt(p.Offset, 10) + " of " + strconv.Itoa(size) + ")"
	}
	return text
}
