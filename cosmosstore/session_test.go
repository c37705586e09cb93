package cosmosstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/reason"
)

func TestAFailedFirstAccountReadPoisonsNothing(t *testing.T) {
	for name, a := range map[string]fault.Action{
		"503": fault.Reply(503, 0), "401": fault.Reply(401, 0), "403": fault.Reply(403, 0), "429": fault.Throttle(time.Minute),
		"dropped": fault.DropReply(), "no JSON": {Kind: fault.Refuse, Status: 200, Body: "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{unopened: true}, func(e *env) {
				e.faults.Add(fault.On(history.ReadAccount).Always().Before(a))
				e.open() // does not fail: this may pass
				require.Error(e.t, e.store.Ready(e.ctx()))
				_, err := e.store.Commit(e.ctx(), commit("1", `{}`))
				require.Error(e.t, err)
				e.faults.Clear()
				begun := time.Now()
				require.True(e.t, e.commit(commit("1", `{}`)).Created)
				require.NoError(e.t, e.store.Ready(e.ctx()))
				require.Less(e.t, time.Since(begun), time.Second, "the failure must not be kept for five minutes")
			})
		})
	}
}

func TestAnAccountReadThatHangsHoldsNoCallLongerThanItsTime(t *testing.T) {
	inBubble(t, setup{unopened: true}, func(e *env) {
		e.faults.Add(fault.On(history.ReadAccount).Always().Before(fault.Wait(2 * time.Minute)))
		var err error
		e.store, err = cosmosstore.Open(within(e.t, time.Second), e.options)
		require.NoError(e.t, err)
		begun := time.Now()
		_, err = e.store.Commit(within(e.t, 10*time.Second), commit("1", `{}`))
		requireAs[*worker.UnavailableError](e.t, err)
		require.LessOrEqual(e.t, time.Since(begun), 10*time.Second)

		begun = time.Now()
		require.NoError(e.t, e.store.Close())
		require.Less(e.t, time.Since(begun), time.Second, "closing ends the account read")
	})
}

func TestOneShortCallDoesNotEndTheOpeningThatOthersWaitFor(t *testing.T) {
	inBubble(t, setup{unopened: true}, func(e *env) {
		e.faults.Add(fault.On(history.ReadAccount).Before(fault.Wait(3 * time.Second)))
		var err error
		e.store, err = cosmosstore.Open(within(e.t, time.Second), e.options)
		require.NoError(e.t, err)
		require.True(e.t, e.commit(commit("1", `{}`)).Created)
		require.Equal(e.t, 1, e.requests(history.ReadAccount))
	})
}

func TestAnAccountReadThatHangsLaterDelaysNothing(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.commit(commit("1", `{}`))
		e.faults.Add(fault.On(history.ReadAccount).Always().Before(fault.Wait(time.Minute)))
		time.Sleep(6 * time.Minute)
		begun := time.Now()
		require.True(e.t, e.commit(commit("2", `{}`)).Created)
		require.Less(e.t, time.Since(begun), time.Second)
		e.faults.Clear()
		time.Sleep(2 * time.Minute) // the refresh in the background ends
	})
}

func TestAnAccountWithSeveralWriteRegionsIsRefused(t *testing.T) {
	inBubble(t, setup{unopened: true}, func(e *env) {
		e.account.SetRegions("West Europe", "North Europe")
		e.account.SetMultiWrite(true)
		_, err := cosmosstore.Open(e.ctx(), e.options)
		m := requireAs[*worker.MisconfiguredError](e.t, err)
		require.Contains(e.t, m.Fix, "multi-region writes")
		require.Zero(e.t, e.requests(history.CreateDocument))
	})
}

