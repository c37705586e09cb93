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
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/identity"
	"github.com/orderworker/orderworker/worker/reason"
)

func TestTheShapeOfTheDocuments(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		c := commit("PO/1", `{"amount":40}`, lines(1)...)
		c.Attempt, c.SequenceNumber = "nonce-1", 7
		e.commit(c)

		order := e.document("PO~2F1")
		require.Equal(e.t, "PO~2F1", order["id"])
		require.Equal(e.t, "PO~2F1", order["pk"])
		require.Equal(e.t, "order", order["type"])
		require.Equal(e.t, map[string]any{"amount": 40.0}, order["order"])
		require.NotContains(e.t, order, "ttl")
		require.NotContains(e.t, order, "exactNumbers")
		require.Equal(e.t, map[string]any{
			"version": 1.0, "key": "PO/1", "messageId": "PO/1", "hash": c.Fingerprint.Hash, "attempt": "nonce-1", "sequenceNumber": float64(c.SequenceNumber),
			"parameters": map[string]any{"v": 1.0, "alg": "sha256", "form": "json"},
			"enqueuedAt": "2026-03-01T12:00:00Z", "committedAt": time.Now().UTC().Format(time.RFC3339), "parts": []any{"line-1"},
		}, order["request"])

		line := e.document("PO~2F1~part.line-1")
		require.Equal(e.t, "PO~2F1", line["pk"])
		require.Equal(e.t, "line", line["type"])
		require.Equal(e.t, map[string]any{"sku": 1.0}, line["line"])
		require.Equal(e.t, map[string]any{
			"version": 1.0, "key": "PO/1", "messageId": "PO/1", "attempt": "nonce-1", "part": "line-1", "document": "PO~2F1",
			"committedAt": time.Now().UTC().Format(time.RFC3339),
		}, line["request"])
	})
}

func TestASenderCanOverrideNothing(t *testing.T) {
	const body = `{"id":"evil","pk":"evil","ttl":1,"type":"evil","_etag":"evil","_ts":1,"request":{"hash":"evil"},"exactNumbers":{"/x":"1"},"hash":"evil"}`
	inBubble(t, setup{}, func(e *env) {
		c := commit("1", body)
		e.commit(c)
		time.Sleep(time.Hour)
		d := e.document("1")
		require.Equal(e.t, "1", d["id"])
		require.Equal(e.t, "1", d["pk"])
		require.Equal(e.t, "order", d["type"])
		require.NotContains(e.t, d, "ttl")
		require.Equal(e.t, c.Fingerprint.Hash, d["request"].(map[string]any)["hash"])
		again := commit("1", body)
		o := e.commit(again)
		require.Equal(e.t, worker.Duplicate, judge(again, o, body))
		require.JSONEq(e.t, body, string(o.Existing.Content))
	})
}

