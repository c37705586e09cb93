package cosmosstore_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/worker"
)

const claimRecord = "x-1~part.inbox-record"

// claim claims a commit, and returns it with its claim.
func (e *env) claim(c worker.Commit, claim worker.ClaimRecord) worker.Commit {
	e.t.Helper()
	c.Claim = &claim
	o, err := e.store.Claim(e.ctx(), c)
	require.NoError(e.t, err)
	require.NotNil(e.t, o.Claim)
	c.Claim = o.Claim
	return c
}

func TestAClaimIsOneCreateAndItsCommitOneBatch(t *testing.T) {
	inBubble(t, setup{options: func(o *cosmosstore.Options) { o.InboxRecords, o.InboxRecordTTL = true, time.Hour }}, func(e *env) {
		c := commit("x-1", `{"amount":40}`, lines(2)...)
		o, err := e.store.Claim(e.ctx(), func() worker.Commit {
			c.Claim = &worker.ClaimRecord{Number: 1, Lease: time.Minute}
			return c
		}())
		require.NoError(t, err)
		require.Equal(t, 1, o.Calls)
		record := e.document(claimRecord)
		require.Equal(t, "claimed", record["request"].(map[string]any)["state"])
		require.NotContains(t, record["request"], "committedAt")
		require.NotContains(t, record, "ttl", "a claim is not forgotten before somebody knows what became of it")
		_, err = e.store.Find(e.ctx(), "", "x-1")
		require.NoError(t, err)

		c.Claim = o.Claim
		o = e.commit(c)
		require.True(t, o.Created)
		require.Equal(t, 1, o.Calls)
		record = e.document(claimRecord)
		require.NotContains(t, record["request"], "state")
		require.NotContains(t, record["request"], "claim")
		require.InDelta(t, 3600, record["ttl"], 0)
		require.Equal(t, 4, e.account.Count(database, container))

		other := commit("x-2", `{"amount":40}`)
		other = e.claim(other, worker.ClaimRecord{Number: 1, Lease: time.Minute})
		e.claim(other, worker.ClaimRecord{Number: 1, ETag: other.Claim.ETag, Released: true})
		require.Contains(t, e.document("x-2~part.inbox-record"), "ttl", "one that was released may be forgotten")
		i, err := e.store.Inspect(e.ctx(), "", "x-2")
		require.NoError(t, err)
		require.True(t, i.Record.Claim.Released)
	})
}

func TestAClaimNeedsAnInboxRecordOfItsOwn(t *testing.T) {
	for name, s := range map[string]setup{
		"none are kept": {},
		"a container whose partition key is the id": {options: withRecords, container: func(c *cosmosdb.ContainerSpec) { c.PartitionKey = []string{"/id"} }, unopened: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, s, func(e *env) {
				if s.unopened {
					_, err := cosmosstore.Open(e.ctx(), e.options)
					var wrong *worker.MisconfiguredError
					require.ErrorAs(t, err, &wrong)
					return
				}
				c := commit("x-1", `{}`)
				c.Claim = &worker.ClaimRecord{Number: 1, Lease: time.Minute}
				_, err := e.store.Claim(e.ctx(), c)
				var wrong *worker.MisconfiguredError
				require.ErrorAs(t, err, &wrong)
				require.Contains(t, wrong.Fix, "WORKER_INBOX_RECORD")
				require.Empty(t, e.account.Documents(database, container))
			})
		})
	}
}

func TestWithoutATimeInTheReplyNoClaimIsOver(t *testing.T) {
	for _, dated := range []bool{true, false} {
		inBubble(t, setup{options: withRecords, unopened: true}, func(e *env) {
			if !dated {
				e.options.Transport = undated{e.account}
			}
			e.open()
			c := e.claim(commit("x-1", `{}`), worker.ClaimRecord{Number: 1, Lease: time.Minute})
			again := commit("x-1", `{}`)
			time.Sleep(time.Minute + 5*time.Second)
			require.Equal(t, worker.InProgress, judge(again, e.commit(again), `{}`), "some seconds are left for clocks of the service that differ")
			time.Sleep(2 * time.Second)
			want := worker.InProgress
			if dated {
				want = worker.ClaimExpired
			}
			require.Equal(t, want, judge(again, e.commit(again), `{}`))
			e.claim(c, worker.ClaimRecord{Number: 1, ETag: c.Claim.ETag})
			require.Equal(t, worker.ClaimExpired, judge(again, e.commit(again), `{}`), "a lease of zero needs no time")
		})
	}
}

