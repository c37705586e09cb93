package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOutcomesAreReadFromVerboseOutput(t *testing.T) {
	output := []byte("=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n    --- PASS: TestB/sub (0.00s)\n" +
		"--- FAIL: TestB (0.01s)\n--- SKIP: TestC (0.00s)\n--- PASS: TestOther (0.00s)\n=== RUN   TestD\npanic: boom\n")
	require.Equal(t, map[string]string{"TestA": passed, "TestB": failed, "TestC": skipped, "TestD": failed},
		outcomes([]string{"TestA", "TestB", "TestC", "TestD"}, output))
}

func TestTheReportFailsOnlyForUnknownFailures(t *testing.T) {
	tests := []struct {
		name    string
		results map[string]string
		code    int
		want    string
	}{
		{"all pass", map[string]string{"TestA": passed}, 0, "azcosmos emulator tests: 1 passed, 0 failed, 0 skipped of 1\n"},
		{"all are skipped", map[string]string{"TestA": skipped}, 1,
			"skipped: TestA\nNOTHING PASSED: this run says nothing\nazcosmos emulator tests: 0 passed, 0 failed, 1 skipped of 1\n"},
		{"only a known failure", map[string]string{"TestKnown": failed}, 1,
			"known failure: TestKnown: because\nNOTHING PASSED: this run says nothing\nazcosmos emulator tests: 0 passed, 1 failed, 0 skipped of 1\n"},
		{"another failure", map[string]string{"TestA": failed, "TestB": skipped}, 1,
			"FAILED: TestA\nskipped: TestB\nNOTHING PASSED: this run says nothing\nazcosmos emulator tests: 0 passed, 1 failed, 1 skipped of 2\n"},
		{"a known failure that passes", map[string]string{"TestKnown": passed}, 0,
			"passes now, take it off the list of known failures: TestKnown\nazcosmos emulator tests: 1 passed, 0 failed, 0 skipped of 1\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			require.Equal(t, tt.code, report(&out, "azcosmos emulator tests", tt.results, map[string]string{"TestKnown": "because"}))
			require.Equal(t, tt.want, out.String())
		})
	}
}

func TestAddressesAreReplacedAndOthersStay(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o444))
	}
	write("emulator_test.go", `newEmulatorTestsWithEndpoint(t, "https://localhost:8081/") newEmulatorTestsWithEndpoint(t, "https://localhost:8903/") "idp": "https://localhost:8081/"`)
	write("emulator_cosmos_global_endpoint_manager_test.go", `"https://localhost:8081/" "https://127.0.0.1:8081/"`)
	require.NoError(t, redirect(dir, addresses{routing: "r:1", advertised: "a:1", compute: "c:2"}))

	text, err := os.ReadFile(filepath.Join(dir, "emulator_test.go"))
	require.NoError(t, err)
	require.Equal(t, `newEmulatorTestsWithEndpoint(t, "https://r:1/") newEmulatorTestsWithEndpoint(t, "https://c:2/") "idp": "https://localhost:8081/"`, string(text))
	text, err = os.ReadFile(filepath.Join(dir, "emulator_cosmos_global_endpoint_manager_test.go"))
	require.NoError(t, err)
	require.Equal(t, `"https://r:1/" "https://a:1/"`, string(text))

	require.ErrorContains(t, redirect(dir, addresses{}), "no longer has")
}

func TestEmulatorTestsAreFoundByFile(t *testing.T) {
	dir := t.TempDir()
	_, err := emulatorTests(dir)
	require.ErrorContains(t, err, "no emulator tests")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "emulator_cosmos_x_test.go"),
		[]byte("package x\n\nfunc TestB(t *testing.T) {}\n\nfunc helper(t *testing.T) {}\nfunc TestA(t *testing.T) {}\n"), 0o644))
	names, err := emulatorTests(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"TestA", "TestB"}, names)
}

func TestBadArgumentsEndWithTwo(t *testing.T) {
	var out, errs bytes.Buffer
	require.Equal(t, 2, run(t.Context(), []string{"-nonsense"}, &out, &errs))
	require.Contains(t, errs.String(), "nonsense")
	require.Zero(t, run(t.Context(), []string{"-h"}, &out, &errs))
}
