package cosmosstore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/reason"
)

// results is the body of a batch reply with these codes.
func results(codes ...int) string {
	var list []map[string]int
	for _, c := range codes {
		list = append(list, map[string]int{"statusCode": c})
	}
	body, err := json.Marshal(list)
	if err != nil {
		panic(err)
	}
	return string(body)
}

func batchReply(status int, codes ...int) fault.Action {
	return fault.Action{Kind: fault.Refuse, Status: status, Body: results(codes...)}
}

func TestABatchReplyOfAnyShapeOnAnEmptyStore(t *testing.T) {
	tests := []struct {
		name   string
		action fault.Action
		check  func(t *testing.T, o worker.Outcome, err error)
	}{
		{"a line is said to exist and is not there", batchReply(207, 424, 409, 424), uncertain(reason.ConflictUnread)},
		{"the inbox record is throttled", batchReply(207, 429, 424, 424), unavailableNow},
		{"a line is throttled", batchReply(207, 424, 424, 429), unavailableNow},
		{"a line is in a region without writes", batchReply(207, 424, 403, 424), func(t *testing.T, _ worker.Outcome, err error) {
			requireAs[*worker.MisconfiguredError](t, err) // without a substatus a 403 is about rights
		}},
		{"a small line is too large", batchReply(207, 424, 413, 424), uncertain(reason.TooLarge)},
		{"the whole small request is too large", fault.Reply(413, 0), uncertain(reason.TooLarge)},
		{"the partition is full", fault.Action{Kind: fault.Refuse, Status: 207,
			Body: `[{"statusCode":403,"subStatusCode":1014},{"statusCode":424},{"statusCode":424}]`}, unstorable(reason.PartitionFull)},
		{"a line is throttled with a hint", fault.Action{Kind: fault.Refuse, Status: 207,
			Body: `[{"statusCode":424},{"statusCode":429,"retryAfterMilliseconds":700},{"statusCode":424}]`},
			func(t *testing.T, _ worker.Outcome, err error) {
				require.Equal(t, 700*time.Millisecond, requireAs[*worker.UnavailableError](t, err).RetryAfter)
			}},
		{"a line is refused", batchReply(207, 424, 400, 424), uncertain(reason.NeverStorable)},
		{"the batch is refused", fault.Reply(400, 0), uncertain(reason.NeverStorable)},
		{"there are no results", batchReply(200), uncertain(reason.NeverStorable)},
		{"there are too few results", batchReply(200, 201, 201), uncertain(reason.NeverStorable)},
		{"the results are no JSON", fault.Action{Kind: fault.Refuse, Status: 207, Body: "not JSON"}, uncertain(reason.NeverStorable)},
		{"success is claimed and nothing is there", batchReply(207, 201, 201, 201), uncertain(reason.NeverStorable)},
		{"a conflict is claimed and nothing is there", batchReply(207, 409, 424, 424), uncertain(reason.ConflictUnread)},
		{"a line is contended for ever", batchReply(207, 424, 449, 424), unavailableNow},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, setup{}, func(e *env) {
				e.faults.Add(fault.On(history.ExecuteBatch).Key("1").Always().Before(tt.action))
				o, err := e.store.Commit(e.ctx(), commit("1", `{}`, lines(2)...))
				require.False(e.t, o.Created)
				tt.check(e.t, o, err)
				require.Zero(e.t, e.account.Count(database, container))

				e.faults.Clear()
				require.True(e.t, e.commit(commit("1", `{}`, lines(2)...)).Created, "afterwards the message can be stored")
			})
		})
	}
}

func unavailableNow(t *testing.T, _ worker.Outcome, err error) {
	require.False(t, requireAs[*worker.UnavailableError](t, err).Ambiguous, "a batch that was rolled back did not happen")
}

func unstorable(word string) func(*testing.T, worker.Outcome, error) {
	return func(t *testing.T, _ worker.Outcome, err error) {
		require.Equal(t, word, requireAs[*worker.UnstorableError](t, err).Reason)
	}
}

func uncertain(word string) func(*testing.T, worker.Outcome, error) {
	return func(t *testing.T, _ worker.Outcome, err error) {
		require.Equal(t, word, requireAs[*worker.UncertainError](t, err).Reason)
	}
}

func TestABatchThatIsContendedOrThrottledForAWhileIsCommitted(t *testing.T) {
	for name, a := range map[string]fault.Action{
		"449 in its results": batchReply(207, 449, 424, 424), "449": fault.Reply(449, 0), "429": fault.Throttle(100 * time.Millisecond), "no results": batchReply(200),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{}, func(e *env) {
				e.faults.Add(fault.On(history.ExecuteBatch).Times(3).Before(a))
				require.True(e.t, e.commit(commit("1", `{}`, lines(2)...)).Created)
				require.Equal(e.t, 3, e.account.Count(database, container))
			})
		})
	}
}

