package reason

import "fmt"

// A Refusal says why one message can never be admitted. It is about the message alone: no other message suffers from it, and
// trying again gives the same answer.
type Refusal struct {
	// Reason is one of the codes of this package.
	Reason string
	// Detail tells a person in one or two sentences what is wrong, where, and what to do about it. It holds offsets, paths
	// and sizes, and never a value of the body.
	Detail string
}

// Refuse builds a refusal whose detail is formatted like [fmt.Sprintf].
func Refuse(code, format string, args ...any) *Refusal {
	return &Refusal{Reason: code, Detail: fmt.Sprintf(format, args...)}
}

// Error returns the reason and the detail.
func (r *Refusal) Error() string { return r.Reason + ": " + r.Detail }
