package app

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// encoded is the document id of a key that is given as get takes it.
func encoded(t *testing.T, args []string) (string, error) {
	t.Helper()
	var k keyFlags
	flags := pflag.NewFlagSet("get", pflag.ContinueOnError)
	k.bind(flags)
	consumer := flags.String("consumer", "", "")
	require.NoError(t, flags.Parse(args))
	return k.documentID(*consumer, flags.Arg(0))
}

func TestAKeyIsEncodedAsTheWorkerKeepsIt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"text stays", []string{"1042"}, "1042"},
		{"a blank at the end counts", []string{"1042 "}, "1042~20"},
		{"a number with a fraction of zero", []string{"--kind", "number", "17.0"}, "~number.17"},
		{"a number with an exponent", []string{"--kind", "number", "1e3"}, "~number.1000"},
		{"a number below zero", []string{"--kind", "number", "--", "-5"}, "~number.-5"},
		{"a uuid in upper case", []string{"--kind", "uuid", "3F2504E0-4F89-41D3-9A0C-0305E82C3301"}, "~uuid.3f2504e0-4f89-41d3-9a0c-0305e82c3301"},
		{"a uuid without dashes", []string{"--kind", "uuid", "3f2504e04f8941d39a0c0305e82c3301"}, "~uuid.3f2504e0-4f89-41d3-9a0c-0305e82c3301"},
		{"an unsigned long with zeros in front", []string{"--kind", "ulong", "042"}, "~ulong.42"},
		{"binary in upper case", []string{"--kind", "binary", "00FF"}, "~binary.00ff"},
		{"an event", []string{"--kind", "cloudevent", "--source", "/shop", "e-1"}, "~event.~2Fshop.e-1"},
		{"a consumer", []string{"--consumer", "billing", "1042"}, "~for.billing.1042"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := encoded(t, tt.args)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestAKeyThatNoMessageHasIsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"empty", []string{""}, "the key is empty"},
		{"blank", []string{" \t"}, "no visible character"},
		{"no UTF-8", []string{"a\xff"}, "not UTF-8"},
		{"too long", []string{strings.Repeat("x", 1025)}, "1025 bytes, and at most 1024"},
		{"an unknown kind", []string{"--kind", "guid", "1"}, `--kind "guid": there is no such kind; the kinds are string, ulong`},
		{"no unsigned long", []string{"--kind", "ulong", "--", "-1"}, "from 0 to 18446744073709551615"},
		{"no uuid", []string{"--kind", "uuid", "42"}, "32 hexadecimal digits"},
		{"half a byte", []string{"--kind", "binary", "abc"}, "pairs of hexadecimal digits"},
		{"a fraction", []string{"--kind", "number", "17.5"}, "whole number"},
		{"no number", []string{"--kind", "number", "seventeen"}, "whole number"},
		{"an event without its source", []string{"--kind", "cloudevent", "e-1"}, "Give it with --source"},
		{"a source without an event", []string{"--source", "/shop", "1"}, "Leave --source out"},
		{"a consumer with a long name", []string{"--consumer", strings.Repeat("x", 65), "1"}, "--consumer: consumer has 65 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := encoded(t, tt.args)
			require.Empty(t, got)
			require.ErrorContains(t, err, tt.want)
		})
	}
}