// TestABatchThatIsNotAtomicIsNeverCalledADuplicate plays the emulator that keeps the lines of a batch whose inbox record exists.
func TestABatchThatIsNotAtomicIsNeverCalledADuplicate(t *testing.T) {
	const body = `{"orderId":"1"}`
	for _, status := range []int{207, 200} {
		t.Run(fmt.Sprintf("%d with [409,201]", status), func(t *testing.T) {
			inBubble(t, setup{}, func(e *env) {
				e.commit(commit("1", body, lines(1)...))
				e.account.DeleteDocument(database, container, "1~part.line-1")
				c := commit("1", body, lines(1)...)
				stray := fmt.Sprintf(`{"id":"1~part.line-1","pk":"1","type":"line","request":{"key":"1","attempt":%q}}`, c.Attempt)
				a := batchReply(status, 409, 201)
				a.Do = func() { require.NoError(e.t, e.account.Seed(database, container, stray)) }
				e.faults.Add(fault.On(history.ExecuteBatch).Before(a))
				o := e.commit(c)
				require.Equal(e.t, []string{"line-1"}, o.Existing.MissingParts, "the line there is a stray of this attempt, not the order's")
				require.Equal(e.t, worker.Incomplete, judge(c, o, body))
			})
		})
	}
	t.Run("[409,201] where the lines are all there", func(t *testing.T) {
		inBubble(t, setup{}, func(e *env) {
			e.commit(commit("1", body, lines(2)...))
			e.faults.Add(fault.On(history.ExecuteBatch).Before(batchReply(207, 409, 201, 201)))
			c := commit("1", body, lines(2)...)
			o := e.commit(c)
			require.Equal(e.t, worker.Duplicate, judge(c, o, body))
			require.Equal(e.t, 1+1+1, o.Calls, "one batch, one read of the inbox record, one batch of reads")
		})
	})
	t.Run("an inbox record that was created without its line", func(t *testing.T) {
		inBubble(t, setup{}, func(e *env) {
			c := commit("1", body, lines(1)...)
			record := fmt.Sprintf(`{"id":"1","pk":"1","type":"order","order":{},"request":{"version":1,"key":"1","attempt":%q,"hash":%q,
				"parameters":{"v":1,"alg":"sha256","form":"json"},"parts":["line-1"]}}`, c.Attempt, c.Fingerprint.Hash)
			a := batchReply(207, 201, 500)
			a.Do = func() { require.NoError(e.t, e.account.Seed(database, container, record)) }
			e.faults.Add(fault.On(history.ExecuteBatch).Before(a))
			require.Equal(e.t, worker.Incomplete, judge(c, e.commit(c), body), "own, and yet not committed")
		})
	})
}

func TestABatchIsNeverSeenWithSomeOfItsLines(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.faults.Add(fault.On(history.ExecuteBatch).Always().Before(fault.Wait(time.Millisecond)))
		for round := range 20 {
			key := fmt.Sprintf("root-%d", round)
			a, b := commit(key, `{"v":"a"}`, lines(1)...), commit(key, `{"v":"b"}`, lines(5)...)
			done := make(chan error, 2)
			for _, c := range []worker.Commit{a, b} {
				go func() {
					_, err := e.store.Commit(e.ctx(), c)
					done <- err
				}()
			}
			require.NoError(e.t, errors.Join(<-done, <-done))
			r, err := e.store.Find(e.ctx(), "", key)
			require.NoError(e.t, err)
			require.Empty(e.t, r.MissingParts)
			found := 0
			for _, d := range e.account.Documents(database, container) {
				if strings.HasPrefix(d.ID, key+"~part.") {
					found++
				}
			}
			require.Len(e.t, r.Parts, found, "the lines are those of the order that won")
		}
	})
}

