package cosmosstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/reason"
)

// TestEveryPathToAConflictEndsInARecordToBeJudged walks each path on which a store can learn that a document exists. On
// each of them equal content must come out as a duplicate and other content as a conflict: none may skip the comparison.
func TestEveryPathToAConflictEndsInARecordToBeJudged(t *testing.T) {
	const stored, equal, other = `{"accounts":[{"id":"12345"}]}`, `{"accounts": [{"id": "12345"}]}`, `{"accounts":[{"id":"54321"}]}`
	create, batch, read := history.CreateDocument, history.ExecuteBatch, history.ReadDocument
	reply := func(status int, body string) fault.Action {
		return fault.Action{Kind: fault.Refuse, Status: status, Body: body}
	}
	paths := []struct {
		name   string
		parts  int
		op     string // where the fault strikes, and how often
		times  int
		action fault.Action
	}{
		{"a single create is refused", 0, create, 1, fault.Action{}},
		{"a batch is refused by its inbox record", 1, batch, 1, fault.Action{}},
		{"a create is repeated after its answer was lost", 0, create, 1, fault.DropReply()},
		{"a batch is repeated after its answer was lost", 1, batch, 1, fault.DropReply()},
		{"a create is refused after it was throttled", 0, create, 2, fault.Throttle(time.Second)},
		{"a batch is refused after it was throttled", 1, batch, 2, fault.Throttle(time.Second)},
		{"a create is refused after it was contended", 0, create, 3, fault.Reply(449, 0)},
		{"a batch is refused after a line was contended", 1, batch, 1, reply(207, `[{"statusCode":424},{"statusCode":449}]`)},
		{"a batch has no results and is read back", 1, batch, 1, reply(200, "[]")},
		{"a batch has too few results and is read back", 1, batch, 1, reply(200, `[{"statusCode":201}]`)},
		{"a batch has results that are no JSON", 1, batch, 1, reply(207, `<html>busy</html>`)},
		{"a batch claims that everything failed for another", 1, batch, 1, reply(207, `[{"statusCode":424},{"statusCode":424}]`)},
		{"a batch claims success and failure at once", 1, batch, 1, reply(200, `[{"statusCode":409},{"statusCode":201}]`)},
		{"a create has a status that no create has", 0, create, 1, reply(200, "")},
		{"the first replica asked lags behind", 0, read, 1, fault.Action{Kind: fault.Lag}},
		{"no document is found at first", 0, read, 1, fault.Reply(404, 0)},
		{"the session token is not reached at first", 0, read, 2, fault.Reply(404, 1002)}, // azcosmos asks twice by itself
		{"the first read is cut off", 0, read, 1, reply(200, `{"id":"skip-1","order":{"acc`)},
		{"a read is throttled", 0, read, 1, fault.Throttle(time.Second)},
		{"a read fails once", 0, read, 1, fault.Reply(500, 0)},
		{"a read is dropped", 0, read, 1, fault.DropReply()},
	}
	for _, tt := range paths {
		for _, arrived := range []struct {
			name, body string
			want       worker.Judgement
		}{{"equal content", equal, worker.Duplicate}, {"other content", other, worker.Conflict}} {
			t.Run(tt.name+", "+arrived.name, func(t *testing.T) {
				inBubble(t, setup{}, func(e *env) {
					e.commit(commit("skip-1", stored, lines(tt.parts)...))
					e.faults.Add(fault.On(tt.op).Times(tt.times).Before(tt.action))
					c := commit("skip-1", arrived.body, lines(tt.parts)...)
					o := e.commit(c)
					require.NotNil(e.t, o.Existing)
					require.Equal(e.t, arrived.want, judge(c, o, arrived.body))
					require.Equal(e.t, tt.times, e.faults.Applied(), "the fault must have struck")
					require.JSONEq(e.t, stored, string(o.Existing.Content))
				})
			})
		}
	}
}

func TestTheFirstWriterWins(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		a, b := commit("1", `{"amount":40}`), commit("1", `{"amount":41}`)
		require.True(e.t, e.commit(a).Created)
		require.Equal(e.t, worker.Conflict, judge(b, e.commit(b), `{"amount":41}`))
		require.InDelta(e.t, 40, e.document("1")["order"].(map[string]any)["amount"], 0)
	})
}

