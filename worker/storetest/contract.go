package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/admission"
	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/identity"
	"github.com/orderworker/orderworker/worker/reason"
)

// Options hold what stores truly differ in.
type Options struct {
	// Bubble runs each test in a testing/synctest bubble. The store must do no real I/O then.
	Bubble bool
	// TTL tells that documents may expire, and TTLDelay how long after its time a document may still be seen.
	TTL      bool
	TTLDelay time.Duration
	// Unbounded tells that the store takes documents of any size and any number of them in one transaction. Otherwise it must
	// refuse what is beyond its bounds for ever, before anything is written: documents of 3 MB and 101 at once at the latest.
	Unbounded bool
	// Remove takes a document away as another program would, by its id, which of a further document of a message is that of
	// [identity.PartDocumentID]. Nil leaves out what needs it.
	Remove func(s worker.Store, documentID string)
	// Timeout bounds each test. Defaults to a minute.
	Timeout time.Duration
}

// Run checks the contract of [worker.Store] with stores from open. Each must be empty, or at least hold none of
// [OddKeys]; the other keys of the tests are new each time.
func Run(t *testing.T, open func(t *testing.T) worker.Store, o Options) {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	tests := []struct {
		name string
		run  func(b *bench)
	}{
		{"one document is created, found, and carries what the commit said", createsOne},
		{"several documents are created together and found together", createsSeveral},
		{"a delivery recognises its own write by its nonce", recognisesOwnWrite},
		{"equal content by another delivery is a duplicate, however it is written", recognisesDuplicate},
		{"other content is a conflict and leaves what is stored untouched", recognisesConflict},
		{"a conflict is judged by the parameters that are stored", judgesByStoredParameters},
		{"of fifty copies at once one creates and all others see it", createsOnceOfFifty},
		{"of two contents at once one creates and the other conflicts", createsOneOfTwo},
		{"no order is ever found without its lines", neverFindsHalf},
		{"every odd key has a document of its own that can be read back", keepsOddKeysApart},
		{"a sender's field overrides nothing", isNotOverridden},
		{"nothing is found under an id that nobody used", findsNothing},
		{"what is too large is refused for ever and leaves nothing behind", refusesTooLarge},
		{"more documents than fit one transaction are refused for ever and leave nothing behind", refusesTooMany},
		{"a call whose context has ended fails as unavailable or has its effect, and can be repeated", endsWithContext},
		{"a store that works says that it is ready", isReady},
		{"a document that expired is forgotten", forgetsExpired},
		{"an order of which somebody removed a line is not a duplicate", missesRemoved},
		{"a line that expired by its own time is not missed", missesNoExpired},
		{"a line that stands there without its order is in the way of it", blockedByRemains},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), o.Timeout)
				defer cancel()
				tt.run(&bench{T: t, ctx: ctx, store: open(t), options: o, prefix: fmt.Sprintf("%x-", time.Now().UnixNano())})
			}
			if o.Bubble {
				synctest.Test(t, body)
				return
			}
			body(t)
		})
	}
}

// bench is what one test of the contract works with.
type bench struct {
	*testing.T
	ctx     context.Context //nolint:containedctx // the bound of one test
	store   worker.Store
	options Options
	prefix  string
}

// commit admits a message and makes the commit of a new delivery of it, with an order and lines.
func (b *bench) commit(id, body string, lines int) (worker.Commit, worker.Rehash) {
	b.Helper()
	return b.commitBy(admission.Config{}, b.prefix+id, body, lines)
}

