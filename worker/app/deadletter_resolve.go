package app

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/worker"
)

// resolutionFlags are what a person found out about a claim.
type resolutionFlags struct{ as, outcome string }

func (f *resolutionFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.as, "as", "", "what was found out: done or not-done")
	flags.StringVar(&f.outcome, "outcome", "", "with --as done, a JSON value to record, such as {\"charge\":\"ch_1\"}; get shows it")
}

func (f *resolutionFlags) read() (deadletter.Resolution, error) {
	r := deadletter.Resolution{Done: f.as == "done", Outcome: []byte(f.outcome)}
	switch {
	case f.as != "done" && f.as != "not-done":
		return r, withCode(exitUsage, fmt.Errorf("--as is %q. Give done or not-done: what you found out at the other system", f.as))
	case r.Done && (!json.Valid(r.Outcome) || len(r.Outcome) > worker.MaxOutcome):
		return r, withCode(exitUsage, fmt.Errorf("--outcome is not a JSON value of at most %d bytes. Say what was done, such as --outcome '{\"charge\":\"ch_1\"}'", worker.MaxOutcome))
	case !r.Done && f.outcome != "":
		return r, withCode(exitUsage, errors.New("--outcome belongs to --as done: what was not done came to nothing"))
	}
	return r, nil
}