func TestWhatTheServiceWouldRefuseIsRefusedBeforeItIsSent(t *testing.T) {
	big := func(n int) []byte { return []byte(`{"a":"` + strings.Repeat("x", n) + `"}`) }
	nested := func(n int) []byte { return []byte(strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n)) }
	html := []byte(`{"a":"` + strings.Repeat("<", 400_000) + `"}`)
	tests := []struct {
		name string
		docs []worker.Document
		want string
	}{
		{"101 operations", lines(101), reason.TooLarge},
		{"a document over 2 MB", []worker.Document{{Content: big(2_200_000)}}, reason.TooLarge},
		{"escapes that make the text three times as long", []worker.Document{{Content: []byte(`{"a":"` + strings.Repeat(`\u0001`, 1_000_000) + `"}`)}}, reason.TooLarge},
		{"a document that only the store's own members push over", []worker.Document{{Content: big(2<<20 - 700)}}, reason.TooLarge},
		{"documents that together are over 2 MB", []worker.Document{{Content: big(900_000)}, {Content: big(900_000)}, {Content: big(900_000)}}, reason.TooLarge},
		{"characters that grow on the way into a batch", []worker.Document{{Content: html}, {Content: []byte(`{}`)}}, reason.TooLarge},
		{"long numbers below a long name", []worker.Document{{Content: []byte(`{"` + strings.Repeat("n", 150_000) + `":[1` + strings.Repeat(",12345678901234567", 8_000) + `]}`)}}, reason.TooLarge},
		{"128 levels of content", []worker.Document{{Content: nested(128)}}, reason.TooDeep},
		{"10001 levels", []worker.Document{{Content: nested(10_001)}}, reason.TooDeep},
		{"open brackets alone", []worker.Document{{Content: []byte(`{"a":` + strings.Repeat("[", 200_000) + "}")}}, reason.TooDeep},
		{"a name twice", []worker.Document{{Content: []byte(`{"a":1,"a":2}`)}}, reason.DuplicateName},
		{"a number that no double holds", []worker.Document{{Content: []byte(`{"a":1e999}`)}}, reason.NumberOutOfRange},
		{"content that is an array", []worker.Document{{Content: []byte(`[1]`)}}, reason.InvalidEffects},
		{"content that is no JSON", []worker.Document{{Content: []byte(`{"a":}`)}}, reason.NotJSON},
		{"content that is cut off", []worker.Document{{Content: []byte(`{"a":`)}}, reason.InvalidEffects},
		{"no content", []worker.Document{{Content: nil}}, reason.InvalidEffects},
		{"a negative time to live", []worker.Document{{Content: []byte(`{}`), TTL: -time.Second}}, reason.InvalidEffects},
		{"a time to live in fractions", []worker.Document{{Content: []byte(`{}`), TTL: 1500 * time.Millisecond}}, reason.InvalidEffects},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, setup{}, func(e *env) {
				c := commit("1", `{}`)
				c.Documents = append([]worker.Document{}, tt.docs...)
				for i := range c.Documents {
					c.Documents[i].Type = "order"
					if i > 0 {
						c.Documents[i].Name = fmt.Sprintf("line-%d", i)
					} else {
						c.Documents[i].Name = ""
					}
				}
				o, err := e.store.Commit(e.ctx(), c)
				require.Equal(e.t, tt.want, requireAs[*worker.UnstorableError](e.t, err).Reason)
				require.Zero(e.t, o.Calls)
			})
		})
	}
}

func TestWhatTheServiceTakesIsStored(t *testing.T) {
	nested := func(n int) []byte { return []byte(strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n)) }
	inBubble(t, setup{}, func(e *env) {
		require.True(e.t, e.commit(commit("100-operations", `{}`, lines(99)...)).Created)
		require.True(e.t, e.commit(commit("127-levels", string(nested(127)))).Created)
		require.True(e.t, e.commit(commit("near-2-MB", `{"a":"`+strings.Repeat("x", 2<<20-2048)+`"}`)).Created)
		half := strings.Repeat("y", 1<<20-2048)
		require.True(e.t, e.commit(commit("near-2-MB-batch", `{"a":"`+half+`"}`,
			worker.Document{Name: "b", Type: "line", Content: []byte(`{"a":"` + half + `"}`)})).Created)
	})
}

func TestAServiceThatIsStricterThanTheEstimateDecides(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.faults.Add(fault.On(history.CreateDocument).Before(fault.Reply(413, 0)))
		o, err := e.store.Commit(e.ctx(), commit("1", `{"a":"`+strings.Repeat("x", 1_700_000)+`"}`))
		require.Equal(e.t, reason.TooLarge, requireAs[*worker.UnstorableError](e.t, err).Reason)
		require.Equal(e.t, 1, o.Calls)
	})
}

func TestAContainerPartitionedByIDTakesSingleDocumentsOnly(t *testing.T) {
	byID := setup{container: func(s *cosmosdb.ContainerSpec) { s.PartitionKey = []string{"/id"} }}
	inBubble(t, byID, func(e *env) {
		c := commit("1", `{"a":1}`)
		require.True(e.t, e.commit(c).Created)
		require.NotContains(e.t, e.document("1"), "pk")
		again := commit("1", `{"a":1}`)
		require.Equal(e.t, worker.Duplicate, judge(again, e.commit(again), `{"a":1}`))
	})
}
