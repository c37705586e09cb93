package cosmosstore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/identity"
	"github.com/orderworker/orderworker/worker/reason"
)

// TestAStoreThatAnswersReadsAndRefusesWritesBlamesNoMessage gives every write the same answer, that of a probe included,
// while reads are answered as ever.
func TestAStoreThatAnswersReadsAndRefusesWritesBlamesNoMessage(t *testing.T) {
	for status, fix := range map[int]string{401: "a key that may write", 402: "POST", 403: "role", 405: "POST", 407: "POST", 412: "may write", 413: "2 MB", 200: "", 204: "", 302: "", 409: ""} {
		for op, parts := range map[string]int{history.CreateDocument: 0, history.ExecuteBatch: 2} {
			t.Run(fmt.Sprintf("%s %d", op, status), func(t *testing.T) {
				inBubble(t, setup{}, func(e *env) {
					e.faults.Add(fault.On(op).Always().Before(fault.Reply(status, 0)))
					for _, key := range []string{"1", "1", "2"} {
						_, err := e.store.Commit(e.ctx(), commit(key, `{}`, lines(parts)...))
						stopsTheStore(e.t, err, fix)
						stopsTheStore(e.t, e.store.Ready(e.ctx()), fix)
					}
					e.faults.Clear()
					require.NoError(e.t, e.store.Ready(e.ctx()))
					require.True(e.t, e.commit(commit("1", `{}`, lines(parts)...)).Created)
					require.Equal(e.t, 1+parts, e.account.Count(database, container), "nothing that was sent to try is stored")
				})
			})
		}
	}
}

// stopsTheStore expects an error that blames the store: with a fix, or as something that passes.
func stopsTheStore(t *testing.T, err error, fix string) {
	t.Helper()
	if fix == "" {
		requireAs[*worker.UnavailableError](t, err)
		return
	}
	require.Contains(t, requireAs[*worker.MisconfiguredError](t, err).Fix, fix)
}

// TestAWriteThatIsRefusedWhileProbesAreAnsweredIsLeftToTheEngine refuses every real write, with an answer that a write without
// sense gets too, or that it alone does not get. The store cannot tell whose fault that is, and must not guess.
func TestAWriteThatIsRefusedWhileProbesAreAnsweredIsLeftToTheEngine(t *testing.T) {
	tests := []struct {
		name   string
		parts  int
		answer fault.Action
		reason string
	}{
		{"every create is refused with 400", 0, fault.Reply(400, 0), reason.NeverStorable},
		{"every create is refused with 401", 0, fault.Reply(401, 0), reason.NeverStorable},
		{"every create is too large", 0, fault.Reply(413, 0), reason.TooLarge},
		{"every create has a status that no create has", 0, fault.Reply(200, 0), reason.NeverStorable},
		{"every create meets a document that is not there", 0, fault.Reply(409, 0), reason.ConflictUnread},
		{"every batch is refused with 400", 1, fault.Reply(400, 0), reason.NeverStorable},
		{"a line of every batch is refused with 400", 1, batchReply(207, 424, 400), reason.NeverStorable},
		{"every batch is without results", 1, fault.Reply(200, 0), reason.NeverStorable},
		{"every batch meets an inbox record that is not there", 1, batchReply(207, 409, 424), reason.ConflictUnread},
		{"every batch meets a line that is not there", 1, batchReply(207, 424, 409), reason.ConflictUnread},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, setup{}, func(e *env) {
				op := history.CreateDocument
				if tt.parts > 0 {
					op = history.ExecuteBatch
				}
				strike := func(keys ...string) {
					for _, key := range keys {
						e.faults.Add(fault.On(op).Key(key).Always().Before(tt.answer))
					}
				}
				try := func(key string) error {
					_, err := e.store.Commit(e.ctx(), commit(key, `{}`, lines(tt.parts)...))
					return err
				}
				strike("1", "2", "3", "4")
				for _, key := range []string{"1", "1", "2", "3", "4", "1"} {
					err := requireAs[*worker.UncertainError](e.t, try(key))
					require.Equal(e.t, tt.reason, err.Reason)
					require.True(e.t, err.Refused)
				}
				require.NoError(e.t, try("good"))
				require.True(e.t, requireAs[*worker.UncertainError](e.t, try("1")).Refused)
				require.NoError(e.t, e.store.Ready(e.ctx()))
			})
		})
	}
}

