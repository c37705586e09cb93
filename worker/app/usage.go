package app

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usage writes how a command is used: the flags of its own come before those of the settings, which are many and the same
// everywhere.
func usage(c *cobra.Command) error {
	var b strings.Builder
	use := c.UseLine()
	if c.HasAvailableSubCommands() {
		use = c.CommandPath() + " COMMAND"
	}
	fmt.Fprintf(&b, "Usage:\n  %s\n", use)
	if c.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", c.Example)
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nCommands:\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, "  %-*s  %s\n", c.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
	own, table := &pflag.FlagSet{}, &pflag.FlagSet{SortFlags: false}
	for _, flags := range []*pflag.FlagSet{c.LocalFlags(), c.InheritedFlags()} {
		flags.VisitAll(func(f *pflag.Flag) {
			if _, ok := f.Value.(*settingValue); !ok {
				own.AddFlag(f)
			}
		})
	}
	for _, s := range new(config).settings() {
		if f := c.Flag(s.flag); f != nil && own.Lookup(s.flag) == nil {
			table.AddFlag(f)
		}
	}
	fmt.Fprintf(&b, "\nFlags:\n%s", own.FlagUsages())
	if table.HasFlags() {
		fmt.Fprintf(&b, "\nSettings:\n%s", table.FlagUsages())
	}
	_, err := c.OutOrStderr().Write([]byte(b.String()))
	return err
}
