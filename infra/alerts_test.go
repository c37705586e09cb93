package infra_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// logRow is a row of the log tables of Container Apps, as testenv/e2e recorded it from a real run of the worker.
type logRow struct {
	Table         string
	TimeGenerated time.Time
	Replica       string
	Reason        string
	Log           string
}

// incident returns the recorded rows of an incident.
func incident(t *testing.T, name string) []logRow {
	t.Helper()
	var rows []logRow
	for line := range strings.Lines(read(t, "testdata/incidents/"+name+".jsonl")) {
		var r logRow
		d := json.NewDecoder(bytes.NewReader([]byte(line)))
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(&r))
		rows = append(rows, r)
	}
	require.NotEmpty(t, rows)
	return rows
}

// workspace returns the tables that hold what was generated within (from, to], with the columns that Azure gives them.
func workspace(rows []logRow, from, to time.Time) map[string]kqlTable {
	console := kqlTable{columns: []string{"TimeGenerated", "ContainerAppName", "ContainerGroupName", "Log"}}
	system := kqlTable{columns: []string{"TimeGenerated", "ContainerAppName", "ReplicaName", "Reason", "Log"}}
	for _, r := range rows {
		if !r.TimeGenerated.After(from) || r.TimeGenerated.After(to) {
			continue
		}
		row := kqlRow{"TimeGenerated": r.TimeGenerated, "ContainerAppName": "ca-orderworker", "Log": r.Log}
		if r.Table == "" {
			row["ContainerGroupName"] = r.Replica
			console.rows = append(console.rows, row)
			continue
		}
		row["ReplicaName"], row["Reason"] = r.Replica, r.Reason
		system.rows = append(system.rows, row)
	}
	return map[string]kqlTable{"ContainerAppConsoleLogs": console, "ContainerAppSystemLogs": system}
}

// logAlert is an alert on log lines, as the snapshot deploys it.
type logAlert struct {
	name, query       string
	frequency, window time.Duration
	threshold         int
}

func logAlerts(t *testing.T) []logAlert {
	t.Helper()
	var all []logAlert
	for _, r := range resources(t, "standard", "Microsoft.Insights/scheduledQueryRules") {
		criterion := at(t, r.Properties, "criteria", "allOf", 0)
		require.Equal(t, "Count", at(t, criterion, "timeAggregation"), r.Name)
		require.Equal(t, "GreaterThan", at(t, criterion, "operator"), r.Name)
		all = append(all, logAlert{
			name: strings.TrimPrefix(r.Name, "orderworker-"), query: at(t, criterion, "query").(string), threshold: int(at(t, criterion, "threshold").(float64)),
			frequency: parseISO(t, r.Properties["evaluationFrequency"].(string)), window: parseISO(t, r.Properties["windowSize"].(string)),
		})
	}
	require.NotEmpty(t, all)
	return all
}

// fires evaluates an alert as Azure would at a time, when what was generated later than the delay before has not arrived.
func (a logAlert) fires(t *testing.T, rows []logRow, now time.Time, delay time.Duration) bool {
	t.Helper()
	found, err := runKQL(a.query, workspace(rows, now.Add(-a.window), now.Add(-delay)), now)
	require.NoError(t, err, a.name)
	return len(found.rows) > a.threshold
}

// fired evaluates every alert for hours, from the first row on. It returns those that fired, and those that would still
// fire ten minutes after the last row, when the recording ends, and half an hour after.
func fired(t *testing.T, rows []logRow, delay time.Duration) (ever, still []string) {
	t.Helper()
	first, last := rows[0].TimeGenerated, rows[len(rows)-1].TimeGenerated
	for _, a := range logAlerts(t) {
		at := func(now time.Time) bool { return a.fires(t, rows, now, delay) }
		for now := first.Add(time.Minute); now.Before(last.Add(7 * time.Hour)); now = now.Add(a.frequency) {
			if at(now) {
				ever = append(ever, a.name)
				break
			}
		}
		if at(last.Add(30 * time.Minute)) {
			still = append(still, a.name)
		}
	}
	return ever, still
}