func TestFiftyCopiesAtOnceMakeOneOrder(t *testing.T) {
	const equal, odd = `{"amount":40}`, `{"amount":41}`
	for _, parts := range []int{0, 3} {
		t.Run(fmt.Sprintf("%d further documents", parts), func(t *testing.T) {
			inBubble(t, setup{}, func(e *env) {
				e.faults.Add(fault.On("cosmosdb.*").Always().Before(fault.Wait(time.Millisecond)))
				type result struct {
					judgement worker.Judgement
					odd       bool
				}
				results := make(chan result, 51)
				for i := range 51 {
					body := equal
					if i == 25 {
						body = odd
					}
					go func() {
						c := commit("cc-1", body, lines(parts)...)
						o, err := e.store.Commit(e.ctx(), c)
						if err != nil {
							results <- result{}
							return
						}
						results <- result{judge(c, o, body), body == odd}
					}()
				}
				count := map[result]int{}
				for range 51 {
					count[<-results]++
				}
				if count[result{worker.Created, true}] == 1 {
					require.Equal(e.t, map[result]int{{worker.Created, true}: 1, {worker.Conflict, false}: 50}, count)
				} else {
					require.Equal(e.t, map[result]int{{worker.Created, false}: 1, {worker.Duplicate, false}: 49, {worker.Conflict, true}: 1}, count)
				}
				require.Equal(e.t, 1+parts, e.account.Count(database, container))
			})
		})
	}
}

func TestAConflictWithNothingToReadIsTriedOnceMoreAndThenGivenBack(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.commit(commit("1", `{}`))
		e.faults.Add(fault.On(history.ReadDocument).Always().Before(fault.Reply(404, 0)))
		e.faults.Add(fault.On(history.ExecuteBatch).Always().Before(batchReply(207, 404)))
		begun := time.Now()
		o, err := e.store.Commit(e.ctx(), commit("1", `{}`))
		u := requireAs[*worker.UncertainError](e.t, err)
		require.Equal(e.t, reason.ConflictUnread, u.Reason)
		require.Equal(e.t, 2+2*(1+1)+1, o.Calls, "two creates, a read and a look at the primary after each, and a write that tells "+
			"whether the store refuses every one")
		require.Less(e.t, time.Since(begun), 2*time.Second)
	})
}

func TestAConflictOnAUniqueKeyIsGivenBackWithItsOwnReason(t *testing.T) {
	unique := func(s *cosmosdb.ContainerSpec) {
		s.PartitionKey, s.UniqueKeys = []string{"/pk"}, [][]string{{"/type"}}
	}
	inBubble(t, setup{container: unique}, func(e *env) {
		require.NoError(e.t, e.account.Seed(database, container, `{"id":"other","pk":"1","type":"order"}`))
		_, err := e.store.Commit(e.ctx(), commit("1", `{}`))
		u := requireAs[*worker.UncertainError](e.t, err)
		require.Equal(e.t, reason.ConflictUnread, u.Reason)
		require.Contains(e.t, u.Detail, "unique key of the container (/type)")

		for range 4 { // two lines of one type break the unique key, however many messages have them
			o, err := e.store.Commit(e.ctx(), commit(fmt.Sprintf("n-%d", hosts.Add(1)), `{}`, lines(2)...))
			require.Empty(e.t, o.Blocking, "no line blocks")
			u = requireAs[*worker.UncertainError](e.t, err)
			require.Equal(e.t, reason.ConflictUnread, u.Reason)
			require.Contains(e.t, u.Detail, "~part.line-2")
			require.Contains(e.t, u.Detail, "unique key of the container (/type)")
		}
	})
}

func TestADocumentThatExpiredBeforeItsConflictWasReadIsCreatedAgain(t *testing.T) {
	inBubble(t, setup{account: func(o *cosmosdb.Options) { o.ExpiredBlocksCreate = true }}, func(e *env) {
		require.NoError(e.t, e.account.Seed(database, container, `{"id":"1","pk":"1","ttl":10}`))
		time.Sleep(11 * time.Second)
		e.faults.Add(fault.On(history.CreateDocument).Nth(2).Before(fault.Call(func() { e.account.Purge() })))
		require.True(e.t, e.commit(commit("1", `{}`)).Created)

		require.NoError(e.t, e.account.Seed(database, container, `{"id":"2","pk":"2","ttl":10}`))
		time.Sleep(11 * time.Second)
		_, err := e.store.Commit(e.ctx(), commit("2", `{}`))
		require.Equal(e.t, reason.ConflictUnread, requireAs[*worker.UncertainError](e.t, err).Reason, "it is never purged")
	})
}