func TestTypesAndNamesThatCannotBe(t *testing.T) {
	order := func(kind string) worker.Document { return worker.Document{Type: kind, Content: []byte(`{}`)} }
	named := func(name string) worker.Document {
		return worker.Document{Name: name, Type: "line", Content: []byte(`{}`)}
	}
	tests := map[string][]worker.Document{
		"no document":                {},
		"no type":                    {order("")},
		"the type id":                {order("id")},
		"the type request":           {order("request")},
		"the type ttl":               {order("ttl")},
		"the type type":              {order("type")},
		"the type exactNumbers":      {order("exactNumbers")},
		"a type of the service":      {order("_etag")},
		"a very long type":           {order(strings.Repeat("x", 129))},
		"a named first document":     {named("line-1")},
		"an unnamed second one":      {order("order"), order("order")},
		"two documents of a name":    {order("order"), named("a"), named("a")},
		"a name cut in a letter":     {order("order"), named("line-\xc3")},
		"a type cut in a letter":     {order("order\xc3")},
		"a reserved type further on": {order("order"), {Name: "a", Type: "id", Content: []byte(`{}`)}},
	}
	for name, docs := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{}, func(e *env) {
				c := commit("1", `{}`)
				c.Documents = docs
				_, err := e.store.Commit(e.ctx(), c)
				u := requireAs[*worker.UnstorableError](e.t, err)
				require.Equal(e.t, reason.InvalidEffects, u.Reason)
				require.Contains(e.t, u.Detail, "The handler returned ")
				require.Zero(e.t, e.requests(history.CreateDocument)+e.requests(history.ExecuteBatch))
			})
		})
	}
	t.Run("the type that is the partition key", func(t *testing.T) {
		known := func(o *cosmosstore.Options) { o.Types = []string{"order"} }
		inBubble(t, setup{options: known}, func(e *env) {
			c := commit("1", `{}`)
			c.Documents[0].Type = "pk"
			_, err := e.store.Commit(e.ctx(), c)
			u := requireAs[*worker.UnstorableError](e.t, err)
			require.Equal(e.t, reason.InvalidEffects, u.Reason)
			require.Contains(e.t, u.Detail, "/pk")
			require.NoError(e.t, e.store.Ready(e.ctx()), "one message with an odd type stops no other")
		})
	})
}

func TestDocumentIDsThatAddressSomethingElseAreRefused(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		for _, id := range []string{"", ".", "..", "a/b", `a\b`, "a#b", "a?b", "a%20b", "a ", "a\x00", "é", `a"b`, strings.Repeat("x", 256)} {
			c := commit("1", `{}`)
			c.DocumentID = id
			_, err := e.store.Commit(e.ctx(), c)
			require.Equal(e.t, reason.NeverStorable, requireAs[*worker.UnstorableError](e.t, err).Reason, "%q", id)
			_, err = e.store.Find(e.ctx(), "", id)
			require.ErrorIs(e.t, err, worker.ErrNotFound, "%q", id)
		}
		require.Zero(e.t, e.requests(history.CreateDocument)+e.requests(history.ReadDocument))
	})
}

func TestEveryOddKeyIsStoredAndReadBackOnItsConflict(t *testing.T) {
	keys := []string{
		"PO/2024/0017", "order#1?x=2", "order", "order#1", "12345", "12345 ", " 12345", "12345\t", "12345\r\n", "12345\u00a0", "user@example.test",
		"Ard Accès", "a`b", "請求-1", "😀", "\u00e9", "e\u0301", ".", "..", "a%20b", `a"b`, `a\b`, "~part.line-1", "1~part.line-1",
		strings.Repeat("A", 128), strings.Repeat("/", 128), strings.Repeat("\u8acb", 128), strings.Repeat("A", 127) + "B",
	}
	inBubble(t, setup{}, func(e *env) {
		for i, key := range keys {
			body := fmt.Sprintf(`{"n":%d}`, i)
			require.True(e.t, e.commit(commit(key, body, lines(1)...)).Created, "%q", key)
		}
		for i, key := range keys {
			body := fmt.Sprintf(`{"n":%d}`, i)
			c := commit(key, body, lines(1)...)
			require.Equal(e.t, worker.Duplicate, judge(c, e.commit(c), body), "%q", key)
			other := commit(key, `{"n":-1}`, lines(1)...)
			require.Equal(e.t, worker.Conflict, judge(other, e.commit(other), `{"n":-1}`), "%q", key)
			r, err := e.store.Find(e.ctx(), "", c.DocumentID)
			require.NoError(e.t, err)
			require.Equal(e.t, c.Key.String(), r.Key)
		}
		require.Equal(e.t, 2*len(keys), e.account.Count(database, container))
	})
}

