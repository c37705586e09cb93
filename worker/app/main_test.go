package app

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
)

// runAs executes a command line of a program with another name.
func runAs(t *testing.T, p Program, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Run(t.Context(), p, Process{Args: args, Environ: environ, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
	return code, out.String(), errs.String()
}

func TestAProgramThatCannotBeIsRefusedWithAllItsFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		spoil func(*Program)
		want  string
	}{
		{"no name", func(p *Program) { p.Name = "" }, "Name is"},
		{"a name in capitals", func(p *Program) { p.Name = "Shop" }, "Name is"},
		{"a name that begins with a digit", func(p *Program) { p.Name = "1shop" }, "Name is"},
		{"a name with two hyphens in a row", func(p *Program) { p.Name = "shop--payments" }, "Name is"},
		{"a name that ends with a hyphen", func(p *Program) { p.Name = "shop-" }, "Name is"},
		{"a name with a line break", func(p *Program) { p.Name = "shop\n" }, "Name is"},
		{"a long name", func(p *Program) { p.Name = strings.Repeat("a", 41) }, "Name is"},
		{"no handler", func(p *Program) { p.Handler = nil }, "Handler is missing"},
		{"no types", func(p *Program) { p.Types = nil }, "Types is empty"},
		{"a type without a name", func(p *Program) { p.Types = []string{"payment", ""} }, "Types has an empty name"},
		{"a type twice", func(p *Program) { p.Types = []string{"payment", "payment"} }, `Types names "payment" twice`},
		{"a long version", func(p *Program) { p.Version = strings.Repeat("1", 65) }, "Version has more than 64"},
		{"a summary of two lines", func(p *Program) { p.Summary = "a\nb" }, "Summary has a line break"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := testProgram()
			tt.spoil(&p)
			code, stdout, stderr := runAs(t, p, nil, "version")
			require.Equal(t, exitUsage, code)
			require.Empty(t, stdout)
			require.Contains(t, stderr, tt.want)
			require.Contains(t, stderr, "1 place(s)")
		})
	}
	code, _, stderr := runAs(t, Program{}, nil, "--help")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "3 place(s)")
}

func TestAProgramAppearsUnderItsOwnNameOnly(t *testing.T) {
	t.Parallel()
	p := testProgram()
	p.Name, p.Version, p.Summary = "shop-payments", "v7", "Book payments"
	for _, args := range [][]string{
		{"--help"}, {"version"}, {"nope"}, {"help", "nope"}, {"run", "--help"}, {"check", "--help"}, {"send", "--help"}, {"get", "--help"}, {"deadletter", "--help"},
		{"healthcheck", "--help"}, {"run", "--queue", "orders/$DeadLetterQueue"},
		{"deadletter", "list", "--help"}, {"deadletter", "show", "--help"}, {"deadletter", "apply", "--help"}, {"deadletter", "serve", "--help"},
	} {
		_, stdout, stderr := runAs(t, p, nil, args...)
		require.Contains(t, stdout+stderr, "shop-payments", "%v", args)
		text := strings.ReplaceAll(stdout+stderr, "github.com/orderworker/orderworker/", "")
		require.NotContains(t, text, "orderworker", "%v", args)
	}
	_, stdout, _ := runAs(t, p, nil, "version")
	require.Regexp(t, `^shop-payments v7 go`, stdout)
	_, stdout, _ = runAs(t, p, nil)
	require.Contains(t, stdout, "Book payments")
}

func TestBothServicesLearnTheNameOfTheProgram(t *testing.T) {
	t.Parallel()
	require.Equal(t, "shop-payments", applicationID("shop-payments"))
	require.Len(t, applicationID(strings.Repeat("a", 40)), 24)
	_, settings := serve(t, testenv.Options{})
	c, err := settle(t, environOf(settings))
	require.NoError(t, err)
	k, err := newConnector(c)
	require.NoError(t, err)
	require.Equal(t, "orderworker", k.storeOptions(&telemetry{}, nil).ApplicationID)
}