func TestADocumentThatExpiresIsWaitedForAMoment(t *testing.T) {
	inBubble(t, setup{account: func(o *cosmosdb.Options) { o.ExpiredBlocksCreate = true }}, func(e *env) {
		require.NoError(e.t, e.account.Seed(database, container, `{"id":"1","pk":"1","ttl":10}`))
		time.Sleep(11 * time.Second)
		time.AfterFunc(300*time.Millisecond, func() { e.account.Purge() })
		require.True(e.t, e.commit(commit("1", `{}`)).Created)
	})
}

func TestALaggingReplicaIsNotTakenForAnAbsentDocument(t *testing.T) {
	for name, lag := range map[string]cosmosdb.Lag{
		"it lags by 100 ms":                            {By: 100 * time.Millisecond},
		"it sees nothing new for ever":                 {Frozen: true},
		"it cannot reach the session token for 300 ms": {By: 300 * time.Millisecond, Tokens: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{}, func(e *env) {
				e.commit(commit("0", `{}`))
				e.account.SetLag(lag)
				e.commit(commit("1", `{"a":1}`))
				c := commit("1", `{"a":1}`)
				require.Equal(e.t, worker.Duplicate, judge(c, e.commit(c), `{"a":1}`))
			})
		})
	}
}

func TestTheSessionTokenOfTheConflictSavesASecondRead(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.commit(commit("0", `{}`))
		e.account.SetLag(cosmosdb.Lag{Frozen: true})
		e.commit(commit("1", `{}`))
		require.Equal(e.t, 2, e.commit(commit("1", `{}`)).Calls, "the create and one read with the token of its 409")
	})
}

func TestAMessageThatAloneIsRefusedDoesNotBlameTheStore(t *testing.T) {
	for name, a := range map[string]fault.Action{
		"401 on its read":                   fault.Reply(401, 0),
		"400 on its read":                   fault.Reply(400, 0),
		"an HTML page with 400 on its read": {Kind: fault.Garble, Status: 400},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{}, func(e *env) {
				e.commit(commit("1", `{}`))
				e.faults.Add(fault.On(history.ReadDocument).Key("1").Always().Before(a))
				again := commit("1", `{}`)
				require.Equal(e.t, worker.Duplicate, judge(again, e.commit(again), `{}`), "the primary shows it")
				_, err := e.store.Find(e.ctx(), "", "1")
				require.NoError(e.t, err)
				e.faults.Add(fault.On(history.ExecuteBatch).Always().Before(fault.Reply(400, 0)))
				_, err = e.store.Commit(e.ctx(), commit("1", `{}`))
				require.Equal(e.t, reason.ConflictUnread, requireAs[*worker.UncertainError](e.t, err).Reason)
				_, err = e.store.Find(e.ctx(), "", "1")
				require.Equal(e.t, reason.ConflictUnread, requireAs[*worker.UncertainError](e.t, err).Reason)
				require.True(e.t, e.commit(commit("2", `{}`)).Created)
				require.NoError(e.t, e.store.Ready(e.ctx()))
			})
		})
	}
	for name, status := range map[string]int{"401 on its create": 401, "400 on its create": 400, "412 on its create": 412} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{}, func(e *env) {
				e.faults.Add(fault.On(history.CreateDocument).Key("1").Always().Before(fault.Reply(status, 0)))
				_, err := e.store.Commit(e.ctx(), commit("1", `{}`))
				require.Equal(e.t, reason.NeverStorable, requireAs[*worker.UncertainError](e.t, err).Reason)
				require.Contains(e.t, e.logged.String(), fmt.Sprintf("status=%d", status))
				require.Contains(e.t, e.logged.String(), "activity_id=")
			})
		})
	}
}

func TestCredentialsThatAreRefusedEverywhereBlameNoMessage(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.commit(commit("1", `{}`))
		e.faults.Add(fault.On("cosmosdb.*").Always().Before(fault.Reply(401, 0)))
		_, err := e.store.Commit(e.ctx(), commit("2", `{}`))
		m := requireAs[*worker.MisconfiguredError](e.t, err)
		require.Contains(e.t, m.Fix, "key")
		e.faults.Clear()
		require.True(e.t, e.commit(commit("2", `{}`)).Created)
	})
}