func TestNumbersThatADoubleWouldRoundComeBackAsTheyWereSent(t *testing.T) {
	const body = `{"big":12345678901234567890,"lines":[{"price":0.1000000000000000055511151231257827},{"price":0.1}],"a/b":9007199254740993,"n":40}`
	inBubble(t, setup{}, func(e *env) {
		e.commit(commit("1", body))
		d := e.document("1")
		require.Equal(e.t, map[string]any{
			"/big": "12345678901234567890", "/lines/0/price": "0.1000000000000000055511151231257827", "/a~1b": "9007199254740993",
		}, d["exactNumbers"])
		raw, _ := e.account.Document(database, container, "1")
		require.NotContains(e.t, raw.Body, `"big":12345678901234567890`, "the store itself has rounded it")

		again := commit("1", body)
		o := e.commit(again)
		require.Equal(e.t, body, string(o.Existing.Content))
		other := strings.Replace(body, "12345678901234567890", "12345678901234567891", 1)
		c := commit("1", other)
		require.Equal(e.t, worker.Conflict, judge(c, e.commit(c), other), "a double could not tell them apart")
	})
}

func TestALargeSequenceNumberIsNotRounded(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		for i, n := range []int64{1<<53 + 1, -(1<<53 + 1), 36028797018963969, 1 << 53, 0} {
			c := commit(fmt.Sprintf("k%d", i), `{}`)
			c.SequenceNumber = n
			e.commit(c)
			r, err := e.store.Find(e.ctx(), "", c.DocumentID)
			require.NoError(e.t, err)
			require.Equal(e.t, n, r.SequenceNumber)
		}
	})
}

func TestATimeToLiveIsWrittenWhereItIsAskedFor(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		c := commit("1", `{}`, worker.Document{Name: "note", Type: "note", Content: []byte(`{}`), TTL: time.Minute})
		e.commit(c)
		require.InDelta(e.t, 60, e.document("1~part.note")["ttl"], 0)
		time.Sleep(2 * time.Minute)
		again := commit("1", `{}`, lines(0)...)
		require.Equal(e.t, worker.Duplicate, judge(again, e.commit(again), `{}`), "the order does not expire")
		r, err := e.store.Find(e.ctx(), "", "1")
		require.NoError(e.t, err)
		require.Equal(e.t, []string{"note"}, r.Parts)
		require.Empty(e.t, r.MissingParts, "the part did, as it was meant to")
	})
	t.Run("where the container would ignore it", func(t *testing.T) {
		inBubble(t, setup{container: func(s *cosmosdb.ContainerSpec) { s.DefaultTTL = 0 }}, func(e *env) {
			c := commit("1", `{}`)
			c.Documents[0].TTL = time.Minute
			_, err := e.store.Commit(e.ctx(), c)
			require.Contains(e.t, requireAs[*worker.MisconfiguredError](e.t, err).Fix, "-1")
			require.True(e.t, e.commit(commit("2", `{}`)).Created)
		})
	})
}