// undated is an account behind a proxy that takes the time out of each reply.
type undated struct{ account *cosmosdb.Account }

func (u undated) Do(r *http.Request) (*http.Response, error) {
	resp, err := u.account.Transport().Do(r)
	if err == nil {
		resp.Header.Del("Date")
	}
	return resp, err
}

func TestWhatACommitFindsBesideItsClaim(t *testing.T) {
	const body = `{"amount":40}`
	tests := []struct {
		name   string
		before func(e *env, c worker.Commit)
		commit func() worker.Commit
		want   worker.Judgement
	}{
		{"nothing", func(*env, worker.Commit) {}, func() worker.Commit { return commit("x-1", body) }, worker.Created},
		{"no record any more, since somebody deleted it", func(e *env, _ worker.Commit) {
			require.Equal(e.t, 1, e.account.DeleteDocument(database, container, claimRecord))
		}, func() worker.Commit { return commit("x-1", body) }, worker.Created},
		{"a document of a worker that keeps no inbox records", func(e *env, _ worker.Commit) {
			o := e.options
			o.InboxRecords = false
			plain, err := cosmosstore.Open(e.ctx(), o)
			require.NoError(e.t, err)
			defer plain.Close()
			committed, err := plain.Commit(e.ctx(), commit("x-1", body))
			require.NoError(e.t, err)
			require.True(e.t, committed.Created)
		}, func() worker.Commit { return commit("x-1", body) }, worker.Duplicate},
		{"one of its lines", func(e *env, _ worker.Commit) {
			require.NoError(e.t, e.account.Seed(database, container, `{"id":"x-1~part.line-2","pk":"x-1"}`))
		}, func() worker.Commit { return commit("x-1", body, lines(2)...) }, worker.Blocked},
		{"a renewal whose answer was lost", func(e *env, c worker.Commit) {
			e.claim(c, worker.ClaimRecord{Number: 1, Lease: time.Minute, ETag: c.Claim.ETag})
		}, func() worker.Commit { return commit("x-1", body) }, worker.Created},
		{"its own commit whose answer was lost", func(e *env, c worker.Commit) { require.True(e.t, e.commit(c).Created) },
			func() worker.Commit { return commit("x-1", body, lines(1)...) }, worker.Own},
		{"another commit", func(e *env, c worker.Commit) {
			other := commit("x-1", body)
			other = e.claim(other, worker.ClaimRecord{Number: 2, Lease: time.Minute, ETag: c.Claim.ETag})
			require.True(e.t, e.commit(other).Created)
		}, func() worker.Commit { return commit("x-1", body) }, worker.Duplicate},
		{"another claim", func(e *env, c worker.Commit) {
			e.claim(commit("x-1", body), worker.ClaimRecord{Number: 2, Lease: time.Minute, ETag: c.Claim.ETag})
		}, func() worker.Commit { return commit("x-1", body, lines(2)...) }, worker.InProgress},
		{"another claim that was released", func(e *env, c worker.Commit) {
			e.claim(commit("x-1", body), worker.ClaimRecord{Number: 2, Released: true, ETag: c.Claim.ETag})
		}, func() worker.Commit { return commit("x-1", body) }, worker.ClaimExpired},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, setup{options: withRecords}, func(e *env) {
				c := e.claim(tt.commit(), worker.ClaimRecord{Number: 1, Lease: time.Minute})
				tt.before(e, c)
				before := e.account.Count(database, container)
				j := judge(c, e.commit(c), body)
				require.Equal(t, tt.want, j)
				if j != worker.Created {
					require.Equal(t, before, e.account.Count(database, container), "nothing is created")
				}
			})
		})
	}
}