func TestALineIsSaidToBlockOnlyWhenItDoes(t *testing.T) {
	const body = `{"orderId":"1"}`
	t.Run("it exists without its order", func(t *testing.T) {
		inBubble(t, setup{}, func(e *env) {
			require.NoError(e.t, e.account.Seed(database, container, `{"id":"1~part.line-2","pk":"1"}`))
			o := e.commit(commit("1", body, lines(2)...))
			require.Equal(e.t, "line-2", o.Blocking)
			require.False(e.t, o.Created)
			require.Equal(e.t, worker.Blocked, worker.Judge(worker.Commit{}, o, nil))
		})
	})
	t.Run("it was removed meanwhile", func(t *testing.T) {
		inBubble(t, setup{}, func(e *env) {
			e.faults.Add(fault.On(history.ExecuteBatch).Before(batchReply(207, 424, 409, 424)))
			require.True(e.t, e.commit(commit("1", body, lines(2)...)).Created)
		})
	})
	for name, other := range map[string]bool{"the batch was committed by this very commit": false, "the batch was committed by another delivery": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{}, func(e *env) {
				want := worker.Own
				if other {
					e.commit(commit("1", body, lines(2)...))
					want = worker.Duplicate
				}
				e.faults.Add(fault.On(history.ExecuteBatch).After(batchReply(207, 424, 409, 424)))
				c := commit("1", body, lines(2)...)
				require.Equal(e.t, want, judge(c, e.commit(c), body))
			})
		})
	}
}

func TestAfterALostAnswerNothingIsBlamedBeforeItIsLookedFor(t *testing.T) {
	const body = `{"a":1}`
	for name, a := range map[string]fault.Action{
		"a full partition": {Kind: fault.Refuse, Status: 403, Substatus: 1014}, "413": fault.Reply(413, 0), "400": fault.Reply(400, 0), "401": fault.Reply(401, 0),
	} {
		t.Run(name, func(t *testing.T) {
			for happened, lose := range map[bool]func(*fault.Rule) *fault.Rule{
				true:  func(r *fault.Rule) *fault.Rule { return r.After(fault.DropReply()) },
				false: func(r *fault.Rule) *fault.Rule { return r.Before(fault.DropReply()) },
			} {
				inBubble(t, setup{}, func(e *env) {
					e.faults.Add(lose(fault.On(history.CreateDocument).Key("1")), fault.On(history.CreateDocument).Key("1").Nth(2).Before(a))
					c := commit("1", body)
					o, err := e.store.Commit(e.ctx(), c)
					if happened {
						require.NoError(e.t, err)
						require.Equal(e.t, worker.Own, judge(c, o, body))
						return
					}
					require.Contains(e.t, detailOf(e.t, err), "look once more whether the order is stored")
				})
			}
		})
	}
}

func TestAnAnswerThatSaysNothingIsALostAnswer(t *testing.T) {
	for _, status := range []int{200, 302, 408, 410, 500} {
		inBubble(t, setup{}, func(e *env) {
			e.faults.Add(fault.On(history.CreateDocument).Before(fault.Reply(status, 0)), fault.On(history.CreateDocument).Nth(2).Before(fault.Reply(403, 1014)))
			_, err := e.store.Commit(e.ctx(), commit("1", `{}`))
			require.Contains(e.t, detailOf(e.t, err), "look once more whether the order is stored", status)
		})
	}
}

// detailOf is the text of an error that blames the message.
func detailOf(t *testing.T, err error) string {
	t.Helper()
	if e, ok := errors.AsType[*worker.UnstorableError](err); ok {
		return e.Detail
	}
	if e, ok := errors.AsType[*worker.UncertainError](err); ok {
		return e.Detail
	}
	require.Failf(t, "the message is not blamed", "%v", err)
	return ""
}