func TestWhateverIsStoredIsReadAndNeverTakenForEqual(t *testing.T) {
	const body = `{"amount":40}`
	request := func(members string) string {
		return `{"id":"x-1","pk":"x-1","type":"order","order":{"amount":40},"request":{"version":1,` + members + `}}`
	}
	own := commit("x-1", body)
	hash, rec := fmt.Sprintf(`"hash":%q`, own.Fingerprint.Hash), `"parameters":{"v":1,"alg":"sha256","form":"json"}`
	tests := []struct {
		name, stored string
		want         worker.Judgement
	}{
		{"a document of somebody else", `{"id":"x-1","pk":"x-1"}`, worker.HashMissing},
		{"an order that lost its request", `{"id":"x-1","pk":"x-1","type":"order","order":{"amount":40}}`, worker.HashMissing},
		{"a request that lost its hash", request(`"key":"x-1",` + rec), worker.HashMissing},
		{"a request that lost its parameters", request(`"key":"x-1",` + hash), worker.HashMissing},
		{"a request that lost its key", request(hash + `,` + rec), worker.HashMissing},
		{"parameters of a newer version", request(`"key":"x-1",` + hash + `,"parameters":{"v":99,"alg":"blake3","form":"json"}`), worker.HashMissing},
		{"a hash that is a number", request(`"key":"x-1","hash":1,` + rec), worker.HashMissing},
		{"a hash that is null", request(`"key":"x-1","hash":null,` + rec), worker.HashMissing},
		{"a request that is a text", `{"id":"x-1","pk":"x-1","type":"order","request":"x"}`, worker.HashMissing},
		{"another key under the id", request(`"key":"x-2",` + hash + `,` + rec), worker.OtherKey},
		{"a hash that is cut off", request(`"key":"x-1","hash":"` + own.Fingerprint.Hash[:63] + `",` + rec), worker.HashMissing},
		{"a hash in capitals", request(`"key":"x-1","hash":"` + strings.ToUpper(own.Fingerprint.Hash) + `",` + rec), worker.HashMissing},
		{"a hash with a label", request(`"key":"x-1","hash":"sha256:` + own.Fingerprint.Hash + `",` + rec), worker.HashMissing},
		{"another hash", request(`"key":"x-1","hash":"` + strings.Repeat("0", 64) + `",` + rec), worker.Conflict},
		{"an equal hash", request(`"key":"x-1",` + hash + `,` + rec), worker.Duplicate},
		{"an equal hash and odd members", request(`"key":"x-1","parts":"x","attempt":7,"sequenceNumber":{},"enqueuedAt":1,` + hash + `,` + rec), worker.Duplicate},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, setup{}, func(e *env) {
				require.NoError(e.t, e.account.Seed(database, container, tt.stored))
				for _, parts := range [][]worker.Document{nil, lines(1)} {
					c := commit("x-1", body, parts...)
					require.Equal(e.t, tt.want, judge(c, e.commit(c), body))
				}
				require.Equal(e.t, 1, e.account.Count(database, container))
			})
		})
	}
}

func TestARecordThatDoesNotSayWhenItWasCommittedWasSoWhenItWasWritten(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		require.NoError(e.t, e.account.Seed(database, container, `{"id":"1","pk":"1","type":"order","request":{"version":1,"key":"1"}}`))
		written := time.Now()
		time.Sleep(time.Hour)
		r, err := e.store.Find(e.ctx(), "", "1")
		require.NoError(e.t, err)
		require.WithinDuration(e.t, written, r.CommittedAt, time.Second)
	})
}

func TestAConsumerHasDocumentsOfItsOwn(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		a, b := commit("1", `{}`), commit("1", `{"other":1}`)
		b.Key.Consumer = "billing"
		b.DocumentID = b.Key.DocumentID()
		require.True(e.t, e.commit(a).Created)
		require.True(e.t, e.commit(b).Created)
		r, err := e.store.Find(e.ctx(), "", identity.Key{Consumer: "billing", Kind: identity.String, Value: "1"}.DocumentID())
		require.NoError(e.t, err)
		require.Equal(e.t, "1 for billing", r.Key)
	})
}

func TestFind(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		_, err := e.store.Find(e.ctx(), "", "1")
		require.ErrorIs(e.t, err, worker.ErrNotFound)

		c := commit("1", `{"amount":40}`, lines(12)...)
		e.commit(c)
		r, err := e.store.Find(e.ctx(), "", "1")
		require.NoError(e.t, err)
		require.Equal(e.t, "1", r.DocumentID)
		require.Equal(e.t, "order", r.Type)
		require.Equal(e.t, c.Attempt, r.Attempt)
		require.Equal(e.t, &c.Fingerprint, r.Fingerprint)
		require.JSONEq(e.t, `{"amount":40}`, string(r.Content))
		require.Equal(e.t, "1", r.MessageID)
		require.Equal(e.t, c.SequenceNumber, r.SequenceNumber)
		require.Equal(e.t, c.EnqueuedAt, r.EnqueuedAt)
		require.WithinDuration(e.t, time.Now(), r.CommittedAt, 0)
		require.Len(e.t, r.Parts, 12)
		require.Empty(e.t, r.MissingParts)
		require.Equal(e.t, worker.Duplicate, worker.JudgeRecord(commit("1", `{"amount":40}`), r, rehash(`{"amount":40}`)))

		e.account.DeleteDocument(database, container, "1~part.line-3")
		e.account.DeleteDocument(database, container, "1~part.line-11")
		r, err = e.store.Find(e.ctx(), "", "1")
		require.NoError(e.t, err)
		require.Equal(e.t, []string{"line-3", "line-11"}, r.MissingParts)
	})
}

