package cosmosstore_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/identity"
	"github.com/orderworker/orderworker/worker/reason"
)

func withRecords(o *cosmosstore.Options) { o.InboxRecords = true }

// changes is a commit of a message that only changes documents, in a partition of its own choice.
func changes(key, partition string, e ...worker.Change) worker.Commit {
	c := commit(key, fmt.Sprintf(`{"key":%q}`, key))
	c.Partition, c.Documents, c.Changes = partition, nil, e
	return c
}

// judged judges an outcome against the body of a commit, which is its key where a commit of changes has none of its own.
func judged(c worker.Commit, o worker.Outcome) worker.Judgement {
	body := fmt.Sprintf(`{"key":%q}`, c.MessageID)
	if len(c.Documents) > 0 {
		body = string(c.Documents[0].Content)
	}
	return judge(c, o, body)
}

// put upserts a document without a record, as another program would have made it.
func (e *env) put(partition, id, content string) {
	e.t.Helper()
	c := changes("put-"+id, partition, worker.Upsert(id, []byte(content)))
	c.WithoutRecord = true
	require.True(e.t, e.commit(c).Created)
}

func TestAnOrderIsSetToPaidOnceWhateverBecomesOfTheAnswers(t *testing.T) {
	for name, rule := range map[string]*fault.Rule{
		"nothing goes wrong":           nil,
		"the answer is lost":           fault.On(history.ExecuteBatch).After(fault.DropReply()),
		"the request is lost":          fault.On(history.ExecuteBatch).Before(fault.DropReply()),
		"the store is busy":            fault.On(history.ExecuteBatch).Times(2).Before(fault.Reply(449, 0)),
		"answers are lost three times": fault.On(history.ExecuteBatch).Times(3).After(fault.DropReply()),
	} {
		for _, path := range []string{"/pk", "/tenant/id"} {
			t.Run(name+" on "+path, func(t *testing.T) {
				inBubble(t, setup{options: withRecords, container: func(c *cosmosdb.ContainerSpec) { c.PartitionKey = []string{path} }}, func(e *env) {
					e.put("913", "913", `{"status":"NEW","history":[]}`)
					paid := func() worker.Commit {
						return changes("M42", "913", worker.Patch("913", worker.Set("/status", "PAID"), worker.Add("/history/-", "paid")))
					}
					if rule != nil {
						e.faults.Add(rule)
					}
					first := paid()
					require.True(t, judged(first, e.commit(first)).Committed())
					for range 3 {
						again := paid()
						require.Equal(t, worker.Duplicate, judged(again, e.commit(again)))
					}
					require.Equal(t, "PAID", e.document("913")["status"])
					require.Equal(t, []any{"paid"}, e.document("913")["history"])
					record, err := e.store.Find(e.ctx(), "913", "M42")
					require.NoError(t, err)
					require.Equal(t, identity.Text("M42").String(), record.Key)
					_, err = e.store.Find(e.ctx(), "", "M42")
					require.ErrorIs(t, err, worker.ErrNotFound, "the record is in the partition of the order")
				})
			})
		}
	}
}

func TestADuplicateIsADuplicateAlsoWhenItsPreconditionsFail(t *testing.T) {
	inBubble(t, setup{options: withRecords}, func(e *env) {
		e.put("913", "913", `{"status":"NEW"}`)
		c := changes("M42", "913", worker.Patch("913", worker.Set("/status", "PAID")).If("from c where c.status = 'NEW'"))
		require.True(t, e.commit(c).Created)
		again := changes("M42", "913", worker.Patch("913", worker.Set("/status", "PAID")).If("from c where c.status = 'NEW'"))
		require.Equal(t, worker.Duplicate, judged(again, e.commit(again)))
	})
}

