package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// programs are the two workers: orderworker, which creates orders, and shop, which changes documents too. Each is empty
// for the one that was built next to this program.
type programs struct{ orders, shop string }

func (p *programs) bind(f *pflag.FlagSet) {
	f.StringVar(&p.orders, "worker", "", "the worker's program; the default is orderworker next to this one")
	f.StringVar(&p.shop, "shop", "", "the program for changes; the default is shop next to this one")
}

// find replaces both by the paths of programs that exist.
func (p *programs) find() (err error) {
	if p.orders, err = findProgram("--worker", p.orders, "orderworker"); err == nil {
		p.shop, err = findProgram("--shop", p.shop, "shop")
	}
	return err
}

// findProgram returns the path of a program: the given one, or the one that was built next to this program.
func findProgram(flag, given, name string) (string, error) {
	path := given
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("cannot tell where this program is: %w. Give %s PATH", err, flag)
		}
		if runtime.GOOS == "windows" {
			name += ".exe"
		}
		path = filepath.Join(filepath.Dir(self), name)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil && given == "":
		return "", fmt.Errorf("the program %s is not built: there is no %s. Run make build, or give %s PATH", name, path, flag)
	case err != nil:
		return "", fmt.Errorf("%s: %w", flag, err)
	case info.IsDir():
		return "", fmt.Errorf("%s: %s is a folder. Give the program itself", flag, path)
	}
	return path, nil
}

// workerEnvironment is our own environment without what would point a worker somewhere else than at the embedded one, and
// with the given settings.
func workerEnvironment(environ, settings []string) []string {
	env := slices.DeleteFunc(slices.Clone(environ), func(pair string) bool {
		return slices.ContainsFunc([]string{"SERVICEBUS_", "COSMOS_", "WORKER_", "AZURE_", "OTEL_"}, func(prefix string) bool { return strings.HasPrefix(pair, prefix) })
	})
	return append(env, settings...)
}