func TestFindDoesNotCallADocumentAbsentBecauseOneReplicaLags(t *testing.T) {
	inBubble(t, setup{}, func(e *env) {
		e.commit(commit("0", `{}`))
		e.account.SetLag(cosmosdb.Lag{By: 40 * time.Millisecond})
		e.commit(commit("1", `{}`, lines(2)...))
		r, err := e.store.Find(e.ctx(), "", "1")
		require.NoError(e.t, err)
		require.Empty(e.t, r.MissingParts)
	})
}

func withInboxRecords(ttl time.Duration) setup {
	return setup{options: func(o *cosmosstore.Options) { o.InboxRecords, o.InboxRecordTTL = true, ttl }}
}

func TestInboxRecords(t *testing.T) {
	const body = `{"amount":40}`
	inBubble(t, withInboxRecords(24*time.Hour), func(e *env) {
		c := commit("1", body, lines(1)...)
		require.True(e.t, e.commit(c).Created)
		record := e.document("1~part.inbox-record")
		require.Equal(e.t, "1", record["pk"])
		require.Equal(e.t, "inboxRecord", record["type"])
		require.InDelta(e.t, 86400, record["ttl"], 0)
		require.Equal(e.t, []any{"line-1"}, record["request"].(map[string]any)["parts"])
		require.NotContains(e.t, e.document("1"), "ttl")

		again := commit("1", body, lines(1)...)
		o := e.commit(again)
		require.Equal(e.t, worker.Duplicate, judge(again, o, body))
		require.Equal(e.t, "1", o.Existing.DocumentID)
		require.Equal(e.t, "order", o.Existing.Type)
		require.JSONEq(e.t, body, string(o.Existing.Content))

		other := commit("1", `{"amount":41}`, lines(1)...)
		require.Equal(e.t, worker.Conflict, judge(other, e.commit(other), `{"amount":41}`))

		r, err := e.store.Find(e.ctx(), "", "1")
		require.NoError(e.t, err)
		require.Equal(e.t, worker.Duplicate, worker.JudgeRecord(again, r, rehash(body)))
	})
}

func TestAnOrderThatIsRewrittenByOthersIsStillKnownByItsInboxRecord(t *testing.T) {
	const body = `{"amount":40}`
	inBubble(t, withInboxRecords(0), func(e *env) {
		e.commit(commit("1", body))
		require.NotContains(e.t, e.document("1~part.inbox-record"), "ttl")
		e.account.DeleteDocument(database, container, "1")
		require.NoError(e.t, e.account.Seed(database, container, `{"id":"1","pk":"1","status":"shipped"}`))
		again := commit("1", body)
		require.Equal(e.t, worker.Duplicate, judge(again, e.commit(again), body))

		e.account.DeleteDocument(database, container, "1")
		again = commit("1", body)
		require.Equal(e.t, worker.Duplicate, judge(again, e.commit(again), body), "even when the order has been archived")
	})
}

func TestAnInboxRecordThatHasExpiredLetsNothingBeAppliedTwice(t *testing.T) {
	const body = `{"amount":40}`
	inBubble(t, withInboxRecords(time.Hour), func(e *env) {
		e.commit(commit("1", body, lines(1)...))
		time.Sleep(2 * time.Hour)
		again := commit("1", body, lines(1)...)
		require.Equal(e.t, worker.Duplicate, judge(again, e.commit(again), body), "the order itself is still there")
		other := commit("1", `{"amount":41}`, lines(1)...)
		require.Equal(e.t, worker.Conflict, judge(other, e.commit(other), `{"amount":41}`))
		r, err := e.store.Find(e.ctx(), "", "1")
		require.NoError(e.t, err)
		require.Equal(e.t, "order", r.Type)
		require.Equal(e.t, 2, e.account.Count(database, container))
	})
}

