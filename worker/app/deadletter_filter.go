package app

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/internal/messagejson"
)

// filterFlags are the flags that select dead letters.
type filterFlags struct {
	verdicts, reasons []string
	messageID, text   string
	olderThan, since  string
	before            string
	from, to          int64
}

func (f *filterFlags) bind(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.verdicts, "verdict", nil, "only these verdicts: "+kindNames())
	flags.StringArrayVar(&f.reasons, "reason", nil, "only those dead-lettered for this reason, as it is, such as MaxDeliveryCountExceeded, or (none); may be repeated")
	flags.StringVar(&f.messageID, "message-id", "", "only those with this MessageId")
	flags.StringVar(&f.text, "text", "", "only those that carry this text in an id, a property or the body, in any case")
	flags.StringVar(&f.olderThan, "older-than", "", "only those that came in longer ago, such as 24h or P7D")
	flags.StringVar(&f.since, "since", "", "only those that came in within this time, such as 2h")
	flags.StringVar(&f.before, "before", "", "only those that came in before this moment, such as 2026-03-01T12:00:00Z")
	flags.Int64Var(&f.from, "from-sequence", 0, "only those from this sequence number on")
	flags.Int64Var(&f.to, "to-sequence", 0, "only those up to this sequence number")
}

func kindNames() string {
	var names []string
	for _, k := range deadletter.Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// filter reads the flags.
func (f *filterFlags) filter(now time.Time) (deadletter.Filter, error) {
	out := deadletter.Filter{Reasons: f.reasons, MessageID: f.messageID, Text: f.text, FirstSequence: f.from, LastSequence: f.to}
	for _, text := range f.verdicts {
		k, ok := deadletter.ParseKind(text)
		if !ok {
			return out, withCode(exitUsage, fmt.Errorf("--verdict: %q is not one of %s", text, kindNames()))
		}
		out.Kinds = append(out.Kinds, k)
	}
	if f.olderThan != "" {
		d, err := parseAgo("--older-than", f.olderThan)
		if err != nil {
			return out, err
		}
		out.Before = now.Add(-d)
	}
	if f.before != "" {
		t, err := time.Parse(time.RFC3339, f.before)
		if err != nil {
			return out, withCode(exitUsage, fmt.Errorf("--before: %q is not a moment such as 2026-03-01T12:00:00Z", f.before))
		}
		if out.Before.IsZero() || t.Before(out.Before) {
			out.Before = t
		}
	}
	if f.since != "" {
		d, err := parseAgo("--since", f.since)
		if err != nil {
			return out, err
		}
		out.After = now.Add(-d)
	}
	return out, nil
}

// parseAgo reads how long ago something was.
func parseAgo(flag, text string) (time.Duration, error) {
	d, err := messagejson.ParseDuration(text)
	if err == nil && d < 0 {
		err = fmt.Errorf("%q lies in the future. Give how long ago it was, such as 2h", text)
	}
	if err != nil {
		return 0, withCode(exitUsage, fmt.Errorf("%s: %w", flag, err))
	}
	return d, nil
}

// checkFlags refuses values that would select or allow more than was meant: a filter from an empty variable of a script
// would select every dead letter, and a number below zero would be no bound.
func checkFlags(c *cobra.Command, _ []string) error {
	var fault error
	c.Flags().Visit(func(f *pflag.Flag) {
		text := f.Value.String()
		switch {
		case fault != nil:
		case selects(c, f.Name) && (text == "" || text == "[]" || text == `[""]`):
			fault = fmt.Errorf("--%s is empty. Give a value, or leave it out to select all", f.Name)
		case (strings.HasPrefix(f.Value.Type(), "int") || f.Value.Type() == "duration") && strings.HasPrefix(text, "-"):
			fault = fmt.Errorf("--%s %s is less than nothing. Give zero or more, or leave it out", f.Name, text)
		}
	})
	return withCode(exitUsage, fault)
}

// selected reports whether a flag that selects dead letters was given.
func selected(c *cobra.Command) bool {
	found := false
	c.Flags().Visit(func(f *pflag.Flag) {
		found = found || selects(c, f.Name) || f.Name == "from-sequence" || f.Name == "to-sequence"
	})
	return found
}

// selects reports whether a flag selects dead letters. The reason of a command without a filter is why it is done.
func selects(c *cobra.Command, name string) bool {
	if c.Flags().Lookup("verdict") == nil {
		return name == "message-id" || name == "plan"
	}
	return slices.Contains([]string{"verdict", "reason", "message-id", "text", "older-than", "since", "before"}, name)
}

// sequences reads sequence numbers.
func sequences(args []string) ([]int64, error) {
	out := make([]int64, 0, len(args))
	for _, text := range args {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n == 0 {
			return nil, withCode(exitUsage, fmt.Errorf("%q is not a sequence number; list shows them", text))
		}
		out = append(out, n)
	}
	return out, nil
}
