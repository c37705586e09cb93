package app

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/orderworker/orderworker/worker"
)

// bind adds a flag for every setting that has one.
func bind(flags *pflag.FlagSet, table []setting) {
	for _, s := range table {
		if s.flag != "" {
			f := flags.VarPF(&settingValue{s.fallback, s.kind.name}, s.flag, "", s.meaning+" ["+s.env+"]")
			if s.kind.name == "bool" {
				f.NoOptDefVal = "true"
			}
		}
	}
}

// A settingValue takes any text. Whether it is right is found with the faults of all other settings.
type settingValue struct{ text, kind string }

func (v *settingValue) String() string        { return v.text }
func (v *settingValue) Set(text string) error { v.text = text; return nil }
func (v *settingValue) IsBoolFlag() bool      { return v.kind == "bool" }
func (v *settingValue) Type() string          { return v.kind }

// secretSettings says which settings of a table have no flag.
func secretSettings(table []setting) string {
	var b strings.Builder
	b.WriteString("Every flag has a variable, in brackets, and overrides it. Secrets are variables only:")
	for _, s := range table {
		if s.flag == "" {
			fmt.Fprintf(&b, "\n  %-30s %s", s.env, s.meaning)
		}
	}
	return b.String()
}

// resolve reads every setting: the flag when it was given, else the variable, else the default. It reports every fault at
// once, by the name under which the value was given.
func resolve(sys system, flags *pflag.FlagSet) (config, error) {
	return resolveTable(sys, flags, (*config).settings, (*config).checkBroker, (*config).checkStore, (*config).checkWork)
}

func resolveTable(sys system, flags *pflag.FlagSet, table func(*config) []setting, checks ...func(*config) []settingFault) (config, error) {
	c, origins := config{program: sys.program, worker: worker.Config{Claim: sys.program.Claim}, duplicateWindow: unknownWindow}, map[string]string{}
	values, faults := ownVariables(sys.environ)
	for _, s := range table(&c) {
		value := s.fallback
		if v := values[s.env]; v != "" {
			value = v
		}
		if f := flags.Lookup(s.flag); f != nil && f.Changed {
			value, origins[s.env] = f.Value.String(), "--"+s.flag
		}
		if value == "" {
			continue
		}
		if err := s.take(value); err != nil {
			faults = append(faults, settingFault{s.env, err.Error()})
		}
	}
	for _, check := range checks {
		faults = addNew(faults, check(&c))
	}
	return c.completed(), faultsError(faults, origins)
}

// ownVariables returns the environment as a map, and a fault for every variable that looks like a setting and is none.
func ownVariables(environ []string) (map[string]string, []settingFault) {
	values := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	var faults []settingFault
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if meant := misspelt(name); meant != "" && !ofService(name, values) {
			faults = append(faults, settingFault{name, "there is no such setting; did you mean " + meant + "?"})
		}
	}
	return values, faults
}

// A settingFault is what is wrong with a setting. The variable may be empty.
type settingFault struct{ env, text string }

// Error names the variable first.
func (f settingFault) Error() string {
	if f.env == "" {
		return f.text
	}
	return f.env + ": " + f.text
}

// addNew adds the faults of variables that have none yet: the first one was found closer to its cause.
func addNew(known, more []settingFault) []settingFault {
	for _, fault := range more {
		if !slices.ContainsFunc(known, func(k settingFault) bool { return k.env == fault.env }) {
			known = append(known, fault)
		}
	}
	return known
}

// faultsError is all faults in one error, nil for none. Origins are the flags by which values of variables were given.
func faultsError(faults []settingFault, origins map[string]string) error {
	if len(faults) == 0 {
		return nil
	}
	for i, f := range faults {
		if flag := origins[f.env]; flag != "" {
			faults[i].env = flag
		}
	}
	return withCode(exitUsage, fmt.Errorf("the configuration is wrong in %d place(s):\n%w", len(faults), errors.Join(indent(faults)...)))
}
