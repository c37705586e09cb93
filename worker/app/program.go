package app

import (
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
	"unicode/utf8"

	"github.com/orderworker/orderworker/worker"
)

// A Program is a message consumer: a handler and what the program around it is called.
type Program struct {
	// Name names the program in its help, errors, logs and telemetry, to both services, in the records that it stores and in the
	// messages that it dead-letters. It is made of lower-case letters, digits and hyphens, begins with a letter and has at most
	// 40 characters. It stays the same for the life of the program: the review refuses messages of another name.
	Name string
	// Version is the version of the program, at most 64 bytes. Defaults to what the Go toolchain recorded in the binary.
	Version string
	// Summary is one line for the help. Defaults to what every such program does.
	Summary string
	// Handler says which documents become of a message. It is a value like any other: one with dependencies, such as an HTTP
	// client, has them as fields. Make it without asking the network, since every command line makes it, also that of --help.
	Handler worker.Handler
	// Types are the types of the documents that Handler returns, the one of the first document first. A container that cannot
	// hold them is refused at the start.
	Types []string
	// Changes tells that Handler changes documents that exist. Each message then gets an inbox record of its own.
	Changes bool
	// Claim, with a lease, claims each message in the store before Handler runs, for a handler that has effects outside of the store.
	// Each message then gets an inbox record of its own.
	Claim worker.ClaimConfig
}

const (
	maxName    = 40
	maxVersion = 64
)

// validName is what a host name, a metric's attribute and a command line all take.
var validName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// withDefaults returns a copy in which no empty text means a default.
func (p Program) withDefaults() Program {
	if p.Version == "" {
		p.Version = builtVersion()
	}
	if p.Summary == "" {
		p.Summary = "Turn at-least-once messages into documents that are committed once"
	}
	return p
}

// validate reports every fault at once. What a container cannot hold is the store's to say, when its settings are known.
func (p Program) validate() error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf("  - "+format, args...))
		}
	}
	check(len(p.Name) <= maxName && validName.MatchString(p.Name),
		"Name is %q: give lower-case letters, digits and single hyphens between them, a letter first, at most %d characters, such as shop-payments", p.Name, maxName)
	check(p.Handler != nil, "Handler is missing: give the function that says which documents become of a message, such as worker.HandlerFunc(payment)")
	check(len(p.Types) > 0 || p.Changes, "Types is empty: name the types of the documents that the handler returns")
	check(len(p.Version) <= maxVersion && utf8.ValidString(p.Version), "Version has more than %d bytes, or is not UTF-8", maxVersion)
	check(!strings.ContainsAny(p.Summary, "\r\n"), "Summary has a line break: give one line")
	seen := map[string]bool{}
	for _, t := range p.Types {
		check(t != "", "Types has an empty name")
		check(!seen[t] || t == "", "Types names %q twice", t)
		seen[t] = true
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("the app.Program is wrong in %d place(s):\n%w", len(faults), errors.Join(faults...))
}

// builtVersion is the module's version where the toolchain knows it, else the commit.
func builtVersion() string {
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
