package app

import (
	"errors"
	"fmt"
	"slices"
)

// A settingFault is what is wrong with a setting, or between two of them.
type settingFault struct {
	// env is the variable that is to be corrected, and with another that it does not go with. Both may be empty.
	env, with string
	text      string
}

// Error names the variables first.
func (f settingFault) Error() string {
	switch {
	case f.env == "":
		return f.text
	case f.with == "":
		return f.env + ": " + f.text
	}
	return f.env + " and " + f.with + ": " + f.text
}

// oneFault is a list with one fault.
func oneFault(env, format string, args ...any) []settingFault {
	return []settingFault{{env: env, text: fmt.Sprintf(format, args...)}}
}

// addNew adds the faults of variables that have none yet: the first one was found closer to its cause.
func addNew(known, more []settingFault) []settingFault {
	for _, fault := range more {
		if !slices.ContainsFunc(known, func(k settingFault) bool { return k.env == fault.env || k.with == fault.env }) {
			known = append(known, fault)
		}
	}
	return known
}

// faultsError is all faults in one error, nil for none. Origins are the flags by which values of variables were given, which
// then name the fault.
func faultsError(faults []settingFault, origins map[string]string) error {
	if len(faults) == 0 {
		return nil
	}
	for i, f := range faults {
		if flag := origins[f.env]; flag != "" && f.with == "" {
			faults[i].env = flag
		}
	}
	return withCode(exitUsage, fmt.Errorf("the configuration is wrong in %d place(s):\n%w", len(faults), errors.Join(indent(faults)...)))
}
