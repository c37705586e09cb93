package fingerprint

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The values of the fields of [Parameters].
const (
	// Version1 is the version of the canonical form that this package makes.
	Version1 = 1
	// SHA256 is the only algorithm of version 1.
	SHA256 = "sha256"
	// FormJSON hashes the canonical form of a JSON body.
	FormJSON = "json"
	// FormBytes hashes the body as it is.
	FormBytes = "bytes"
	// PartData hashes the data of a CloudEvent without its envelope.
	PartData = "data"
)

// Parameters say how a fingerprint is made. Its JSON form is stored with every document and stays readable for ever.
//
// Part and Unwrap say which bytes of a message are hashed. They are carried out where the whole message is known, in package
// admission: the functions of this package are given those bytes.
type Parameters struct {
	Version   int    `json:"v"`
	Algorithm string `json:"alg"`
	// Form is "json" or "bytes".
	Form string `json:"form"`
	// Ignore are JSON pointers (RFC 6901) to values that do not count.
	Ignore []string `json:"ignore,omitempty"`
	// Only are JSON pointers to the only values that count.
	Only []string `json:"only,omitempty"`
	// Part is the part of the body that is hashed: empty for all of it, or "data" for the data of a CloudEvent.
	Part string `json:"part,omitempty"`
	// Unwrap tells that a body that is a JSON string is replaced by the text in that string, once.
	Unwrap bool `json:"unwrap,omitempty"`
}

// NewParameters returns the newest parameters with these selections, sorted and without repeats. An empty form means "json". The
// error names every fault at once, among them a selection that would leave nothing to compare.
func NewParameters(form string, ignore, only []string) (Parameters, error) {
	if form == "" {
		form = FormJSON
	}
	r := Parameters{Version: Version1, Algorithm: SHA256, Form: form, Ignore: sorted(ignore), Only: sorted(only)}
	return r, r.Validate()
}

func sorted(pointers []string) []string {
	if len(pointers) == 0 {
		return nil
	}
	out := slices.Clone(pointers)
	slices.Sort(out)
	return slices.Compact(out)
}

// Equal reports whether two parameters always give the same hash for the same body. The order of selections does not matter.
func (r Parameters) Equal(o Parameters) bool {
	return r.Version == o.Version && r.Algorithm == o.Algorithm && r.Form == o.Form && r.Part == o.Part && r.Unwrap == o.Unwrap &&
		slices.Equal(sorted(r.Ignore), sorted(o.Ignore)) && slices.Equal(sorted(r.Only), sorted(o.Only))
}

// A FieldError is a fault of one field of a configuration.
type FieldError struct {
	// Field is the name of the field, such as "Ignore".
	Field string
	// Problem is a sentence that names the field in words and says what to give.
	Problem string
}

func (e *FieldError) Error() string { return e.Problem }

// Validate reports all faults of parameters that are to be used for new documents. Those of a field are a [FieldError].
func (r Parameters) Validate() error {
	var errs []error
	if err := r.known(); err != nil {
		errs = append(errs, err)
	}
	bad := func(field, format string, args ...any) {
		errs = append(errs, &FieldError{field, "fingerprint: " + fmt.Sprintf(format, args...)})
	}
	if r.Form == FormBytes && len(r.Ignore)+len(r.Only) > 0 {
		bad("Form", "the form \"bytes\" hashes the whole body, so ignore and only must be empty")
	}
	for _, list := range []struct {
		field, name string
		pointers    []string
	}{{"Ignore", "ignore", r.Ignore}, {"Only", "only", r.Only}} {
		for _, p := range list.pointers {
			if _, err := parsePointer(p); err != nil {
				bad(list.field, "%s %q: %v", list.name, p, err)
			}
		}
	}
	if slices.Contains(r.Ignore, "") {
		bad("Ignore", "ignore \"\" is the whole body: nothing would be left to compare")
	}
	for _, o := range r.Only {
		if i := slices.IndexFunc(r.Ignore, func(i string) bool { return covers(i, o) }); i >= 0 {
			bad("Only", "only %q lies in ignore %q: it would never count", o, r.Ignore[i])
		}
	}
	return errors.Join(errs...)
}

// known reports whether this version of the product can make hashes by the parameters.
func (r Parameters) known() error {
	form, part := r.Form == FormJSON || r.Form == FormBytes, r.Part == "" || r.Part == PartData
	if r.Version == Version1 && r.Algorithm == SHA256 && form && part {
		return nil
	}
	return &UnknownParametersError{Parameters: r}
}

// covers reports whether the value at pointer p contains the value at pointer q, or is it.
func covers(p, q string) bool { return p == q || strings.HasPrefix(q, p+"/") }

// ErrUnknownParameters is what every [UnknownParametersError] is.
var ErrUnknownParameters = errors.New("fingerprint: unknown parameters")

// An UnknownParametersError is returned for parameters that this version of the product cannot make, usually because a newer
// version stored them. Content under such parameters is neither equal nor different.
type UnknownParametersError struct{ Parameters Parameters }

func (e *UnknownParametersError) Error() string {
	return fmt.Sprintf("fingerprint: parameters version %d, algorithm %q, form %q is not known to this version of the product; "+
		"use the version that stored it, or a newer one", e.Parameters.Version, e.Parameters.Algorithm, e.Parameters.Form)
}

// Is lets errors.Is find [ErrUnknownParameters].
func (e *UnknownParametersError) Is(target error) bool { return target == ErrUnknownParameters }
