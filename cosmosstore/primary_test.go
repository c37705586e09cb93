package cosmosstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/reason"
)

// spoiled are replies to a read that tell nothing of a document that exists: of a region far behind, of a login page, of a
// proxy that knows better.
var spoiled = map[string]fault.Action{
	"404":                    fault.Reply(404, 0),
	"404 with a page":        {Kind: fault.Refuse, Status: 404, Body: "<html>not found</html>"},
	"404/1002":               fault.Reply(404, 1002),
	"200 with a page":        {Kind: fault.Refuse, Status: 200, Body: "<html>sign in</html>"},
	"200 with an empty text": {Kind: fault.Refuse, Status: 200, Body: " "},
	"200 cut off":            {Kind: fault.Refuse, Status: 200, Body: `{"id":"1","order":{"a`},
	"200 with another id":    {Kind: fault.Refuse, Status: 200, Body: `{"id":"2","request":{"key":"1"}}`},
	"204":                    fault.Reply(204, 0),
	"302":                    fault.Reply(302, 0),
	"304":                    fault.Reply(304, 0),
}

// TestReadsThatShowNothingHideNoDuplicate spoils every read while writes go on: the stored document is still found
// and judged, with its lines, also in a container in which every document is alone.
func TestReadsThatShowNothingHideNoDuplicate(t *testing.T) {
	const body, other = `{"a":1}`, `{"a":2}`
	byID := func(s *cosmosdb.ContainerSpec) { s.PartitionKey = []string{"/id"} }
	for name, a := range spoiled {
		for shape, tt := range map[string]struct {
			parts int
			setup setup
		}{"alone": {0, setup{}}, "with a line": {1, setup{}}, "with two lines": {2, setup{}}, "by id": {0, setup{container: byID}}} {
			t.Run(name+", "+shape, func(t *testing.T) {
				inBubble(t, tt.setup, func(e *env) {
					e.commit(commit("1", body, lines(tt.parts)...))
					e.faults.Add(fault.On(history.ReadDocument).Always().Before(a))
					again, odd := commit("1", body, lines(tt.parts)...), commit("1", other, lines(tt.parts)...)
					require.Equal(e.t, worker.Duplicate, judge(again, e.commit(again), body))
					require.Equal(e.t, worker.Conflict, judge(odd, e.commit(odd), other))
				})
			})
		}
	}
}

// TestADocumentThatCanBeReadInNoWayIsTheStoresFault spoils batches of reads too, while creates are accepted in between, so
// that no number of refusals in a row tells.
func TestADocumentThatCanBeReadInNoWayIsTheStoresFault(t *testing.T) {
	page := fault.Action{Kind: fault.Refuse, Status: 200, Body: "<html>sign in</html>"}
	for name, a := range spoiled {
		if a.Status == 404 && a.Substatus == 0 {
			continue // that is what is said of a document which is not there
		}
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{}, func(e *env) {
				e.commit(commit("1", `{}`))
				e.faults.Add(fault.On(history.ReadDocument).Always().Before(a))
				e.faults.Add(fault.On(history.ExecuteBatch).Always().Before(page))
				for i := range 4 {
					_, err := e.store.Commit(e.ctx(), commit("1", `{}`))
					requireAs[*worker.UnavailableError](e.t, err)
					require.True(e.t, e.commit(commit(fmt.Sprintf("good-%d", i), `{}`)).Created)
				}
			})
		})
	}
}

// TestWhatIsStoredIsFoundHoweverFarReplicasAreBehind holds for the review of dead letters: a person is told that an order was
// never made only when it was not.
func TestWhatIsStoredIsFoundHoweverFarReplicasAreBehind(t *testing.T) {
	for name, inboxRecords := range map[string]bool{"orders": false, "inbox-record": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{options: func(o *cosmosstore.Options) { o.InboxRecords = inboxRecords }}, func(e *env) {
				e.commit(commit("1", `{}`, lines(2)...))
				e.commit(commit("2", `{}`, lines(2)...))
				e.faults.Add(fault.On(history.ReadDocument).Always().Before(spoiled["404"]))
				for _, key := range []string{"1", "2"} {
					r, err := e.store.Find(e.ctx(), "", key)
					require.NoError(e.t, err)
					require.Equal(e.t, []string{"line-1", "line-2"}, r.Parts)
					require.Empty(e.t, r.MissingParts)
				}
				_, err := e.store.Find(e.ctx(), "", "3")
				require.ErrorIs(e.t, err, worker.ErrNotFound)

				e.faults.Clear()
				e.faults.Add(fault.On(history.ExecuteBatch).Always().Before(fault.Reply(403, 0)))
				_, err = e.store.Find(e.ctx(), "", "3")
				require.ErrorIs(e.t, err, worker.ErrNotFound, "a role that may not read in batches is told what reads tell")
			})
		})
	}
}

