package app

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usage writes how a command is used: the flags of its own come before those of the settings, which are many and the same
// everywhere, and in the order of their table.
func usage(c *cobra.Command) error {
	table := &pflag.FlagSet{SortFlags: false}
	for _, s := range new(config).settings() {
		f := c.Flag(s.flag)
		if f == nil {
			continue
		}
		if _, ok := f.Value.(*settingValue); ok {
			shown := *f
			table.AddFlag(&shown)
			f.Hidden = true // from cobra's own text
		}
	}
	err := new(cobra.Command).UsageFunc()(c)
	if table.HasFlags() {
		fmt.Fprintf(c.OutOrStderr(), "\nSettings:\n%s", table.FlagUsages())
	}
	return err
}