func TestWhatHasMovedIsSaidAndNothingIsCommitted(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(etag string) worker.Change
		reason string
	}{
		{"a replace under an old ETag", func(etag string) worker.Change { return worker.Replace("913", []byte(`{"n":2}`), etag) }, ""},
		{"a delete under an old ETag", func(etag string) worker.Change { return worker.Delete("913", etag) }, ""},
		{"a replace of what is gone", func(etag string) worker.Change { return worker.Replace("gone", []byte(`{"n":2}`), etag) }, ""},
		{"a patch whose predicate does not hold", func(string) worker.Change {
			return worker.Patch("913", worker.Set("/n", 2)).If("from c where c.n = 0")
		}, ""},
		{"a patch of what is not stored", func(string) worker.Change { return worker.Patch("gone", worker.Set("/n", 2)) }, reason.ChangeTargetMissing},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, setup{options: withRecords}, func(e *env) {
				e.put("913", "913", `{"n":0}`)
				state, err := e.store.Read(e.ctx(), "913", "913")
				require.NoError(t, err)
				e.put("913", "913", `{"n":1}`)
				c := changes("M1", "913", tt.change(state.ETag), worker.Upsert("other", []byte(`{}`)))
				_, err = e.store.Commit(e.ctx(), c)
				if tt.reason != "" {
					var uncertain *worker.UncertainError
					require.ErrorAs(t, err, &uncertain)
					require.Equal(t, tt.reason, uncertain.Reason)
				} else {
					var moved *worker.StateMovedError
					require.ErrorAs(t, err, &moved)
				}
				require.Equal(t, 1.0, e.document("913")["n"])
				_, err = e.store.Read(e.ctx(), "913", "other")
				require.ErrorIs(t, err, worker.ErrNotFound, "all of it or nothing")
				_, err = e.store.Find(e.ctx(), "913", "M1")
				require.ErrorIs(t, err, worker.ErrNotFound)
			})
		})
	}
}

func TestAReadGivesBackWhatAReplaceTakes(t *testing.T) {
	inBubble(t, setup{options: withRecords}, func(e *env) {
		e.put("acc-1", "acc-1", `{"balance":10,"note":"a<b"}`)
		state, err := e.store.Read(e.ctx(), "acc-1", "acc-1")
		require.NoError(t, err)
		require.NotContains(t, string(state.Content), "_etag")
		require.Positive(t, state.Charge)
		require.Equal(t, 1, state.Calls)
		var account map[string]any
		require.NoError(t, json.Unmarshal(state.Content, &account))
		account["balance"] = 7
		content, err := json.Marshal(account)
		require.NoError(t, err)
		require.True(t, e.commit(changes("d1", "acc-1", worker.Replace("acc-1", content, state.ETag))).Created)
		require.Equal(t, 7.0, e.document("acc-1")["balance"])
		require.Equal(t, "a<b", e.document("acc-1")["note"])
	})
}

func TestADeleteOfWhatIsGoneIsDone(t *testing.T) {
	inBubble(t, setup{options: withRecords}, func(e *env) {
		require.True(t, e.commit(changes("M1", "p", worker.Delete("gone", ""), worker.Upsert("kept", []byte(`{}`)))).Created)
		_, err := e.store.Read(e.ctx(), "p", "kept")
		require.NoError(t, err)
		alone := changes("M2", "p", worker.Delete("gone", ""))
		alone.WithoutRecord = true
		require.True(t, e.commit(alone).Created)
	})
}

// versioned returns an event of an entity, as an upsert of its whole state or as a patch of it.
func versioned(kind worker.ChangeKind, n int64, record bool) worker.Commit {
	change := worker.Upsert("e1", fmt.Appendf(nil, `{"data":{"version":%d},"name":"n%d"}`, n, n))
	if kind == worker.ChangePatch {
		change = worker.Patch("e1", worker.Set("/data/version", n), worker.Set("/name", fmt.Sprintf("n%d", n)))
	}
	c := changes(fmt.Sprintf("v%d", n), "e1", change)
	c.Version, c.WithoutRecord = &worker.Version{Document: "e1", Path: "/data/version", Value: n}, !record
	return c
}