func TestChangesUnderAClaimKeepTheirConditions(t *testing.T) {
	inBubble(t, setup{options: withRecords}, func(e *env) {
		e.put("p", "e1", `{"data":{"version":5},"paid":0}`)
		state, err := e.store.Read(e.ctx(), "p", "e1")
		require.NoError(t, err)
		paid := e.claim(changes("M1", "p", worker.Replace("e1", state.Content, state.ETag)), worker.ClaimRecord{Number: 1, Lease: time.Minute})
		e.put("p", "e1", `{"data":{"version":6},"paid":1}`)
		_, err = e.store.Commit(e.ctx(), paid)
		var moved *worker.StateMovedError
		require.ErrorAs(t, err, &moved)
		require.Equal(t, "e1", moved.Document)
		record, err := e.store.Find(e.ctx(), "p", "M1")
		require.NoError(t, err)
		require.NotNil(t, record.Claim, "the claim is still its own")
		paid.Changes = []worker.Change{worker.Patch("e1", worker.Increment("/paid", 40)), worker.Delete("gone", "")}
		require.True(t, e.commit(paid).Created)

		for _, kind := range []worker.ChangeKind{worker.ChangePatch, worker.ChangeUpsert} {
			old := versioned(kind, 3, true)
			old.Partition, old.MessageID = "p", string(kind)
			old.Key.Value, old.DocumentID = string(kind), string(kind)
			o := e.commit(e.claim(old, worker.ClaimRecord{Number: 1, Lease: time.Minute}))
			require.True(t, o.Stale)
			record, err := e.store.Find(e.ctx(), "p", string(kind))
			require.NoError(t, err)
			require.True(t, record.Stale)
			require.Nil(t, record.Claim)
		}
	})
}

// TestEveryAnswerToAWriteOfAClaimMayBeLost loses requests and answers of the claim, of a renewal, of the release and of the commit.
func TestEveryAnswerToAWriteOfAClaimMayBeLost(t *testing.T) {
	steps := map[string]func(e *env, c worker.Commit) worker.Commit{
		"claim": func(e *env, c worker.Commit) worker.Commit {
			return e.claim(c, worker.ClaimRecord{Number: 1, Lease: time.Minute})
		},
		"renewal": func(e *env, c worker.Commit) worker.Commit {
			return e.claim(c, worker.ClaimRecord{Number: 1, Lease: time.Minute, ETag: c.Claim.ETag})
		},
		"commit": func(e *env, c worker.Commit) worker.Commit {
			require.True(e.t, judge(c, e.commit(c), `{}`).Committed())
			return c
		},
	}
	for lost := range steps {
		for name, a := range map[string]fault.Action{"dropped": fault.DropReply(), "reset": {Kind: fault.Drop, Condition: cosmosdb.StreamReset}, "garbled": {Kind: fault.Garble},
			"503": fault.Reply(503, 0), "408": fault.Reply(408, 0), "429": fault.Throttle(time.Millisecond), "449": fault.Reply(449, 0)} {
			for _, after := range []bool{false, true} {
				if name == "garbled" && !after {
					continue // a page that refuses the request
				}
				t.Run(fmt.Sprintf("%s, %s, after %v", lost, name, after), func(t *testing.T) {
					inBubble(t, setup{options: withRecords}, func(e *env) {
						c := commit("x-1", `{}`, lines(2)...)
						for _, step := range []string{"claim", "renewal", "commit"} {
							if step == lost {
								for _, op := range []string{history.CreateDocument, history.ExecuteBatch} {
									for _, key := range []string{claimRecord, "x-1"} {
										rule := fault.On(op).Key(key)
										if after {
											e.faults.Add(rule.After(a))
										} else {
											e.faults.Add(rule.Before(a))
										}
									}
								}
							}
							c = steps[step](e, c)
							if step == lost {
								require.Equal(t, 1, e.faults.Applied())
								e.faults.Clear()
							}
						}
						require.Equal(t, 4, e.account.Count(database, container))
						r, err := e.store.Find(e.ctx(), "", "x-1")
						require.NoError(t, err)
						require.Nil(t, r.Claim)
						require.Empty(t, r.MissingParts)
					})
				})
			}
		}
	}
}
