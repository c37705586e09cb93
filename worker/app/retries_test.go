package app

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/worker"
)

// TestEveryRetryNumberIsInTheTable compares the page for operators with the settings, and with what the worker and the store can
// be configured with.
func TestEveryRetryNumberIsInTheTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(page), "\n## Retries\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	rows := strings.Split(section, "\n")
	var c config
	besides := []string{"WORKER_LOCK_DURATION", "WORKER_MAX_DELIVERY_COUNT", "WORKER_HANDLER_TIMEOUT", "WORKER_DRAIN_TIMEOUT"}
	of := c.retrySettings()
	for _, s := range c.workSettings() {
		if slices.Contains(besides, s.env) {
			of = append(of, s)
		}
	}
	for _, s := range of {
		i := slices.IndexFunc(rows, func(row string) bool { return strings.Contains(row, "`"+s.env+"`") })
		require.GreaterOrEqual(t, i, 0, "the table lacks %s", s.env)
		require.Regexp(t, "\\b"+s.fallback+"\\b", rows[i], "the default of %s", s.env)
	}
	for _, name := range numbers(reflect.TypeFor[cosmosstore.Options](), "") {
		if name != "InboxRecordTTL" && !strings.HasPrefix(name, "Lifetime.") {
			require.Contains(t, section, "`"+name+"`")
		}
	}
}

// TestEveryNumberOfTheWorkerHasASetting looks for a field that no setting and no default of one reaches.
func TestEveryNumberOfTheWorkerHasASetting(t *testing.T) {
	t.Parallel()
	c, err := settle(t, []string{"SERVICEBUS_NAMESPACE_FQDN=shop.servicebus.windows.net", "COSMOS_ENDPOINT=https://shop.documents.azure.com",
		"WORKER_STORE_TIMEOUT=5s", "WORKER_WATCHDOG_NOT_RECEIVING=5m"})
	require.NoError(t, err)
	names := numbers(reflect.TypeFor[worker.Config](), "")
	require.Greater(t, len(names), 14)
	for _, name := range names {
		if strings.HasPrefix(name, "Admission.") || strings.HasPrefix(name, "Claim.") { // claims are the program's to say
			continue
		}
		v := reflect.ValueOf(c.worker)
		for part := range strings.SplitSeq(name, ".") {
			v = v.FieldByName(part)
		}
		require.False(t, v.IsZero(), "no setting reaches %s", name)
	}
}

// numbers are the fields of a struct, and of the structs in it, that hold a whole number or a duration.
func numbers(of reflect.Type, prefix string) []string {
	var names []string
	for f := range of.Fields() {
		switch {
		case !f.IsExported():
		case f.Type.Kind() == reflect.Struct:
			names = append(names, numbers(f.Type, prefix+f.Name+".")...)
		case f.Type.Kind() == reflect.Int || f.Type == reflect.TypeFor[time.Duration]():
			names = append(names, prefix+f.Name)
		}
	}
	return names
}
