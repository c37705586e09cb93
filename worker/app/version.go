package app

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func newVersion(sys system) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this program", Args: needArgs(),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(sys.stdout, "%s %s %s %s/%s\n", sys.program.Name, sys.program.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