func TestMultiRegionWritesThatAreSwitchedOnLaterStopTheWrites(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.commit(commit("1", `{}`))
		e.account.SetMultiWrite(true)
		time.Sleep(6 * time.Minute)
		require.NotPanics(e.t, func() { _ = e.store.Ready(e.ctx()) }) // its request makes azcosmos read the account again
		time.Sleep(time.Second)
		before := e.requests(history.CreateDocument)
		_, err := e.store.Commit(e.ctx(), commit("2", `{}`))
		requireAs[*worker.MisconfiguredError](e.t, err)
		requireAs[*worker.MisconfiguredError](e.t, e.store.Ready(e.ctx()))
		require.Equal(e.t, before, e.requests(history.CreateDocument), "no create was sent")

		e.account.SetMultiWrite(false)
		time.Sleep(6 * time.Minute)
		_ = e.store.Ready(e.ctx()) // reads the account again
		time.Sleep(time.Second)
		require.NoError(e.t, e.store.Ready(e.ctx()))
		require.True(e.t, e.commit(commit("2", `{}`)).Created)
	})
}

// TestNoTryOfAWriteInFlightGoesToAnAccountWithSeveralWriteRegions lets azcosmos read the account while the first try of a commit
// is refused for a moment: the next try, of azcore or of the store, would be a create that another region accepts too.
func TestNoTryOfAWriteInFlightGoesToAnAccountWithSeveralWriteRegions(t *testing.T) {
	for name, refusal := range map[string]fault.Action{"repeated by azcore": fault.Throttle(time.Second), "repeated by the store": fault.Reply(449, 0)} {
		for op, parts := range map[string]int{history.CreateDocument: 0, history.ExecuteBatch: 1} {
			t.Run(name+", "+op, func(t *testing.T) {
				inBubble(t, setup{}, func(e *env) {
					e.commit(commit("1", `{}`))
					e.account.SetMultiWrite(true)
					time.Sleep(6 * time.Minute)
					refusal.Delay = time.Second
					e.faults.Add(fault.On(op).Before(refusal), fault.On(history.ReadAccount).Before(fault.Wait(100*time.Millisecond)))
					_, err := e.store.Commit(e.ctx(), commit("2", `{}`, lines(parts)...))
					require.Contains(e.t, requireAs[*worker.MisconfiguredError](e.t, err).Fix, "multi-region writes")
					require.Equal(e.t, 2, e.faults.Applied(), "the first try was sent")
					require.Equal(e.t, 1, e.account.Count(database, container), "the second was not")
				})
			})
		}
	}
}

func TestAContainerThatDoesNotFitIsRefused(t *testing.T) {
	tests := []struct {
		name         string
		container    func(*cosmosdb.ContainerSpec)
		inboxRecords bool
		says         string
	}{
		{"a hierarchical partition key", func(s *cosmosdb.ContainerSpec) { s.PartitionKey = []string{"/a", "/b"} }, false, "hierarchical"},
		{"version 1 of the partition key", func(s *cosmosdb.ContainerSpec) { s.KeyVersion = 1 }, false, "version 1"},
		{"a partition key inside the store's members", func(s *cosmosdb.ContainerSpec) { s.PartitionKey = []string{"/request/key"} }, false, "/request/key"},
		{"a partition key that is the type", func(s *cosmosdb.ContainerSpec) { s.PartitionKey = []string{"/type"} }, false, "/type"},
		{"a time to live for everything", func(s *cosmosdb.ContainerSpec) { s.DefaultTTL = 3600 }, false, "1h0m0s"},
		{"a time to live for everything, with inbox records", func(s *cosmosdb.ContainerSpec) { s.DefaultTTL = 3600 }, true, "1h0m0s"},
		{"inbox records that expire where time to live is off", func(s *cosmosdb.ContainerSpec) { s.DefaultTTL = 0 }, true, "ignores the time to live"},
		{"a partition key that is the content of orders", func(s *cosmosdb.ContainerSpec) { s.PartitionKey = []string{"/order"} }, false, `type "order"`},
		{"a partition key inside the content of lines", func(s *cosmosdb.ContainerSpec) { s.PartitionKey = []string{"/line/x"} }, false, `type "line"`},
		{"inbox records where the id is the partition key", func(s *cosmosdb.ContainerSpec) { s.PartitionKey = []string{"/id"} }, true, "alone"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, setup{unopened: true, container: tt.container}, func(e *env) {
				e.options.Types = []string{"order", "line"}
				if tt.inboxRecords {
					e.options.InboxRecords, e.options.InboxRecordTTL = true, 24*time.Hour
				}
				_, err := cosmosstore.Open(e.ctx(), e.options)
				m := requireAs[*worker.MisconfiguredError](e.t, err)
				require.Contains(e.t, m.Error(), tt.says)
				require.NotEmpty(e.t, m.Fix)
			})
		})
	}
}