func (b *bench) commitBy(c admission.Config, id, body string, lines int) (worker.Commit, worker.Rehash) {
	b.Helper()
	a, err := admission.New(c)
	require.NoError(b, err)
	sequence, enqueued := int64(7), time.Now().Add(-time.Second).UTC().Truncate(time.Millisecond)
	m, refusal := a.Admit(&azservicebus.ReceivedMessage{MessageID: id, Body: []byte(body), SequenceNumber: &sequence, EnqueuedTime: &enqueued})
	require.Nil(b, refusal)
	commit := worker.Commit{
		Key: m.Key, DocumentID: m.DocumentID, Attempt: nonce(), Fingerprint: m.Fingerprint,
		MessageID: m.MessageID, SequenceNumber: sequence, EnqueuedAt: enqueued,
		Documents: []worker.Document{{Type: "order", Content: []byte(body)}},
	}
	for i := range lines {
		commit.Documents = append(commit.Documents, worker.Document{
			Name: fmt.Sprintf("line-%d", i+1), Type: "line", Content: fmt.Appendf(nil, `{"line":%d}`, i+1),
		})
	}
	return commit, func(r fingerprint.Parameters) (fingerprint.Fingerprint, error) { return a.Rehash(m, r) }
}

// must commits and judges, and fails the test on an error.
func (b *bench) must(c worker.Commit, rehash worker.Rehash) (worker.Judgement, worker.Outcome) {
	b.Helper()
	o, err := b.store.Commit(b.ctx, c)
	require.NoError(b, err)
	require.Positive(b, o.Calls, "a store counts its requests")
	return worker.Judge(c, o, rehash), o
}

func createsOne(b *bench) {
	c, rehash := b.commit("1042", `{"orderId":"1042","amount":40}`, 0)
	j, o := b.must(c, rehash)
	require.Equal(b, worker.Created, j)
	require.Nil(b, o.Existing)
	r, err := b.store.Find(b.ctx, c.DocumentID)
	require.NoError(b, err)
	require.Equal(b, c.DocumentID, r.DocumentID)
	require.Equal(b, c.Key.String(), r.Key)
	require.Equal(b, c.Attempt, r.Attempt)
	require.NotNil(b, r.Fingerprint)
	require.Equal(b, c.Fingerprint.Hash, r.Fingerprint.Hash)
	require.True(b, c.Fingerprint.Parameters.Equal(r.Fingerprint.Parameters), "the parameters are stored with the hash")
	require.Equal(b, "order", r.Type)
	require.JSONEq(b, string(c.Documents[0].Content), string(r.Content))
	require.Equal(b, c.MessageID, r.MessageID)
	require.Equal(b, c.SequenceNumber, r.SequenceNumber)
	require.True(b, c.EnqueuedAt.Equal(r.EnqueuedAt), "enqueued at %v, stored %v", c.EnqueuedAt, r.EnqueuedAt)
	require.Empty(b, r.Parts)
	require.Empty(b, r.MissingParts)
}

func createsSeveral(b *bench) {
	c, rehash := b.commit("several", `{"amount":40}`, 3)
	j, _ := b.must(c, rehash)
	require.Equal(b, worker.Created, j)
	r, err := b.store.Find(b.ctx, c.DocumentID)
	require.NoError(b, err)
	require.Equal(b, []string{"line-1", "line-2", "line-3"}, r.Parts)
	require.Empty(b, r.MissingParts)

	again, rehash := b.commit("several", `{"amount":40}`, 3)
	j, _ = b.must(again, rehash)
	require.Equal(b, worker.Duplicate, j)
}

func recognisesOwnWrite(b *bench) {
	for _, lines := range []int{0, 2} {
		c, rehash := b.commit(fmt.Sprintf("own-%d", lines), `{"amount":40}`, lines)
		j, _ := b.must(c, rehash)
		require.Equal(b, worker.Created, j)
		j, o := b.must(c, rehash)
		require.Equal(b, worker.Own, j)
		require.False(b, o.Created)
	}
}

func recognisesDuplicate(b *bench) {
	c, rehash := b.commit("dup", `{"amount":40,"items":[1,2]}`, 0)
	b.must(c, rehash)
	for _, body := range []string{`{"amount":40,"items":[1,2]}`, `{ "items" : [1, 2.0], "amount": 4e1 }`} {
		again, rehash := b.commit("dup", body, 0)
		j, _ := b.must(again, rehash)
		require.Equal(b, worker.Duplicate, j, body)
	}
}

