package app

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

// linkedVersion is set by the linker when an image is built, where there is no repository to ask.
var linkedVersion string

// version is what the linker was told, else the module's version where the toolchain knows it, else the commit.
func version() string {
	if linkedVersion != "" {
		return linkedVersion
	}
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