// TestAReplyThatIsNotTheContainerSaysNothingOfIt answers the read of the container as a proxy or another program does, at the
// start and while the store works.
func TestAReplyThatIsNotTheContainerSaysNothingOfIt(t *testing.T) {
	for name, body := range map[string]string{"an empty text": " ", "an empty object": "{}", "null": "null", "another container": `{"id":"invoices","partitionKey":{"paths":["/type"]},"defaultTtl":60}`, "a page": "<html>sign in</html>", "an array": "[]"} {
		t.Run(name, func(t *testing.T) {
			odd := fault.Action{Kind: fault.Refuse, Status: 200, Body: body}
			inBubble(t, setup{unopened: true}, func(e *env) {
				e.faults.Add(fault.On(history.ReadContainer).Always().Before(odd))
				e.open() // does not fail: this may pass
				requireAs[*worker.UnavailableError](e.t, e.store.Ready(e.ctx()))
				require.NotEmpty(e.t, e.store.Check(e.ctx()))
				e.faults.Clear()
				require.True(e.t, e.commit(commit("1", `{}`)).Created)

				e.faults.Add(fault.On(history.ReadContainer).Always().Before(odd))
				_, err := e.busy(10 * time.Minute)
				require.NoError(e.t, err)
			})
		})
	}
}

func TestAContainerWithoutAPartitionKeyIsRefused(t *testing.T) {
	inBubble(t, setup{unopened: true}, func(e *env) {
		e.faults.Add(fault.On(history.ReadContainer).Always().Before(fault.Action{Kind: fault.Refuse, Status: 200, Body: `{"id":"orders"}`}))
		_, err := cosmosstore.Open(e.ctx(), e.options)
		require.ErrorContains(e.t, requireAs[*worker.MisconfiguredError](e.t, err), "no partition key")
	})
}

func TestEveryFaultOfAContainerIsNamedAtOnce(t *testing.T) {
	bad := func(s *cosmosdb.ContainerSpec) { s.PartitionKey, s.KeyVersion, s.DefaultTTL = []string{"/type"}, 1, 60 }
	inBubble(t, setup{unopened: true, container: bad}, func(e *env) {
		_, err := cosmosstore.Open(e.ctx(), e.options)
		for _, says := range []string{"/type", "version 1", "1m0s"} {
			require.ErrorContains(e.t, err, says)
		}
	})
}

func TestAMissingContainerIsWaitedFor(t *testing.T) {
	inBubble(t, setup{container: func(s *cosmosdb.ContainerSpec) { s.ID = "" }}, func(e *env) {
		m := requireAs[*worker.MisconfiguredError](e.t, e.store.Ready(e.ctx()))
		require.Contains(e.t, m.Fix, "Create the database and the container")
		require.NoError(e.t, e.account.CreateContainer(database, cosmosdb.ContainerSpec{ID: container, PartitionKey: []string{"/pk"}, DefaultTTL: -1}))
		require.NoError(e.t, e.store.Ready(e.ctx()))
		require.True(e.t, e.commit(commit("1", `{}`)).Created)
	})
}

