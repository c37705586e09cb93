package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(sys system) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this program", Args: needArgs(),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(sys.stdout, "orderworker %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// version is the module's version where the toolchain knows it, otherwise the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	return "development"
}