func TestAlertsOfIncidents(t *testing.T) {
	tests := map[string]struct{ ever, still []string }{
		"nothing-but-new-orders-and-duplicates":                            {},
		"store-away-for-two-minutes":                                       {ever: []string{"store-outage"}},
		"broker-away-for-two-minutes":                                      {},
		"store-and-broker-away-together-for-110-seconds":                   {ever: []string{"store-outage"}},
		"store-and-broker-away-together-and-the-store-for-good":            {ever: []string{"not-ready", "store-outage"}, still: []string{"not-ready"}},
		"killed-while-the-store-is-away-and-started-again-when-it-is-back": {ever: []string{"store-outage"}},
		"two-replicas-leave-while-the-broker-is-away":                      {},
		"sixty-messages-with-other-content-under-stored-ids":               {ever: []string{"content-conflict"}},
		"one-message-with-other-content":                                   {ever: []string{"content-conflict"}},
		"a-destination-is-away-for-an-hour":                                {ever: []string{"outbox-waiting"}},
		"a-handler-that-fails-for-a-while":                                 {ever: []string{"redelivery"}},
		"no-right-on-the-store-from-the-first-start-on":                    {ever: []string{"not-ready", "store-outage"}, still: []string{"not-ready"}},
	}
	recorded, err := filepath.Glob("testdata/incidents/*.jsonl")
	require.NoError(t, err)
	require.Len(t, recorded, len(tests), "each recorded incident is tried, and each that is tried is recorded")
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			// Rows arrive some minutes late, and none may be missed for it.
			for _, delay := range []time.Duration{0, 8 * time.Minute} {
				ever, still := fired(t, incident(t, name), delay)
				require.ElementsMatch(t, want.ever, ever, "fired, rows being %v late", delay)
				require.ElementsMatch(t, want.still, still, "still firing, rows being %v late", delay)
			}
		})
	}
}

// A process that starts in the place of another has nothing to do with what that one said last, even if the platform's line
// about its end is missing. The new one writes only that it is ready, and not that each part is.
func TestRestartEndsWhatTheProcessBeforeWasNotReadyFor(t *testing.T) {
	rows := slices.DeleteFunc(incident(t, "killed-while-the-store-is-away-and-started-again-when-it-is-back"), func(r logRow) bool { return r.Table != "" })
	ever, _ := fired(t, rows, 0)
	require.NotContains(t, ever, "not-ready")
}

func TestReplicaThatStartedLongAgoIsWatchedToo(t *testing.T) {
	rows := slices.DeleteFunc(incident(t, "store-and-broker-away-together-and-the-store-for-good"), func(r logRow) bool {
		return strings.Contains(r.Log, "worker_started")
	})
	_, still := fired(t, rows, 0)
	require.Equal(t, []string{"not-ready"}, still)
}

// The scaler is a part of the platform: these rows are written by hand after its documentation.
func TestAlertOfAScalerThatFails(t *testing.T) {
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	failing := func(times int) []logRow {
		var rows []logRow
		for i := range times {
			rows = append(rows, logRow{Table: "ContainerAppSystemLogs", TimeGenerated: start.Add(time.Duration(i) * time.Minute),
				Reason: "KEDAScalerFailed", Log: "error getting service bus entity length: unauthorized"})
		}
		return rows
	}
	ever, _ := fired(t, failing(3), 0)
	require.Empty(t, ever, "some failures while a role takes effect")
	ever, still := fired(t, failing(60), 0)
	require.Equal(t, []string{"scaler-failed"}, ever)
	require.Equal(t, []string{}, append([]string{}, still...), "it has ended")
}

// A row that arrives late falls behind a window that is no longer than the time between two evaluations.
func TestWindowsOfAlertsOverlap(t *testing.T) {
	for snapshot, kinds := range map[string][]string{
		"standard": {"Microsoft.Insights/metricAlerts", "Microsoft.Insights/scheduledQueryRules"}, "worker": {"Microsoft.Insights/metricAlerts"},
	} {
		for _, kind := range kinds {
			for _, r := range resources(t, snapshot, kind) {
				frequency := parseISO(t, r.Properties["evaluationFrequency"].(string))
				window := parseISO(t, r.Properties["windowSize"].(string))
				require.GreaterOrEqual(t, window, 3*frequency, r.Name)
				if mute, ok := r.Properties["muteActionsDuration"].(string); ok {
					require.LessOrEqual(t, parseISO(t, mute), window-frequency, "%s: what happens while it is muted must be seen afterwards", r.Name)
				}
			}
		}
	}
}

func TestQueriesForPeopleRunToo(t *testing.T) {
	query := strings.ReplaceAll(read(t, "queries/dead-letters-by-reason.kql"), "{app}", "ca-orderworker")
	rows := append(incident(t, "sixty-messages-with-other-content-under-stored-ids"), logRow{Replica: "a", Log: "panic: no JSON"})
	end := rows[len(rows)-2].TimeGenerated
	rows[len(rows)-1].TimeGenerated = end
	found, err := runKQL(query, workspace(rows, time.Time{}, end), end)
	require.NoError(t, err)
	require.Len(t, found.rows, 1)
	require.Equal(t, "ContentConflict", found.rows[0]["Reason"])
	require.Equal(t, int64(60), found.rows[0]["Messages"])
	require.Equal(t, []string{"Example", "First", "Last", "Messages", "Reason"}, slices.Sorted(maps.Keys(found.rows[0])))
}

func TestEveryQueryIsTried(t *testing.T) {
	files, err := os.ReadDir("queries")
	require.NoError(t, err)
	require.Len(t, files, len(logAlerts(t))+1, "the alerts, and one for people")
}