func TestThePartitionKeyPathIsReadFromTheContainer(t *testing.T) {
	for path, read := range map[string]func(map[string]any) any{
		"/orderId":       func(d map[string]any) any { return d["orderId"] },
		"/orders/line":   func(d map[string]any) any { return d["orders"].(map[string]any)["line"] },
		"/tenant/order":  func(d map[string]any) any { return d["tenant"].(map[string]any)["order"] },
		`/"odd name"/id`: func(d map[string]any) any { return d["odd name"].(map[string]any)["id"] },
	} {
		t.Run(path, func(t *testing.T) {
			typed := func(o *cosmosstore.Options) { o.Types = []string{"order", "line"} }
			inBubble(t, setup{options: typed, container: func(s *cosmosdb.ContainerSpec) { s.PartitionKey = []string{path} }}, func(e *env) {
				require.NotContains(e.t, e.logged.String(), "cannot hold every message")
				c := commit("1", `{"a":1}`, lines(1)...)
				require.True(e.t, e.commit(c).Created)
				require.Equal(e.t, "1", read(e.document("1")))
				require.Equal(e.t, "1", read(e.document("1~part.line-1")))
				again := commit("1", `{"a":1}`, lines(1)...)
				require.Equal(e.t, worker.Duplicate, judge(again, e.commit(again), `{"a":1}`))
			})
		})
	}
}

func TestEveryStatusThatStopsTheStoreBlamesNoMessage(t *testing.T) {
	unavailable := func(t *testing.T, err error) { requireAs[*worker.UnavailableError](t, err) }
	misconfigured := func(t *testing.T, err error) { require.NotEmpty(t, requireAs[*worker.MisconfiguredError](t, err).Fix) }
	partitionFull := func(t *testing.T, err error) {
		require.Equal(t, reason.PartitionFull, requireAs[*worker.UnstorableError](t, err).Reason)
	}
	tests := []struct {
		name   string
		action fault.Action
		check  func(*testing.T, error)
	}{
		{"429 without a hint", fault.Reply(429, 3200), unavailable},
		{"429 with a hint of 0", fault.Action{Kind: fault.Refuse, Status: 429, RetryHint: true}, unavailable},
		{"429 with a hint of 1 s", fault.Throttle(time.Second), unavailable},
		{"449", fault.Reply(449, 0), unavailable},
		{"403/3", fault.Reply(403, 3), unavailable},
		{"403/1008", fault.Reply(403, 1008), unavailable},
		{"404/1002", fault.Reply(404, 1002), unavailable},
		{"410/1002", fault.Reply(410, 1002), unavailable},
		{"503", fault.Reply(503, 0), unavailable},
		{"403", fault.Reply(403, 0), misconfigured},
		{"403/5300", fault.Reply(403, 5300), misconfigured},
		{"404", fault.Reply(404, 0), misconfigured},
		{"404/1003", fault.Reply(404, 1003), misconfigured},
		{"400/1001", fault.Reply(400, 1001), misconfigured},
		{"403/1014", fault.Reply(403, 1014), partitionFull},
	}
	for _, tt := range tests {
		for _, op := range []string{history.CreateDocument, history.ExecuteBatch} {
			t.Run(tt.name+" on "+op, func(t *testing.T) {
				inBubble(t, setup{}, func(e *env) {
					var parts []worker.Document
					if op == history.ExecuteBatch {
						parts = lines(1)
					}
					e.faults.Add(fault.On(op).Always().Before(tt.action))
					begun := time.Now()
					_, err := e.store.Commit(e.ctx(), commit("1", `{}`, parts...))
					tt.check(e.t, err)
					require.LessOrEqual(e.t, time.Since(begun), 20*time.Second, "no two minutes of retries inside azcosmos")
					time.Sleep(10 * time.Second) // account reads in the background end
					e.faults.Clear()
					require.True(e.t, e.commit(commit("1", `{}`, parts...)).Created)
				})
			})
		}
	}
}