// TestAnOrderThatLostALineIsNoDuplicate holds that Commit and Find agree on an order of which somebody removed a line.
func TestAnOrderThatLostALineIsNoDuplicate(t *testing.T) {
	const body = `{"a":1}`
	for _, n := range []int{1, 2, 99} {
		t.Run(fmt.Sprintf("%d lines", n), func(t *testing.T) {
			inBubble(t, setup{}, func(e *env) {
				e.commit(commit("1", body, lines(n)...))
				again := commit("1", body, lines(n)...)
				o := e.commit(again)
				require.Equal(e.t, worker.Duplicate, judge(again, o, body))
				require.Equal(e.t, 1+1+1, o.Calls, "a refused batch, a read of the inbox record, and one request for all lines")
				last := fmt.Sprintf("line-%d", n)
				e.account.DeleteDocument(database, container, identity.PartDocumentID("1", last))
				again = commit("1", body, lines(n)...)
				require.Equal(e.t, worker.Incomplete, judge(again, e.commit(again), body))
				r, err := e.store.Find(e.ctx(), "", "1")
				require.NoError(e.t, err)
				require.Equal(e.t, []string{last}, r.MissingParts)
			})
		})
	}
}

func TestAListOfPartsThatNobodyCommittedIsNotReadToItsEnd(t *testing.T) {
	const body = `{"a":1}`
	inBubble(t, setup{}, func(e *env) {
		c := commit("1", body)
		names := `"line-0"`
		for i := range 10_000 {
			names += fmt.Sprintf(`,"line-%d"`, i+1)
		}
		require.NoError(e.t, e.account.Seed(database, container, fmt.Sprintf(`{"id":"1","pk":"1","type":"order","order":%s,"request":{"version":1,"key":"1",
			"hash":%q,"parameters":{"v":1,"alg":"sha256","form":"json"},"parts":[%s]}}`, body, c.Fingerprint.Hash, names)))
		o := e.commit(c)
		require.Equal(e.t, worker.Incomplete, judge(c, o, body))
		require.Less(e.t, o.Calls, 300)
	})
}

func TestALineWithMembersThatDifferInCaseAloneIsNotMissed(t *testing.T) {
	for _, add := range []string{`"Id":"x"`, `"ID":7`, `"Request":{"attempt":"zzz"}`, `"REQUEST":null`} {
		inBubble(t, setup{}, func(e *env) {
			e.commit(commit("1", `{}`, lines(2)...))
			doc := e.document("1~part.line-1")
			for name := range doc {
				if strings.HasPrefix(name, "_") {
					delete(doc, name)
				}
			}
			text, err := json.Marshal(doc)
			require.NoError(e.t, err)
			require.NoError(e.t, e.account.Seed(database, container, strings.TrimSuffix(string(text), "}")+","+add+"}"))
			r, err := e.store.Find(e.ctx(), "", "1")
			require.NoError(e.t, err)
			require.Empty(e.t, r.MissingParts, add)
		})
	}
}

func TestNumbersThatPushABodyOverTheBoundAreNamed(t *testing.T) {
	long := `{"x":[` + strings.TrimSuffix(strings.Repeat("12345678901234567,", 50_000), ",") + `]}`
	inBubble(t, setup{}, func(e *env) {
		for _, c := range []worker.Commit{commit("1", long), commit("1", long, lines(1)...)} {
			_, err := e.store.Commit(e.ctx(), c)
			u := requireAs[*worker.UnstorableError](e.t, err)
			require.Equal(e.t, reason.TooLarge, u.Reason)
			require.Contains(e.t, u.Detail, "as strings")
		}
		_, err := e.store.Commit(e.ctx(), commit("1", `{"n":12345678901234567,"a":"`+strings.Repeat("x", 3<<20)+`"}`))
		require.NotContains(e.t, requireAs[*worker.UnstorableError](e.t, err).Detail, "as strings")
	})
}