func recognisesConflict(b *bench) {
	first, rehash := b.commit("conflict", `{"amount":40}`, 1)
	b.must(first, rehash)
	for _, lines := range []int{0, 1, 2} {
		other, rehash := b.commit("conflict", `{"amount":41}`, lines)
		j, o := b.must(other, rehash)
		require.Equal(b, worker.Conflict, j)
		require.Equal(b, first.Fingerprint.Hash, o.Existing.Fingerprint.Hash)
		require.JSONEq(b, `{"amount":40}`, string(o.Existing.Content))
	}
	r, err := b.store.Find(b.ctx, first.DocumentID)
	require.NoError(b, err)
	require.Equal(b, first.Attempt, r.Attempt)
	require.JSONEq(b, `{"amount":40}`, string(r.Content))
	require.Equal(b, []string{"line-1"}, r.Parts)
}

func judgesByStoredParameters(b *bench) {
	id := b.prefix + "parameters"
	c, rehash := b.commitBy(admission.Config{Ignore: []string{"/sentAt"}}, id, `{"amount":40,"sentAt":"10:00"}`, 0)
	b.must(c, rehash)
	again, rehash := b.commitBy(admission.Config{}, id, `{"amount":40,"sentAt":"10:05"}`, 0)
	j, _ := b.must(again, rehash)
	require.Equal(b, worker.Duplicate, j, "the stored parameters ignores sentAt, whatever the new configuration says")
}

func createsOnceOfFifty(b *bench) {
	for _, lines := range []int{0, 3} {
		judgements := make([]worker.Judgement, 50)
		var wg sync.WaitGroup
		for i := range judgements {
			c, rehash := b.commit(fmt.Sprintf("fifty-%d", lines), `{"amount":40}`, lines)
			wg.Go(func() { judgements[i] = b.patient(c, rehash) })
		}
		wg.Wait()
		counts := map[worker.Judgement]int{}
		for _, j := range judgements {
			counts[j]++
		}
		require.Equal(b, map[worker.Judgement]int{worker.Created: 1, worker.Duplicate: 49}, counts)
	}
}

// patient commits until the answer is not that the store is busy with the same key, as a worker would.
func (b *bench) patient(c worker.Commit, rehash worker.Rehash) worker.Judgement {
	for b.ctx.Err() == nil {
		o, err := b.store.Commit(b.ctx, c)
		if err == nil {
			return worker.Judge(c, o, rehash)
		}
		_, unavailable := errors.AsType[*worker.UnavailableError](err)
		_, uncertain := errors.AsType[*worker.UncertainError](err)
		if !unavailable && !uncertain {
			b.Errorf("commit: %v", err)
			return 0
		}
	}
	return 0
}

func createsOneOfTwo(b *bench) {
	judgements := make([]worker.Judgement, 2)
	var wg sync.WaitGroup
	for i := range judgements {
		c, rehash := b.commit("two", fmt.Sprintf(`{"amount":%d}`, i), 1)
		wg.Go(func() { judgements[i] = b.patient(c, rehash) })
	}
	wg.Wait()
	require.ElementsMatch(b, []worker.Judgement{worker.Created, worker.Conflict}, judgements)
}

func neverFindsHalf(b *bench) {
	const orders = 20
	var wg sync.WaitGroup
	for i := range orders {
		c, rehash := b.commit(fmt.Sprintf("half-%d", i), `{"amount":40}`, 5)
		again, _ := b.commit(fmt.Sprintf("half-%d", i), `{"amount":40}`, 5)
		wg.Go(func() { b.patient(c, rehash) })
		wg.Go(func() { b.patient(again, rehash) })
		wg.Go(func() {
			r, err := b.store.Find(b.ctx, c.DocumentID)
			if err != nil && !errors.Is(err, worker.ErrNotFound) {
				b.Errorf("find: %v", err)
			}
			if len(r.MissingParts) > 0 {
				b.Errorf("order %s was found without %v", c.DocumentID, r.MissingParts)
			}
		})
	}
	wg.Wait()
}