func TestAHintOfTheStoreIsPassedOnAndNotSleptThrough(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.faults.Add(fault.On(history.CreateDocument).Always().Before(fault.Throttle(time.Minute)))
		begun := time.Now()
		o, err := e.store.Commit(e.ctx(), commit("1", `{}`))
		require.Equal(e.t, time.Minute, requireAs[*worker.UnavailableError](e.t, err).RetryAfter)
		require.Equal(e.t, 1, o.Calls)
		require.Less(e.t, time.Since(begun), time.Second)
	})
}

func TestAWriteThroughAPartitionSplitSucceeds(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.faults.Add(fault.On(history.CreateDocument).Before(fault.Reply(410, 1007)), fault.On(history.CreateDocument).Nth(2).Before(fault.Reply(503, 0)))
		o := e.commit(commit("1", `{}`))
		require.True(e.t, o.Created)
		require.Equal(e.t, 3, o.Calls)
	})
}

func TestAContendedCreateIsRepeatedShortly(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.faults.Add(fault.On(history.CreateDocument).Times(5).Before(fault.Reply(449, 0)))
		o := e.commit(commit("1", `{}`))
		require.True(e.t, o.Created)
		require.Equal(e.t, 6, o.Calls)
	})
}

func TestRightsThatAreMissingAndArrive(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.account.DenyData(5301)
		_, err := e.store.Commit(e.ctx(), commit("1", `{}`))
		require.Contains(e.t, requireAs[*worker.MisconfiguredError](e.t, err).Fix, "data plane role")
		requireAs[*worker.MisconfiguredError](e.t, e.store.Ready(e.ctx()))
		e.account.AllowData()
		require.NoError(e.t, e.store.Ready(e.ctx()))
		require.True(e.t, e.commit(commit("1", `{}`)).Created)
	})
}

// tokens is a credential that fails as long as it is told to.
type tokens struct{ err error }

func (c *tokens) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "token", ExpiresOn: time.Now().Add(time.Hour)}, c.err
}

func TestATokenSignsIn(t *testing.T) {
	cred := &tokens{}
	withToken := setup{account: func(o *cosmosdb.Options) { o.AcceptTokens = true },
		options: func(o *cosmosstore.Options) { o.Key, o.Credential = "", cred }, unopened: true}
	inBubble(t, withToken, func(e *env) {
		cred.err = errors.New("no identity is assigned\ntrace")
		e.open()
		u := requireAs[*worker.UnavailableError](e.t, e.store.Ready(e.ctx()))
		require.Contains(e.t, u.Error(), "no token for the account: no identity is assigned")
		require.NotContains(e.t, u.Error(), "trace")
		cred.err = nil
		require.True(e.t, e.commit(commit("1", `{}`)).Created)
	})
}

func TestAfterAFailedWriteReadyAsksWhetherWritesWorkAgain(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.faults.Add(fault.On(history.CreateDocument).Always().Before(fault.Reply(503, 0)))
		_, err := e.store.Commit(e.ctx(), commit("1", `{}`))
		requireAs[*worker.UnavailableError](e.t, err)
		requireAs[*worker.UnavailableError](e.t, e.store.Ready(e.ctx()))
		e.faults.Clear()
		require.NoError(e.t, e.store.Ready(e.ctx()))
		before := e.requests(history.CreateDocument)
		require.NoError(e.t, e.store.Ready(e.ctx()))
		require.Equal(e.t, before, e.requests(history.CreateDocument), "once is enough")
		require.Zero(e.t, e.account.Count(database, container), "what it sends is never stored")

		e.faults.Add(fault.On(history.CreateDocument).Always().Before(fault.Reply(403, 5302)))
		_, err = e.store.Commit(e.ctx(), commit("1", `{}`))
		requireAs[*worker.MisconfiguredError](e.t, err)
		requireAs[*worker.MisconfiguredError](e.t, e.store.Ready(e.ctx()))
	})
}

