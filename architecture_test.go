// Package orderworker_test holds the rules that no compiler checks: who may import whom, what the production program is made
// of, and how every file is written.
package orderworker_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

const module = "github.com/orderworker/orderworker/"

// arrows say what a package and everything that it is built from must not contain.
var arrows = []struct {
	packages string
	never    []string
	because  string
}{
	{"./cmd/orderworker", []string{module + "testenv", module + "worker/storetest", module + "worker/workertest", "testing"}, "emulators and test helpers have no business in production"},
	{"./docs/examples/...", []string{module + "testenv", module + "worker/storetest", "testing"}, "an example is a program like any other"},
	{"./worker", []string{"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos", module + "cosmosstore", module + "testenv", "testing"}, "the engine works with any store"},
	{"./internal/deadletter/...", []string{"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos", module + "cosmosstore", module + "testenv"}, "the review works with any store"},
	{"./worker/admission", []string{module + "cosmosstore", module + "testenv", "net/http/httptest"}, "admission is a pure function of a message"},
	{"./worker/fingerprint", []string{"github.com/Azure"}, "a fingerprint is about bytes alone"},
	{"./worker/identity", []string{"github.com/Azure"}, "a document id is a pure function of a key"},
	{"./worker/storetest", []string{"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos", module + "cosmosstore", module + "testenv", "github.com/stretchr"}, "the contract fits every store, and brings no library"},
	{"./cosmosstore", []string{module + "testenv", module + "worker/storetest", module + "internal/page", "testing"}, "the store knows the engine and Cosmos DB, nothing else"},
	{"./testenv/...", []string{"github.com/Azure", module + "worker", module + "cosmosstore", module + "cmd"}, "a mistake that both sides share would cancel itself out"},
	{"./cmd/devenv", []string{"github.com/Azure", module + "worker", module + "cosmosstore"}, "the demonstration starts the real program and judges it from outside"},
}

func TestNobodyImportsWhatHeMustNot(t *testing.T) {
	for _, a := range arrows {
		t.Run(a.packages, func(t *testing.T) {
			for _, dep := range goList(t, "-deps", "-f", "{{.ImportPath}}", a.packages) {
				for _, never := range a.never {
					require.False(t, dep == never || strings.HasPrefix(dep, never+"/"),
						"%s is built from %s: %s. See who imports it with: go list -deps -f '{{.ImportPath}} {{.Imports}}' %s", a.packages, dep, a.because, a.packages)
				}
			}
		})
	}
}

func TestOnlyTheStoreImportsTheCosmosClient(t *testing.T) {
	allowed := []string{module + "cosmosstore", module + "worker/app"}
	for _, row := range goList(t, "-f", "{{.ImportPath}} {{.Imports}}", "./...") {
		path, imports, _ := strings.Cut(row, " ")
		if strings.Contains(imports, "sdk/data/azcosmos") {
			require.Contains(t, allowed, path)
		}
	}
}

// TestTheProductionProgramIsMadeOfWhatWasReviewed compares the modules in the program with a list that people have read.
// After a change that is wanted: go test . -run Reviewed -update.
func TestTheProductionProgramIsMadeOfWhatWasReviewed(t *testing.T) {
	modules := goList(t, "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./cmd/orderworker")
	slices.Sort(modules)
	got := strings.Join(slices.Compact(modules), "\n") + "\n"
	const golden = "testdata/modules.txt"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "the program is built from other modules than %s says", golden)
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, row := range goList(t, "-f", "{{.ImportPath}}|{{len .GoFiles}}|{{.Doc}}", "./...") {
		fields := strings.SplitN(row, "|", 3)
		if fields[1] != "0" {
			require.NotEmpty(t, fields[2], "%s has no package comment", fields[0])
		}
	}
}

// TestATestThatSleepsDoesSoInABubble looks at packages, since the bubble often stands in a helper in another file.
func TestATestThatSleepsDoesSoInABubble(t *testing.T) {
	sleeps, bubbles := map[string]string{}, map[string]bool{}
	eachGoFile(t, func(path string, file *ast.File, _ *token.FileSet) {
		dir := filepath.Dir(path)
		if calls(file, "time", "Sleep") {
			sleeps[dir] = path
			require.True(t, imports(file, "testing") || strings.HasSuffix(path, "_test.go"), "%s calls time.Sleep and is no test", path)
		}
		bubbles[dir] = bubbles[dir] || imports(file, "testing/synctest")
	})
	for dir, path := range sleeps {
		require.True(t, bubbles[dir], "%s calls time.Sleep, and no test of its package is in a testing/synctest bubble", path)
	}
}

func TestShippedCodeHasNoInitAndNoLongFiles(t *testing.T) {
	eachGoFile(t, func(path string, file *ast.File, fset *token.FileSet) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		require.LessOrEqual(t, fset.Position(file.End()).Line, 500, "%s is too long; one concept per file", path)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				require.NotEqual(t, "init", f.Name.Name, "%s has an init function", path)
			}
		}
	})
}

// TestNoFileHidesAnything looks for unfinished work and for characters that the eye does not see.
func TestNoFileHidesAnything(t *testing.T) {
	marks := []string{"TO" + "DO", "FIX" + "ME", "XX" + "X:"}
	eachFile(t, []string{".go", ".md", ".bicep", ".json", ".sh", ".yaml", ".yml", ".mod", "Makefile", "Dockerfile"}, func(path string, text []byte) {
		for _, mark := range marks {
			require.False(t, bytes.Contains(text, []byte(mark)), "%s has a %s", path, mark)
		}
		for i, r := range string(text) {
			hidden := r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar)
			require.False(t, hidden, "%s has the character %U at byte %d; write it as an escape", path, r, i)
		}
	})
}

func goList(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	// What counts is the program as it is shipped, wherever the test runs.
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(t, err, errs.String())
	return slices.DeleteFunc(strings.Split(string(out), "\n"), func(s string) bool { return s == "" })
}

func eachFile(t *testing.T, endings []string, f func(path string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "bin" || d.Name() == ".git"):
			return filepath.SkipDir
		case d.IsDir() || !slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(path, e) }):
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			f(filepath.ToSlash(path), text)
		}
		return err
	})
	require.NoError(t, err)
}

func eachGoFile(t *testing.T, f func(path string, file *ast.File, fset *token.FileSet)) {
	t.Helper()
	eachFile(t, []string{".go"}, func(path string, text []byte) {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
		require.NoError(t, err)
		f(path, file, fset)
	})
}

func imports(file *ast.File, path string) bool {
	return slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == strconv.Quote(path) })
}

func calls(file *ast.File, pkg, name string) bool {
	found := false
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			x, isIdent := s.X.(*ast.Ident)
			found = found || (isIdent && fmt.Sprint(x.Name, ".", s.Sel.Name) == pkg+"."+name)
		}
		return !found
	})
	return found
}
