package app

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/orderworker/orderworker/internal/messagejson"
)

// A setting is one row of the table of settings: a variable of the environment, and a flag that overrides it.
type setting struct {
	env string
	// flag is empty for secrets, which have no business on a command line.
	flag     string
	fallback string
	meaning  string
	kind     kind
}

// A kind is a type of value: what help calls it, and how a value is taken.
type kind struct {
	name  string
	apply func(*config, string) error
}

// bind adds a flag for every setting that has one.
func bind(flags *pflag.FlagSet) { bindTable(flags, settings()) }

// bindBroker adds the flags of a command that only needs Service Bus.
func bindBroker(flags *pflag.FlagSet) { bindTable(flags, brokerSettings()) }

func bindTable(flags *pflag.FlagSet, table []setting) {
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
	return resolveTable(sys, flags, settings(), (*config).checkBroker, (*config).checkStore, (*config).checkWork, (*config).checkParts)
}

// resolveBroker is resolve for a command that only needs Service Bus.
func resolveBroker(sys system, flags *pflag.FlagSet) (config, error) {
	return resolveTable(sys, flags, brokerSettings(), (*config).checkBroker)
}

func resolveTable(sys system, flags *pflag.FlagSet, table []setting, checks ...func(*config) []settingFault) (config, error) {
	values, faults := ownVariables(sys.environ)
	c, origins := config{program: sys.program, duplicateWindow: unknownWindow}, map[string]string{}
	for _, s := range table {
		value := s.fallback
		if v := values[s.env]; v != "" {
			value = v
		}
		if f := flags.Lookup(s.flag); s.flag != "" && f != nil && f.Changed {
			value, origins[s.env] = f.Value.String(), "--"+s.flag
		}
		if value == "" {
			continue
		}
		if err := s.take(&c, value); err != nil {
			faults = append(faults, settingFault{env: s.env, text: err.Error()})
		}
	}
	for _, check := range checks {
		faults = addNew(faults, check(&c))
	}
	return c, faultsError(faults, origins)
}

// take applies a value. Quotes around it would be part of it: a shell takes them away, but docker's --env-file and some forms
// do not, and a consumer that has them in its name is another consumer.
func (s setting) take(c *config, value string) error {
	for _, quote := range []string{`"`, `'`} {
		if len(value) > 1 && strings.HasPrefix(value, quote) && strings.HasSuffix(value, quote) {
			return errors.New("the value is in quotes, which are part of it here. Remove them: only a shell takes them away, docker --env-file does not")
		}
	}
	return s.kind.apply(c, value)
}

// ownVariables returns the environment as a map, and a fault for every variable that looks like a setting and is none.
func ownVariables(environ []string) (map[string]string, []settingFault) {
	values, table := map[string]string{}, settings()
	var faults []settingFault
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if meant := misspelt(name, table); meant != "" && !ofService(name, values) {
			faults = append(faults, settingFault{env: name, text: "there is no such setting; did you mean " + meant + "?"})
		}
	}
	return values, faults
}

func text(field func(*config) *string) kind {
	return kind{"string", func(c *config, v string) error { *field(c) = v; return nil }}
}

// queueName takes the name of a queue, and not the path of what belongs to a queue or a topic.
func queueName(c *config, v string) error {
	path := strings.ToLower(v)
	switch {
	case strings.Contains(path, "sharedaccess"), strings.Contains(path, "endpoint="): // it holds a secret, so nothing of it is repeated
		return errors.New("this is a connection string. Give the name of the queue, and the connection string in SERVICEBUS_CONNECTION_STRING")
	case strings.Contains(path, "/subscriptions/"):
		return fmt.Errorf("%q is a subscription of a topic. Let it forward to a queue, and give that queue", v)
	case path != strings.TrimSpace(path):
		return fmt.Errorf("%q begins or ends with a blank or a line break, which no queue has in its name", v)
	case strings.Contains(path, "/$"):
		return fmt.Errorf("%q is a part of a queue. Give the queue itself; for its dead letters there is the command deadletter", v)
	}
	c.queue = v
	return nil
}

// longest is a limit for durations that have none of their own.
const longest = 100 * 365 * 24 * time.Hour

func duration(field func(*config) *time.Duration, least, most time.Duration) kind {
	return kind{"duration", func(c *config, v string) error {
		d, err := messagejson.ParseDuration(v)
		switch {
		case err != nil:
			return err
		case d < least:
			return fmt.Errorf("%s is less than %s, the least that makes sense", v, short(least))
		case d > most:
			return fmt.Errorf("%s is more than %s, the most that is possible", v, short(most))
		}
		*field(c) = d
		return nil
	}}
}

// short writes a duration without zeros at its end: 5m, not 5m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func whole(field func(*config) *int, least, most int) kind {
	return kind{"int", func(c *config, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < least || n > most {
			return fmt.Errorf("%q is not a whole number from %d to %d", v, least, most)
		}
		*field(c) = n
		return nil
	}}
}

func yesNo(field func(*config) *bool) kind {
	return kind{"bool", func(c *config, v string) error {
		b, err := strconv.ParseBool(v)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", v)
		}
		*field(c) = b
		return nil
	}}
}

func oneOf(field func(*config) *string, words ...string) kind {
	return kind{strings.Join(words, "|"), func(c *config, v string) error {
		if !slices.Contains(words, v) {
			return fmt.Errorf("%q is not one of %s", v, strings.Join(words, ", "))
		}
		*field(c) = v
		return nil
	}}
}

func pointers(field func(*config) *[]string) kind {
	return kind{"pointers", func(c *config, v string) error {
		var all []string
		for p := range strings.SplitSeq(v, ",") {
			p = strings.TrimSpace(p)
			if !strings.HasPrefix(p, "/") {
				return fmt.Errorf("%q is not a JSON pointer; write /name or /outer/inner, separated by commas", p)
			}
			all = append(all, p)
		}
		*field(c) = all
		return nil
	}}
}