// OddKeys are keys that a store, a URL or a client library may stumble over. Their documents must not meet.
func OddKeys() []string {
	return []string{
		"a/b", "a\\b", "a#b", "a?b", "a%b", "a%2Fb", "a%2fb", ".", "..", "a b", " a", "a ", "a\t", "a\r\n", "a\u00a0", "ä", "a\u0308", "\u00e4b",
		"A", "a", `a"b`, "a'b", "a;b", "a,b", "[a]", "{a}", "a@b", "a+b", "a&b=c", "a~b", "a~2Fb", "~a", "😀", "\u202eabc", "日本語",
		"null", "0", "00", "-0", "true", strings.Repeat("x", 100), strings.Repeat("x", 101), strings.Repeat("ü", 100), strings.Repeat("/", 100),
	}
}

func keepsOddKeysApart(b *bench) {
	keys := OddKeys()
	commits := make([]worker.Commit, len(keys))
	for i, key := range keys {
		c, rehash := b.commitBy(admission.Config{}, key, fmt.Sprintf(`{"n":%d}`, i), i%2)
		j, o := b.must(c, rehash)
		require.Equal(b, worker.Created, j, "key %q is taken by %+v", key, o.Existing)
		commits[i] = c
	}
	for i, key := range keys {
		r, err := b.store.Find(b.ctx, commits[i].DocumentID)
		require.NoError(b, err, "key %q", key)
		require.Equal(b, commits[i].Key.String(), r.Key)
		again, rehash := b.commitBy(admission.Config{}, key, fmt.Sprintf(`{"n":%d}`, i), i%2)
		j, _ := b.must(again, rehash)
		require.Equal(b, worker.Duplicate, j, "key %q", key)
		other, rehash := b.commitBy(admission.Config{}, key, `{"n":-1}`, i%2)
		j, _ = b.must(other, rehash)
		require.Equal(b, worker.Conflict, j, "key %q", key)
	}
}

func isNotOverridden(b *bench) {
	body := `{"id":"other","pk":"other","_etag":"x","_ts":1,"ttl":1,"type":"x","hash":"x","request":{"hash":"x","attempt":"x","messageId":"x"},"order":{"id":"y"}}`
	c, rehash := b.commit("override", body, 1)
	c.Documents[1].Content = []byte(body)
	j, _ := b.must(c, rehash)
	require.Equal(b, worker.Created, j)
	r, err := b.store.Find(b.ctx, c.DocumentID)
	require.NoError(b, err)
	require.Equal(b, c.Attempt, r.Attempt)
	require.Equal(b, c.Fingerprint.Hash, r.Fingerprint.Hash)
	require.Equal(b, c.MessageID, r.MessageID)
	require.Equal(b, "order", r.Type)
	require.JSONEq(b, body, string(r.Content))
	_, err = b.store.Find(b.ctx, "other")
	require.ErrorIs(b, err, worker.ErrNotFound)
}

func findsNothing(b *bench) {
	_, err := b.store.Find(b.ctx, b.prefix+"nobody")
	require.ErrorIs(b, err, worker.ErrNotFound)
}

func refusesTooLarge(b *bench) {
	for _, lines := range []int{0, 2} {
		c, _ := b.commit(fmt.Sprintf("large-%d", lines), `{"amount":40}`, lines)
		last := len(c.Documents) - 1
		c.Documents[last].Content = []byte(`{"text":"` + strings.Repeat("x", 3<<20) + `"}`)
		b.refused(c, reason.TooLarge)
	}
}

func refusesTooMany(b *bench) {
	c, _ := b.commit("many", `{"amount":40}`, 100)
	b.refused(c, reason.TooLarge)
}

func (b *bench) refused(c worker.Commit, word string) {
	b.Helper()
	if b.options.Unbounded {
		b.Skip("needs a store with bounds: Options.Unbounded")
	}
	_, err := b.store.Commit(b.ctx, c)
	e, ok := errors.AsType[*worker.UnstorableError](err)
	require.True(b, ok, "the commit must fail with a *worker.UnstorableError, or say Options.Unbounded if it has no bounds; got %v", err)
	require.Equal(b, word, e.Reason)
	require.NotEmpty(b, e.Detail)
	_, err = b.store.Find(b.ctx, c.DocumentID)
	require.ErrorIs(b, err, worker.ErrNotFound)
}

