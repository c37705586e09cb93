package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheMapNamesWhatExists looks up every file and folder that docs/architecture.md names.
func TestTheMapNamesWhatExists(t *testing.T) {
	page, err := os.ReadFile("../../docs/architecture.md")
	require.NoError(t, err)
	paths := regexp.MustCompile(`\b(worker|cosmosstore|internal|testenv|cmd|docs|infra|scripts)(/[A-Za-z0-9_.-]*[A-Za-z0-9_])*\b`).FindAllString(string(page), -1)
	require.Greater(t, len(paths), 40)
	for _, path := range paths {
		_, err := os.Stat("../../" + path)
		require.NoError(t, err, "the map names it")
	}
}
