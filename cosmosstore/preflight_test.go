package cosmosstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
)

// texts are the findings of a check, one line each.
func texts(found []cosmosstore.Finding) string {
	var all []string
	for _, f := range found {
		all = append(all, line(f))
	}
	return strings.Join(all, "\n")
}

func TestACheckOfAGoodContainerFindsNothingAndWritesNothing(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		require.Empty(e.t, e.store.Check(e.ctx()))
		require.Zero(e.t, e.account.Count(database, container))
		require.Zero(e.t, e.history.Count(func(ev history.Event) bool { return ev.Effect }))
	})
}

func TestACheckSaysWhatIsWrongAndWhatToDo(t *testing.T) {
	queue := cosmosstore.Lifetime{Lock: time.Minute, Deliveries: 10, TimeToLive: 14 * 24 * time.Hour, Review: 30 * 24 * time.Hour}
	tests := []struct {
		name      string
		container func(*cosmosdb.ContainerSpec)
		options   func(*cosmosstore.Options)
		before    func(e *env)
		severity  cosmosstore.Severity
		says      []string
	}{
		{"unique keys", func(s *cosmosdb.ContainerSpec) { s.UniqueKeys = [][]string{{"/type"}} }, nil, nil,
			cosmosstore.Warning, []string{"unique keys"}},
		{"the id is the partition key", func(s *cosmosdb.ContainerSpec) { s.PartitionKey = []string{"/id"} }, nil, nil,
			cosmosstore.Warning, []string{"several documents", "/pk"}},
		{"the partition key is inside another member", func(s *cosmosdb.ContainerSpec) { s.PartitionKey = []string{"/line/x"} }, nil, nil,
			cosmosstore.Warning, []string{"/line/x", `type "line"`}},
		{"a key that may only read", nil, nil, func(e *env) {
			e.faults.Add(fault.On(history.CreateDocument).Always().Before(fault.Reply(401, 0)))
		}, cosmosstore.Fault, []string{"create: 401", "a key that may write"}},
		{"everything is indexed", func(s *cosmosdb.ContainerSpec) { s.IndexNothing = false }, nil, nil,
			cosmosstore.Warning, []string{"indexes every property", "/*"}},
		{"inbox records that are forgotten too early", nil,
			func(o *cosmosstore.Options) { o.InboxRecords, o.InboxRecordTTL, o.Lifetime = true, 24*time.Hour, queue }, nil,
			cosmosstore.Warning, []string{"24h0m0s", "1056h10m0s"}},
		{"the container is changed after the start", nil, nil, func(e *env) {
			e.faults.Add(fault.On(history.ReadContainer).Always().Before(fault.Action{Kind: fault.Refuse, Status: 200,
				Body: `{"id":"orders","_rid":"x","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":60}`}))
		}, cosmosstore.Fault, []string{"removes every document after 1m0s"}},
		{"the account takes writes in several regions", nil, nil, func(e *env) {
			e.account.SetMultiWrite(true)
			time.Sleep(6 * time.Minute)
			e.store.Check(e.ctx())
			time.Sleep(time.Second)
		}, cosmosstore.Fault, []string{"several regions", "multi-region writes"}},
		{"rights are missing", nil, nil, func(e *env) { e.account.DenyData(0) },
			cosmosstore.Fault, []string{"403", "data plane role"}},
		{"creates alone are forbidden", nil, nil, func(e *env) {
			e.faults.Add(fault.On(history.CreateDocument).Always().Before(fault.Reply(403, 5302)))
		}, cosmosstore.Fault, []string{"create: 403/5302", "data plane role"}},
		{"the store is down", nil, nil, func(e *env) {
			e.faults.Add(fault.On("cosmosdb.*").Always().Before(fault.Reply(503, 0)))
		}, cosmosstore.Fault, []string{"503"}},
		{"the container is missing", func(s *cosmosdb.ContainerSpec) { s.ID = "" }, nil, nil,
			cosmosstore.Fault, []string{"404", "Create the database and the container"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, setup{container: tt.container, options: tt.options}, func(e *env) {
				if tt.before != nil {
					tt.before(e)
				}
				found := e.store.Check(e.ctx())
				require.NotEmpty(e.t, found)
				require.Equal(e.t, tt.severity, found[0].Severity)
				for _, says := range tt.says {
					require.Contains(e.t, texts(found), says)
				}
				for _, f := range found {
					require.NotEmpty(e.t, f.Fix)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

func TestInboxRecordsThatAreForgottenTooEarlyAreToldOfAtTheStart(t *testing.T) {
	short := func(o *cosmosstore.Options) {
		o.InboxRecords, o.InboxRecordTTL, o.Lifetime = true, 24*time.Hour, cosmosstore.Lifetime{TimeToLive: 14 * 24 * time.Hour}
	}
	inBubble(t, setup{options: short}, func(e *env) {
		require.Contains(e.t, e.logged.String(), "inbox records are kept for 24h0m0s, and a message can come back for 336h0m0s")
		require.True(e.t, e.commit(commit("1", `{}`)).Created, "it is a warning")
	})
}

func TestAFirstDocumentThatExpiresBeforeItsMessageCanNoLongerComeBackIsToldOfOnce(t *testing.T) {
	life := cosmosstore.Lifetime{Lock: time.Minute, Deliveries: 10, TimeToLive: time.Hour}
	for name, tt := range map[string]struct {
		ttl          time.Duration
		lifetime     cosmosstore.Lifetime
		inboxRecords bool
		told         int
	}{
		"too short":                   {30 * time.Minute, life, false, 1},
		"just as long":                {70 * time.Minute, life, false, 1},
		"long enough":                 {71 * time.Minute, life, false, 0},
		"for ever":                    {0, life, false, 0},
		"where inbox records decide":  {30 * time.Minute, life, true, 0},
		"where nothing is known":      {30 * time.Minute, cosmosstore.Lifetime{}, false, 0},
		"where one part is not known": {30 * time.Minute, cosmosstore.Lifetime{TimeToLive: time.Hour}, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{options: func(o *cosmosstore.Options) { o.Lifetime, o.InboxRecords = tt.lifetime, tt.inboxRecords }}, func(e *env) {
				for _, key := range []string{"1", "2", "3"} {
					c := commit(key, `{}`)
					c.Documents[0].TTL = tt.ttl
					require.True(e.t, e.commit(c).Created)
				}
				require.Equal(e.t, tt.told, strings.Count(e.logged.String(), "keys are forgotten too early"))
			})
		})
	}
}

func TestInboxRecordsThatOutliveEveryMessageAreNotWarnedAbout(t *testing.T) {
	long := func(o *cosmosstore.Options) {
		o.InboxRecords, o.InboxRecordTTL = true, 90*24*time.Hour
		o.Lifetime = cosmosstore.Lifetime{Lock: time.Minute, Deliveries: 10, TimeToLive: 14 * 24 * time.Hour, Review: 30 * 24 * time.Hour}
	}
	inBubble(t, setup{options: long}, func(e *env) {
		require.Empty(e.t, e.store.Check(e.ctx()))
		require.Empty(e.t, e.logged.String())
	})
}

func TestFindingsNameEveryFaultOfAnErrorByItself(t *testing.T) {
	_, err := cosmosstore.Open(t.Context(), cosmosstore.Options{Endpoint: "ftp://a", Container: "c"})
	found := cosmosstore.Findings(err)
	require.Len(t, found, 3, "scheme, credential, database")
	require.Equal(t, "fault: endpoint scheme \"ftp\" is not https. Correct the setting that it names.", line(found[0]))
	require.Empty(t, cosmosstore.Findings(nil))

	bad := func(s *cosmosdb.ContainerSpec) { s.KeyVersion, s.DefaultTTL = 1, 60 }
	inBubble(t, setup{unopened: true, container: bad}, func(e *env) {
		_, err := cosmosstore.Open(e.ctx(), e.options)
		found := cosmosstore.Findings(err)
		require.Len(e.t, found, 2)
		require.Contains(e.t, found[0].Text, "version 1")
		require.Contains(e.t, found[1].Text, "1m0s")
		require.NotEqual(e.t, found[0].Fix, found[1].Fix)
	})
}

// line is a finding in one line.
func line(f cosmosstore.Finding) string { return fmt.Sprintf("%v: %s. %s", f.Severity, f.Text, f.Fix) }