func endsWithContext(b *bench) {
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	c, rehash := b.commit("ended", `{"amount":40}`, 2)
	if _, err := b.store.Commit(ctx, c); err != nil {
		_, ok := errors.AsType[*worker.UnavailableError](err)
		require.True(b, ok || errors.Is(err, context.Canceled), "the error must be a *worker.UnavailableError or the context's; got %v", err)
	}
	j, _ := b.must(c, rehash)
	require.Contains(b, []worker.Judgement{worker.Created, worker.Own}, j)
	r, err := b.store.Find(b.ctx, c.DocumentID)
	require.NoError(b, err)
	require.Empty(b, r.MissingParts)
}

func isReady(b *bench) { require.NoError(b, b.store.Ready(b.ctx)) }

func forgetsExpired(b *bench) {
	if !b.options.TTL || !b.options.Bubble {
		b.Skip("needs a store that keeps TTL, and a bubble whose time costs nothing: Options.TTL and Options.Bubble")
	}
	c, rehash := b.commit("expired", `{"amount":40}`, 0)
	c.Documents[0].TTL = 30 * time.Second
	b.must(c, rehash)
	time.Sleep(20 * time.Second)
	again, rehash := b.commit("expired", `{"amount":40}`, 0)
	j, _ := b.must(again, rehash)
	require.Equal(b, worker.Duplicate, j)
	time.Sleep(11*time.Second + b.options.TTLDelay)
	_, err := b.store.Find(b.ctx, c.DocumentID)
	require.ErrorIs(b, err, worker.ErrNotFound)
	j, _ = b.must(again, rehash)
	require.Equal(b, worker.Created, j)
}

func missesRemoved(b *bench) {
	if b.options.Remove == nil {
		b.Skip("needs a way to take documents away: Options.Remove")
	}
	for _, lines := range []int{1, 3} {
		id := fmt.Sprintf("removed-%d", lines)
		c, rehash := b.commit(id, `{"amount":40}`, lines)
		b.must(c, rehash)
		b.options.Remove(b.store, identity.PartDocumentID(c.DocumentID, "line-1"))
		again, rehash := b.commit(id, `{"amount":40}`, lines)
		j, o := b.must(again, rehash)
		require.Equal(b, worker.Incomplete, j)
		require.Equal(b, []string{"line-1"}, o.Existing.MissingParts)
		r, err := b.store.Find(b.ctx, c.DocumentID)
		require.NoError(b, err)
		require.Equal(b, []string{"line-1"}, r.MissingParts, "Find and Commit agree")
		other, rehash := b.commit(id, `{"amount":41}`, lines)
		j, _ = b.must(other, rehash)
		require.Equal(b, worker.Conflict, j, "what is different is a conflict, whatever is missing")
	}
}

func missesNoExpired(b *bench) {
	if !b.options.TTL || !b.options.Bubble {
		b.Skip("needs a store that keeps TTL, and a bubble whose time costs nothing: Options.TTL and Options.Bubble")
	}
	c, rehash := b.commit("expired-line", `{"amount":40}`, 2)
	c.Documents[1].TTL = 30 * time.Second
	b.must(c, rehash)
	time.Sleep(31*time.Second + b.options.TTLDelay)
	again, rehash := b.commit("expired-line", `{"amount":40}`, 2)
	j, _ := b.must(again, rehash)
	require.Equal(b, worker.Duplicate, j)
	r, err := b.store.Find(b.ctx, c.DocumentID)
	require.NoError(b, err)
	require.Empty(b, r.MissingParts)
}

func blockedByRemains(b *bench) {
	if b.options.Remove == nil {
		b.Skip("needs a way to take documents away: Options.Remove")
	}
	for _, lines := range []int{1, 3} {
		id := fmt.Sprintf("remains-%d", lines)
		c, rehash := b.commit(id, `{"amount":40}`, lines)
		b.must(c, rehash)
		b.options.Remove(b.store, c.DocumentID)
		again, rehash := b.commit(id, `{"amount":40}`, lines)
		j, _ := b.must(again, rehash)
		require.NotEqual(b, worker.Created, j, "an order was created over the lines of another")
	}
}