// TestAnInboxRecordThatCannotBeReadIsDecidedByItsDocument blocks the create of an inbox record that no read shows.
func TestAnInboxRecordThatCannotBeReadIsDecidedByItsDocument(t *testing.T) {
	const body, record = `{"amount":40}`, "1~part.inbox-record"
	// The look at the primary is the second batch of a commit, after its write, and the first of Find.
	spoil := func(status int) func(e *env, batch int) {
		return func(e *env, batch int) {
			e.faults.Clear()
			e.faults.Add(fault.On(history.ReadDocument).Key(record).Always().Before(fault.Reply(status, 0)))
			e.faults.Add(fault.On(history.ExecuteBatch).Nth(batch).Before(fault.Reply(400, 0)))
		}
	}
	for name, hide := range map[string]func(e *env, batch int){
		"it has expired and is not purged": func(*env, int) { time.Sleep(2 * time.Hour) },
		"its read is refused with 401":     spoil(401),
		"its read is refused with 400":     spoil(400),
		"it is answered with nothing":      spoil(204),
		"it is said to be absent":          spoil(404),
	} {
		s := withInboxRecords(time.Hour)
		s.account = func(o *cosmosdb.Options) { o.ExpiredBlocksCreate = true }
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, a line is lost: %t", name, lost), func(t *testing.T) {
				inBubble(t, s, func(e *env) {
					e.commit(commit("1", body, lines(2)...))
					want := worker.Duplicate
					if lost {
						e.account.DeleteDocument(database, container, "1~part.line-1")
						want = worker.Incomplete
					}
					hide(e, 2)
					again := commit("1", body, lines(2)...)
					require.Equal(e.t, want, judge(again, e.commit(again), body))
					hide(e, 2)
					other := commit("1", `{"amount":41}`, lines(2)...)
					require.Equal(e.t, worker.Conflict, judge(other, e.commit(other), `{"amount":41}`))
					hide(e, 1)
					r, err := e.store.Find(e.ctx(), "", "1")
					require.NoError(e.t, err)
					require.Equal(e.t, again.Fingerprint.Hash, r.Fingerprint.Hash)
				})
			})
		}
	}
	t.Run("nothing decides", func(t *testing.T) {
		s := withInboxRecords(time.Hour)
		s.account = func(o *cosmosdb.Options) { o.ExpiredBlocksCreate = true }
		inBubble(t, s, func(e *env) {
			e.commit(commit("1", body))
			time.Sleep(2 * time.Hour)
			e.account.DeleteDocument(database, container, "1")
			_, err := e.store.Commit(e.ctx(), commit("1", body))
			require.Equal(e.t, reason.ConflictUnread, requireAs[*worker.UncertainError](e.t, err).Reason)
		})
	})
}

func TestTheNameAndTypeOfTheInboxRecordAreTaken(t *testing.T) {
	inBubble(t, withInboxRecords(0), func(e *env) {
		for _, d := range []worker.Document{{Name: "inbox-record", Type: "line", Content: []byte(`{}`)}, {Name: "a", Type: "inboxRecord", Content: []byte(`{}`)}} {
			_, err := e.store.Commit(e.ctx(), commit("1", `{}`, d))
			require.Equal(e.t, reason.InvalidEffects, requireAs[*worker.UnstorableError](e.t, err).Reason)
		}
		_, err := e.store.Commit(e.ctx(), commit("1", `{}`, lines(99)...))
		require.Equal(e.t, reason.TooLarge, requireAs[*worker.UnstorableError](e.t, err).Reason, "the inbox record is an operation too")
	})
}