func TestBeforeTheFirstWriteReadyAsksWhetherWritesWork(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.faults.Add(fault.On(history.CreateDocument).Always().Before(fault.Reply(503, 0)))
		requireAs[*worker.UnavailableError](e.t, e.store.Ready(e.ctx()))
		e.faults.Clear()
		require.NoError(e.t, e.store.Ready(e.ctx()))
		before := e.requests(history.CreateDocument)
		require.NoError(e.t, e.store.Ready(e.ctx()))
		require.Equal(e.t, before, e.requests(history.CreateDocument), "once is enough")
		require.Zero(e.t, e.account.Count(database, container))
	})
}

func TestReadyCostsOneReadAndNowAndThenTheContainer(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		for range 3 {
			require.NoError(e.t, e.store.Ready(e.ctx()))
		}
		require.Equal(e.t, 3, e.requests(history.ReadDocument))
		require.Equal(e.t, 1, e.requests(history.ReadContainer))
		time.Sleep(6 * time.Minute)
		require.NoError(e.t, e.store.Ready(e.ctx()))
		require.Equal(e.t, 2, e.requests(history.ReadContainer))
	})
}

func TestAClosedStoreFails(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		require.NoError(e.t, e.store.Close())
		_, err := e.store.Commit(e.ctx(), commit("1", `{}`))
		require.ErrorContains(e.t, err, "closed")
		require.ErrorContains(e.t, e.store.Ready(e.ctx()), "closed")
		require.NoError(e.t, e.store.Close(), "a second time")
	})
}

func TestOpenNamesEveryFaultOfItsOptionsAtOnce(t *testing.T) {
	_, err := cosmosstore.Open(t.Context(), cosmosstore.Options{
		Endpoint: "http://account.documents.azure.com", Key: "secret", Credential: &tokens{}, Container: "a/b",
		InboxRecordTTL: 1500 * time.Millisecond, RequestTimeout: -1, OperationTimeout: -2, Lifetime: cosmosstore.Lifetime{Lock: -1},
		Types: []string{"order", "", "request", "_etag", fmt.Sprintf("%0129d", 0)},
	})
	for _, says := range []string{"https", "both a key and a credential", "database is missing", `container "a/b"`, "inbox records are off",
		"whole seconds", "request timeout", "operation timeout", "lifetime", `type "" is empty`, `type "request" is reserved`,
		`type "_etag" is reserved`, "has 129 bytes"} {
		require.ErrorContains(t, err, says)
	}
	require.NotContains(t, err.Error(), `"order"`)
	problem := requireAs[*cosmosstore.OptionError](t, err)
	require.Equal(t, "Endpoint", problem.Option)
	require.NotContains(t, err.Error(), "secret")
}

func TestEndpoints(t *testing.T) {
	for endpoint, says := range map[string]string{
		"": "missing", "account": "no URL", "ftp://account": "ftp", "https://": "no URL", "http://10.0.0.1:8081": "unencrypted",
		"https://a/path": "alone", "https://a/?x=1": "alone", "https://user:secret@a/": "alone", "://": "no URL",
	} {
		_, err := cosmosstore.Open(t.Context(), cosmosstore.Options{Endpoint: endpoint, Key: "a2V5", Database: "d", Container: "c"})
		require.ErrorContains(t, err, says, "%q", endpoint)
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestAKeyDoesNotPrint(t *testing.T) {
	k := cosmosstore.Key("c2VjcmV0")
	o := cosmosstore.Options{Key: k}
	for _, text := range []string{fmt.Sprint(k), fmt.Sprintf("%v %+v %#v %s %q", k, k, k, k, k), fmt.Sprintf("%+v %#v", o, o), k.LogValue().String()} {
		require.NotContains(t, text, "c2VjcmV0")
	}
	_, err := cosmosstore.Open(t.Context(), cosmosstore.Options{Endpoint: "https://a", Key: "not base64!", Database: "d", Container: "c"})
	require.ErrorContains(t, err, "base64")
	require.NotContains(t, err.Error(), "not base64!")
}