func TestAProjectionEndsAtTheNewestHoweverItsEventsArrive(t *testing.T) {
	for _, kind := range []worker.ChangeKind{worker.ChangeUpsert, worker.ChangePatch} {
		for _, record := range []bool{true, false} {
			for seed := range uint64(10) {
				t.Run(fmt.Sprintf("%s, record %v, seed %d", kind, record, seed), func(t *testing.T) {
					inBubble(t, setup{options: withRecords}, func(e *env) {
						if kind == worker.ChangePatch {
							e.put("e1", "e1", `{"data":{},"name":""}`)
						}
						random := rand.New(rand.NewPCG(seed, 1))
						newest, applied := int64(0), 0
						for _, n := range random.Perm(12) {
							c := versioned(kind, int64(n), record)
							o := e.commit(c)
							fresh := int64(n) > newest || applied == 0
							require.Equal(t, !fresh, o.Stale, "version %d after %d", n, newest)
							if fresh {
								newest, applied = int64(n), applied+1
							}
							if again := versioned(kind, int64(n), record); record {
								require.Equal(t, worker.Duplicate, judged(again, e.commit(again)), "a repeat, stale or not")
							}
						}
						require.Equal(t, "n11", e.document("e1")["name"])
						if !record {
							require.Equal(t, 1, e.account.Count(database, container), "no record, stale or not")
							return
						}
						r, err := e.store.Find(e.ctx(), "e1", "v11")
						require.NoError(t, err)
						require.False(t, r.Stale)
					})
				})
			}
		}
	}
}

func TestEqualVersionsUnderDifferentKeysAreStale(t *testing.T) {
	for _, kind := range []worker.ChangeKind{worker.ChangeUpsert, worker.ChangePatch} {
		inBubble(t, setup{options: withRecords}, func(e *env) {
			e.put("e1", "e1", `{"data":{}}`)
			require.True(t, e.commit(versioned(kind, 5, true)).Created)
			other := versioned(kind, 5, true)
			other.Key, other.DocumentID = identity.Text("other"), "other"
			o := e.commit(other)
			require.Equal(t, worker.Stale, judged(other, o))
			r, err := e.store.Find(e.ctx(), "e1", "other")
			require.NoError(t, err)
			require.True(t, r.Stale)
		})
	}
}

func TestVersionsThatRaceEndAtTheNewest(t *testing.T) {
	for _, kind := range []worker.ChangeKind{worker.ChangeUpsert, worker.ChangePatch} {
		inBubble(t, setup{options: withRecords}, func(e *env) {
			if kind == worker.ChangePatch {
				e.put("e1", "e1", `{"data":{},"name":""}`)
			}
			var all sync.WaitGroup
			for n := range int64(20) {
				all.Go(func() {
					for {
						_, err := e.store.Commit(e.ctx(), versioned(kind, n, true))
						if _, moved := err.(*worker.StateMovedError); !moved { //nolint:errorlint // it is returned as it is
							require.NoError(t, err)
							return
						}
					}
				})
			}
			all.Wait()
			require.Equal(t, "n19", e.document("e1")["name"])
		})
	}
}

func TestTheOutcomeIsKeptInTheRecord(t *testing.T) {
	inBubble(t, setup{options: withRecords}, func(e *env) {
		c := commit("1", `{"a":1}`)
		c.Outcome = []byte(`{"invoice":"R-7"}`)
		require.True(t, e.commit(c).Created)
		r, err := e.store.Find(e.ctx(), "", "1")
		require.NoError(t, err)
		require.JSONEq(t, `{"invoice":"R-7"}`, string(r.Outcome))
	})
}

func TestWhatTheContainerCannotHoldIsRefusedBeforeItIsSent(t *testing.T) {
	many := make([]worker.Change, 100)
	for i := range many {
		many[i] = worker.Upsert(fmt.Sprint("e", i), []byte(`{}`))
	}
	for name, c := range map[string]worker.Commit{
		"an id that addresses another resource": changes("1", "p", worker.Upsert("a/b", []byte(`{}`))),
		"another id in the content":             changes("1", "p", worker.Upsert("a", []byte(`{"id":"b"}`))),
		"another partition in the content":      changes("1", "p", worker.Upsert("a", []byte(`{"pk":"q"}`))),
		"a patch of the partition key":          changes("1", "p", worker.Patch("a", worker.Set("/pk", "q"))),
		"too many operations with the record":   changes("1", "p", many...),
		"too many bytes":                        changes("1", "p", worker.Upsert("a", []byte(`{"x":"`+strings.Repeat("x", 1_200_000)+`"}`)), worker.Upsert("b", []byte(`{"x":"`+strings.Repeat("x", 1_200_000)+`"}`))),
		"content that is no JSON":               changes("1", "p", worker.Upsert("a", []byte(`{"x":}`))),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{options: withRecords}, func(e *env) {
				_, err := e.store.Commit(e.ctx(), c)
				var never *worker.UnstorableError
				require.ErrorAs(t, err, &never)
				require.Zero(t, e.requests(history.ExecuteBatch))
			})
		})
	}
	t.Run("changes where no inbox records are kept", func(t *testing.T) {
		inBubble(t, setup{}, func(e *env) {
			_, err := e.store.Commit(e.ctx(), changes("1", "p", worker.Upsert("a", []byte(`{}`))))
			var wrong *worker.MisconfiguredError
			require.ErrorAs(t, err, &wrong)
			require.Contains(t, wrong.Fix, "WORKER_INBOX_RECORD")
		})
	})
}

