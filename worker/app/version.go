package app

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(sys system) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this program, and the commit that it was built from with its date", Args: needArgs(),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(sys.stdout, "%s %s%s %s %s/%s\n", sys.program.Name, sys.program.Version, builtFrom(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// builtFrom is " commit C of TIME" as the Go toolchain recorded it, with a word on files that were changed, or nothing.
func builtFrom() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	vcs := map[string]string{}
	for _, s := range info.Settings {
		vcs[s.Key] = s.Value
	}
	return commitText(vcs["vcs.revision"], vcs["vcs.time"], vcs["vcs.modified"] == "true")
}

func commitText(revision, time string, modified bool) string {
	switch {
	case revision == "":
		return ""
	case modified:
		return fmt.Sprintf(" commit %s of %s with changes", revision, time)
	}
	return fmt.Sprintf(" commit %s of %s", revision, time)
}