func TestAStoreThatFailsWhileAConflictIsReadBlamesNoMessage(t *testing.T) {
	for name, tt := range map[string]struct {
		action fault.Action
		fatal  bool
	}{
		"503": {fault.Reply(503, 0), false}, "throttled": {fault.Throttle(time.Minute), false}, "dropped": {fault.DropReply(), false},
		"silent": {fault.Action{Kind: fault.Silence}, false}, "403": {fault.Reply(403, 0), true}, "404/1003": {fault.Reply(404, 1003), true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{}, func(e *env) {
				e.commit(commit("1", `{}`, lines(1)...))
				e.faults.Add(fault.On(history.ReadDocument).Always().Before(tt.action))
				_, err := e.store.Commit(e.ctx(), commit("1", `{}`, lines(1)...))
				_, errFind := e.store.Find(e.ctx(), "", "1")
				for _, err := range []error{err, errFind} {
					if tt.fatal {
						requireAs[*worker.MisconfiguredError](e.t, err)
					} else {
						require.False(e.t, requireAs[*worker.UnavailableError](e.t, err).Ambiguous)
					}
				}
				e.faults.Clear()
				e.faults.Add(fault.On(history.ReadDocument).Key("1~part.line-1").Always().Before(tt.action))
				_, err = e.store.Find(e.ctx(), "", "1")
				require.Error(e.t, err, "a part that cannot be read is not called missing")
			})
		})
	}
}

func TestAPartCountsAsMissingOnlyWhenItIsSaidToBeAbsent(t *testing.T) {
	cut := fault.Action{Kind: fault.Refuse, Status: 200, Body: `{"id":"1~part.line-1","request":{"att`}
	other := fault.Action{Kind: fault.Refuse, Status: 200, Body: `{"id":"2"}`}
	noAnswer, absent := fault.Reply(400, 0), batchReply(207, 404)
	for name, tt := range map[string]struct {
		action  fault.Action
		times   int
		primary fault.Action // what the primary answers, unless zero
		missing []string
		fails   func(*testing.T, error)
	}{
		"a reply that is cut off once":                               {cut, 1, fault.Action{}, nil, nil},
		"a reply that is always cut off, with no other way":          {cut, 1, noAnswer, nil, isUnread},
		"another document, always, with no other way":                {other, 1, noAnswer, nil, isUnread},
		"a replica that is behind once":                              {fault.Reply(404, 1002), 2, fault.Action{}, nil, nil}, // azcosmos asks twice by itself
		"a replica that is always behind, with no other way":         {fault.Reply(404, 1002), 2, noAnswer, nil, isUnavailable},
		"a status that says nothing, with no other way":              {fault.Reply(204, 0), 1, noAnswer, nil, isUnread},
		"an absence that was not true":                               {fault.Reply(404, 0), 1, fault.Action{}, nil, nil},
		"an absence that the primary confirms":                       {fault.Reply(404, 0), 1, absent, []string{"line-1"}, nil},
		"an absence that is said twice, while the primary is silent": {fault.Reply(404, 0), 2, noAnswer, []string{"line-1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{}, func(e *env) {
				e.commit(commit("1", `{}`, lines(2)...))
				e.faults.Add(fault.On(history.ReadDocument).Key("1~part.line-1").Times(tt.times).Before(tt.action))
				e.faults.Add(fault.On(history.ExecuteBatch).Before(batchReply(207, 404, 424))) // so that each is read by itself
				struck := 1 + tt.times
				if tt.primary.Kind != fault.None {
					e.faults.Add(fault.On(history.ExecuteBatch).Nth(2).Before(tt.primary))
					struck++
				}
				r, err := e.store.Find(e.ctx(), "", "1")
				require.Equal(e.t, struck, e.faults.Applied())
				if tt.fails != nil {
					tt.fails(e.t, err)
					return
				}
				require.NoError(e.t, err)
				require.Equal(e.t, tt.missing, r.MissingParts)
			})
		})
	}
}

// TestALineThatOneReplicaLacksIsNotMissing lets the line be read where the batch has not arrived yet, while the primary may not be
// asked: the session token of the order's read tells that replica from one that knows.
func TestALineThatOneReplicaLacksIsNotMissing(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.commit(commit("1", `{}`, lines(1)...))
		e.faults.Add(fault.On(history.ReadDocument).Key("1~part.line-1").Always().Before(fault.Action{Kind: fault.Lag}))
		e.faults.Add(fault.On(history.ExecuteBatch).Always().Before(fault.Reply(403, 0)))
		_, err := e.store.Find(e.ctx(), "", "1")
		requireAs[*worker.UnavailableError](e.t, err)
		e.faults.Clear()
		r, err := e.store.Find(e.ctx(), "", "1")
		require.NoError(e.t, err)
		require.Empty(e.t, r.MissingParts)
	})
}
