package orderworker_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// platforms are those of a release, whose programs may link different modules.
var platforms = []string{"linux", "darwin", "windows"}

// allowedLicences are told by a sentence of their text. A module under any other is not linked before someone has read it.
var allowedLicences = []struct{ name, sentence string }{
	{"Apache-2.0", "Apache License"},
	{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"BSD", "Redistribution and use in source and binary forms"},
}

// TestTheNoticesAreThoseOfTheLinkedModules compares the notices with the licences of all modules in the released programs.
// After a change that is wanted: go test . -run Notices -update.
func TestTheNoticesAreThoseOfTheLinkedModules(t *testing.T) {
	t.Parallel()
	const path = "THIRD-PARTY-NOTICES"
	got := notices(t, linkedModules(t))
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, string(want) == got, "%s is not made of the linked modules: go test . -run Notices -update", path)
}

func TestOnlyKnownLicencesAreAllowed(t *testing.T) {
	t.Parallel()
	require.Equal(t, "MIT", licenceName("\nPermission is hereby granted, free of charge, to any\nperson obtaining a copy of"))
	require.Empty(t, licenceName("GNU GENERAL PUBLIC LICENSE Version 3"))
	require.Empty(t, licenceName("GNU AFFERO GENERAL PUBLIC LICENSE, not the Apache License"))
}

// linkedModules are lines of path, version and folder.
func linkedModules(t *testing.T) []string {
	t.Helper()
	var rows []string
	for _, platform := range platforms {
		c := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if .Version}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}", "./cmd/orderworker")
		c.Env = append(os.Environ(), "GOOS="+platform, "GOARCH=amd64", "CGO_ENABLED=0")
		out, err := c.Output()
		require.NoError(t, err)
		rows = append(rows, strings.Split(strings.TrimSpace(string(out)), "\n")...)
	}
	rows = slices.DeleteFunc(rows, func(row string) bool { return row == "" })
	slices.Sort(rows)
	return slices.Compact(rows)
}

func notices(t *testing.T, modules []string) string {
	t.Helper()
	out := strings.Builder{}
	out.WriteString("Third-party notices of orderworker: the modules linked into its programs, and their licences.\n" +
		"The Go runtime and standard library, which are linked too, are under the same licence as golang.org/x/sync.\n")
	for _, row := range modules {
		fields := strings.SplitN(row, " ", 3)
		licence := rootTexts(t, fields[2], "LICEN", "COPYING")
		name := licenceName(licence) // a notice names the licences of others too
		require.NotEmpty(t, name, "%s has no licence that is allowed", fields[0])
		fmt.Fprintf(&out, "\n%s\n%s %s (%s)\n\n%s\n", strings.Repeat("=", 80), fields[0], fields[1], name, strings.TrimSpace(licence+"\n\n"+rootTexts(t, fields[2], "NOTICE")))
	}
	return out.String()
}

// rootTexts are the files at the root of a module whose names begin so.
func rootTexts(t *testing.T, dir string, prefixes ...string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var texts []string
	for _, e := range entries {
		upper := strings.ToUpper(e.Name())
		named := slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(upper, p) })
		if e.IsDir() || filepath.Ext(upper) == ".GO" || !named {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		texts = append(texts, strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")))
	}
	return strings.Join(texts, "\n\n")
}

// licenceName is the allowed licence that a text is, or "".
func licenceName(text string) string {
	plain := strings.Join(strings.Fields(text), " ")
	if strings.Contains(strings.ToUpper(plain), "GENERAL PUBLIC LICENSE") {
		return ""
	}
	for _, l := range allowedLicences {
		if strings.Contains(plain, l.sentence) {
			return l.name
		}
	}
	return ""
}