func TestAnAnswerOfThePrimaryThatStopsTheStoreBlamesNoMessage(t *testing.T) {
	for name, tt := range map[string]struct {
		primary fault.Action
		check   func(*testing.T, error)
	}{
		"429":                    {fault.Throttle(time.Minute), isUnavailable},
		"429 of the operation":   {batchReply(207, 429), isUnavailable},
		"503":                    {fault.Reply(503, 0), isUnavailable},
		"no reply":               {fault.DropReply(), isUnavailable},
		"403":                    {fault.Reply(403, 0), isUnread},
		"403 of the operation":   {batchReply(207, 403), isUnread},
		"403/3":                  {fault.Reply(403, 3), isUnavailable},
		"404 for the whole":      {fault.Reply(404, 0), isUnread},
		"400":                    {fault.Reply(400, 0), isUnread},
		"two results":            {batchReply(200, 200, 200), isUnread},
		"a read of another kind": {batchReply(200, 201), isUnread},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{}, func(e *env) {
				e.commit(commit("1", `{}`))
				e.faults.Add(fault.On(history.ReadDocument).Always().Before(fault.Reply(404, 0)))
				e.faults.Add(fault.On(history.ExecuteBatch).Always().Before(tt.primary))
				_, err := e.store.Commit(e.ctx(), commit("1", `{}`))
				tt.check(e.t, err)
				e.faults.Clear()
				again := commit("1", `{}`)
				require.Equal(e.t, worker.Duplicate, judge(again, e.commit(again), `{}`))
			})
		})
	}
}

func isUnavailable(t *testing.T, err error) { requireAs[*worker.UnavailableError](t, err) }
func isUnread(t *testing.T, err error) {
	require.Equal(t, reason.ConflictUnread, requireAs[*worker.UncertainError](t, err).Reason)
}

func TestARoleThatAllowsNoBatchesOfReadsIsNamedWhenNothingElseCanBeRead(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.commit(commit("1", `{}`))
		e.faults.Add(fault.On(history.ReadDocument).Always().Before(spoiled["204"]))
		e.faults.Add(fault.On(history.ExecuteBatch).Always().Before(fault.Reply(403, 0)))
		_, err := e.store.Commit(e.ctx(), commit("1", `{}`))
		requireAs[*worker.MisconfiguredError](e.t, err)
	})
}

func TestALineBlocksOnlyWhenItsOrderIsKnownNotToBeStored(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.commit(commit("1", `{}`, lines(1)...))
		e.faults.Add(fault.On(history.ReadDocument).Key("1").Always().Before(spoiled["404"]))
		e.faults.Add(fault.On(history.ExecuteBatch).Before(batchReply(207, 424, 409)))
		again := commit("1", `{}`, lines(1)...)
		require.Equal(e.t, worker.Duplicate, judge(again, e.commit(again), `{}`))
	})
}

func TestAfterALostAnswerADocumentThatNoReadShowsIsRecognisedAsOwn(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.faults.Add(fault.On(history.ReadDocument).Always().Before(spoiled["404"]))
		e.faults.Add(fault.On(history.CreateDocument).After(fault.DropReply()), fault.On(history.CreateDocument).Nth(2).Before(fault.Reply(403, 1014)))
		c := commit("1", `{}`)
		require.Equal(e.t, worker.Own, judge(c, e.commit(c), `{}`))
	})
}

func TestASessionTokenThatAGatewayDoesNotUnderstandIsLeftOut(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.commit(commit("1", `{}`))
		e.faults.Add(fault.On(history.ReadDocument).Before(fault.Reply(400, 0)))
		again := commit("1", `{}`)
		require.Equal(e.t, worker.Duplicate, judge(again, e.commit(again), `{}`))
	})
}

func TestAStoreThatShowsWhatDoesNotExistIsNotReady(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.faults.Add(fault.On(history.ReadDocument).Always().Before(spoiled["200 with a page"]))
		requireAs[*worker.UnavailableError](e.t, e.store.Ready(e.ctx()))
		e.faults.Clear()
		require.NoError(e.t, e.store.Ready(e.ctx()))
	})
}