func TestADocumentWithAndChangesTogetherAreOneTransaction(t *testing.T) {
	inBubble(t, setup{options: withRecords}, func(e *env) {
		e.put("cust-7", "cust-7", `{"orders":0}`)
		c := commit("o-1", `{"a":1}`)
		c.Partition, c.Changes = "cust-7", []worker.Change{worker.Patch("cust-7", worker.Increment("/orders", 1))}
		before := e.requests(history.ExecuteBatch)
		require.True(t, e.commit(c).Created)
		require.Equal(t, before+1, e.requests(history.ExecuteBatch))
		again := commit("o-1", `{"a":1}`)
		again.Partition, again.Changes = c.Partition, c.Changes
		require.Equal(t, worker.Duplicate, judged(again, e.commit(again)))
		require.Equal(t, 1.0, e.document("cust-7")["orders"])
		other := commit("o-1", `{"a":2}`)
		other.Partition, other.Changes = c.Partition, c.Changes
		require.Equal(t, worker.Conflict, judged(other, e.commit(other)))
	})
}

func TestAPatchThatDoesNotFitItsDocumentBlamesNeitherTheStoreNorOtherMessages(t *testing.T) {
	inBubble(t, setup{options: withRecords}, func(e *env) {
		e.put("913", "913", `{"name":"x"}`)
		for n := range 6 {
			_, err := e.store.Commit(e.ctx(), changes(fmt.Sprint("bad", n), "913", worker.Patch("913", worker.Increment("/name", 1))))
			var uncertain *worker.UncertainError
			require.ErrorAs(t, err, &uncertain)
			require.Equal(t, reason.InvalidEffects, uncertain.Reason)
		}
		before := e.requests(history.ExecuteBatch)
		require.NoError(t, e.store.Ready(e.ctx()))
		require.Equal(t, before, e.requests(history.ExecuteBatch), "an answer about one document raises no doubt of the store")
	})
}

func TestAConditionBesideAVersionMustHoldToo(t *testing.T) {
	inBubble(t, setup{options: withRecords}, func(e *env) {
		e.put("e1", "e1", `{"status":"CLOSED","version":1}`)
		patch := worker.Patch("e1", worker.Set("/name", "new"), worker.Set("/version", 2)).If("FROM c WHERE c.status = 'OPEN' OR c.status = 'NEW'")
		c := changes("M1", "e1", patch)
		c.Version = &worker.Version{Document: "e1", Path: "/version", Value: 2}
		_, err := e.store.Commit(e.ctx(), c)
		require.Equal(t, "e1", requireAs[*worker.StateMovedError](t, err).Document)
		require.NotContains(t, e.document("e1"), "name")
		c = changes("M2", "e1", patch)
		c.Version = &worker.Version{Document: "e1", Path: "/version", Value: 1}
		require.True(t, e.commit(c).Stale, "an old version is stale whatever else does not hold")
	})
}

func TestTheDocumentOfAMessageKeepsItsNumbersThroughAChange(t *testing.T) {
	const body = `{"total":12345678901234567890,"lines":[{"price":0.1000000000000000055511151231257827}]}`
	inBubble(t, setup{options: withRecords}, func(e *env) {
		e.commit(commit("1", body))
		state, err := e.store.Read(e.ctx(), "1", "1")
		require.NoError(t, err)
		require.Contains(t, string(state.Content), `"total":12345678901234567890`)
		paid := strings.Replace(string(state.Content), `{`, `{"paid":98765432109876543210,`, 1)
		require.True(t, e.commit(changes("M2", "1", worker.Replace("1", []byte(paid), state.ETag))).Created)
		require.Equal(t, map[string]any{"/total": "12345678901234567890", "/lines/0/price": "0.1000000000000000055511151231257827", "/paid": "98765432109876543210"},
			e.document("1")["exactNumbers"], "where the record of the message looks for them")
		r, err := e.store.Find(e.ctx(), "", "1")
		require.NoError(t, err)
		require.Equal(t, body, string(r.Content))
		state, err = e.store.Read(e.ctx(), "1", "1")
		require.NoError(t, err)
		require.Contains(t, string(state.Content), `"paid":98765432109876543210`)
		require.Contains(t, string(state.Content), `"total":12345678901234567890`)
	})
}

func TestAChangeHasATimeToLiveWhereTheContainerKeepsIt(t *testing.T) {
	upsert := worker.Upsert("e1", []byte(`{"ttl":7}`))
	upsert.TTL = time.Minute
	inBubble(t, setup{options: withRecords}, func(e *env) {
		require.True(t, e.commit(changes("M1", "e1", upsert)).Created)
		require.InDelta(t, 60, e.document("e1")["ttl"], 0)
	})
	inBubble(t, setup{options: withRecords, container: func(s *cosmosdb.ContainerSpec) { s.DefaultTTL = 0 }}, func(e *env) {
		_, err := e.store.Commit(e.ctx(), changes("M1", "e1", upsert))
		require.Contains(t, requireAs[*worker.MisconfiguredError](t, err).Fix, "-1")
	})
}

func TestInAContainerKeyedByIDAChangeStaysInItsPartition(t *testing.T) {
	inBubble(t, setup{container: func(s *cosmosdb.ContainerSpec) { s.PartitionKey = []string{"/id"} }}, func(e *env) {
		own, other := changes("M1", "e1", worker.Upsert("e1", []byte(`{"n":1}`))), changes("M2", "e1", worker.Upsert("e2", []byte(`{"n":1}`)))
		own.WithoutRecord, other.WithoutRecord = true, true
		require.True(t, e.commit(own).Created)
		_, err := e.store.Commit(e.ctx(), other)
		require.Contains(t, requireAs[*worker.UnstorableError](t, err).Detail, "outside of the partition")
	})
}

// TestAnUpsertWithAVersionWritesOverNothingNewerThatComesBetween stores a newer version after the store has read and before it writes.
func TestAnUpsertWithAVersionWritesOverNothingNewerThatComesBetween(t *testing.T) {
	for name, before := range map[string]string{"nothing was stored": "", "an older one was stored": `{"id":"e1","pk":"e1","data":{"version":1}}`} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{options: withRecords}, func(e *env) {
				if before != "" {
					require.NoError(t, e.account.Seed(database, container, before))
				}
				write := 1
				if before == "" {
					write = 2 // after the look at the primary, which is a batch too
				}
				e.faults.Add(fault.On(history.ExecuteBatch).Nth(write).Before(fault.Call(func() {
					e.account.DeleteDocument(database, container, "e1")
					require.NoError(t, e.account.Seed(database, container, `{"id":"e1","pk":"e1","data":{"version":9},"name":"n9"}`))
				})))
				require.True(t, e.commit(versioned(worker.ChangeUpsert, 5, true)).Stale)
				require.Equal(t, "n9", e.document("e1")["name"])
			})
		})
	}
}

func TestTheRecordOfChangesIsNotTakenForTheDocumentThatTheyChange(t *testing.T) {
	inBubble(t, setup{options: withRecords}, func(e *env) {
		e.put("913", "913", `{"type":"order","order":{"status":"NEW"}}`)
		pay := func() worker.Commit {
			return changes("913", "913", worker.Patch("913", worker.Set("/order/status", "PAID")))
		}
		require.True(t, e.commit(pay()).Created)
		again := pay()
		o := e.commit(again)
		require.Equal(t, worker.Duplicate, judged(again, o))
		require.Equal(t, 2, o.Calls, "the refused batch, and a read of the record")
		require.Empty(t, o.Existing.Type)
		require.Nil(t, o.Existing.Content)
	})
}
