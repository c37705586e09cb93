package bench_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/admission"
)

// effects are the kinds of effects: what the worker does for a message of each, and what people write by hand for the same
// promise. The messages of a run are about entities of their own.
var effects = []struct {
	name string
	// entity tells that the message changes a document that is stored before, in a partition that its body names.
	entity  bool
	handler worker.HandlerFunc
	byHand  byHand
	ops     []string
	// claim claims the messages.
	claim worker.ClaimConfig
}{
	{"create", false, order, byHandCreate, []string{history.Lock, history.CreateDocument, history.Complete}, worker.ClaimConfig{}},
	{"create, claimed first", false, order, byHandClaim, []string{history.Lock, history.CreateDocument, history.ExecuteBatch, history.Complete}, worker.ClaimConfig{Lease: time.Minute}},
	{"change with a record", true, changeOf, byHandChange, []string{history.Lock, history.ExecuteBatch, history.Complete}, worker.ClaimConfig{}},
	{"change after a read", true, changeAfterRead, byHandChangeAfterRead, []string{history.Lock, history.ReadDocument, history.ExecuteBatch, history.Complete}, worker.ClaimConfig{}},
	{"upsert only", true, upsertOnly, byHandUpsert, []string{history.Lock, history.ExecuteBatch, history.Complete}, worker.ClaimConfig{}},
	{"stale", true, stale, byHandStale, []string{history.Lock, history.ReadDocument, history.CreateDocument, history.Complete}, worker.ClaimConfig{}},
	{"ignored", false, ignored, func(context.Context, *azcosmos.ContainerClient, *azservicebus.ReceivedMessage) error { return nil }, []string{history.Lock, history.Complete}, worker.ClaimConfig{}},
}

// byHandClaim stores a record in progress, and replaces it together with the document.
func byHandClaim(ctx context.Context, c *azcosmos.ContainerClient, m *azservicebus.ReceivedMessage) error {
	document, err := json.Marshal(map[string]any{"id": m.MessageID, "pk": m.MessageID, "order": json.RawMessage(m.Body)})
	if err != nil {
		return err
	}
	record := func(state string) []byte {
		return fmt.Appendf(nil, `{"id":%q,"pk":%q,"type":"inboxRecord","state":%q}`, "~"+m.MessageID, m.MessageID, state)
	}
	key := azcosmos.NewPartitionKeyString(m.MessageID)
	claim, err := c.CreateItem(ctx, key, record("claimed"), nil)
	if err != nil {
		return err
	}
	b := c.NewTransactionalBatch(key)
	b.CreateItem(document, nil)
	b.ReplaceItem("~"+m.MessageID, record("committed"), &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &claim.ETag})
	return execute(ctx, c, b)
}

func changeOf(_ context.Context, m worker.Message) (worker.Effects, error) {
	return worker.Apply(worker.Patch(m.Partition, worker.Set("/status", "PAID"))), nil
}

func changeAfterRead(ctx context.Context, m worker.Message) (worker.Effects, error) {
	state, err := m.Read(ctx, m.Partition)
	return worker.Apply(worker.Replace(m.Partition, state.Content, state.ETag)), err
}

func upsertOnly(_ context.Context, m worker.Message) (worker.Effects, error) {
	return worker.Apply(worker.Upsert(m.Partition, m.Body)).WithoutRecord(), nil
}

func stale(_ context.Context, m worker.Message) (worker.Effects, error) {
	return worker.Apply(worker.Upsert(m.Partition, m.Body)).SetVersion(m.Partition, "/version", 1), nil
}

func ignored(context.Context, worker.Message) (worker.Effects, error) {
	return worker.Ignore("NotOurs"), nil
}

// entityOf is what the body of a message names, and its inbox record as people write it.
func entityOf(m *azservicebus.ReceivedMessage) (id string, record []byte) {
	id = "e-" + m.MessageID
	return id, fmt.Appendf(nil, `{"id":%q,"pk":%q,"type":"inboxRecord","messageId":%q,"enqueued":%q}`, "~"+m.MessageID, id, m.MessageID, m.EnqueuedTime.Format(time.RFC3339))
}

func byHandChange(ctx context.Context, c *azcosmos.ContainerClient, m *azservicebus.ReceivedMessage) error {
	id, record := entityOf(m)
	b := c.NewTransactionalBatch(azcosmos.NewPartitionKeyString(id))
	b.CreateItem(record, nil)
	var patch azcosmos.PatchOperations
	patch.AppendSet("/status", "PAID")
	b.PatchItem(id, patch, nil)
	return execute(ctx, c, b)
}

func byHandChangeAfterRead(ctx context.Context, c *azcosmos.ContainerClient, m *azservicebus.ReceivedMessage) error {
	id, record := entityOf(m)
	key := azcosmos.NewPartitionKeyString(id)
	r, err := c.ReadItem(ctx, key, id, nil)
	if err != nil {
		return err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(r.Value, &members); err != nil {
		return err
	}
	content, err := json.Marshal(members)
	if err != nil {
		return err
	}
	b := c.NewTransactionalBatch(key)
	b.CreateItem(record, nil)
	b.ReplaceItem(id, content, &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &r.ETag})
	return execute(ctx, c, b)
}

func byHandUpsert(ctx context.Context, c *azcosmos.ContainerClient, m *azservicebus.ReceivedMessage) error {
	id, _ := entityOf(m)
	var members map[string]any
	if err := json.Unmarshal(m.Body, &members); err != nil {
		return err
	}
	members["id"], members["pk"] = id, id
	content, err := json.Marshal(members)
	if err != nil {
		return err
	}
	b := c.NewTransactionalBatch(azcosmos.NewPartitionKeyString(id))
	b.UpsertItem(content, nil)
	return execute(ctx, c, b)
}

func byHandStale(ctx context.Context, c *azcosmos.ContainerClient, m *azservicebus.ReceivedMessage) error {
	id, record := entityOf(m)
	r, err := c.ReadItem(ctx, azcosmos.NewPartitionKeyString(id), id, nil)
	if err != nil {
		return err
	}
	var stored struct{ Version int64 }
	if err := json.Unmarshal(r.Value, &stored); err != nil || stored.Version < 1 {
		return errors.Join(err, errors.New("it is not stale"))
	}
	_, err = c.CreateItem(ctx, azcosmos.NewPartitionKeyString(id), record, nil)
	return err
}

func execute(ctx context.Context, c *azcosmos.ContainerClient, b azcosmos.TransactionalBatch) error {
	r, err := c.ExecuteTransactionalBatch(ctx, b, nil)
	if err == nil && !r.Success {
		err = &azcore.ResponseError{StatusCode: 424}
	}
	return err
}

// prepare stores the entities of n messages, from the number first on, if they have any.
func (s *env) prepare(first, n int, entity bool) {
	s.tb.Helper()
	for i := first; i < first+n && entity; i++ {
		require.NoError(s.tb, s.Account.Seed("orders", "orders", fmt.Sprintf(`{"id":"e-%d","pk":"e-%[1]d","version":9,"note":%q}`, i, note)))
	}
}

// sendEntities puts n messages on the queue, from the number first on.
func (s *env) sendEntities(first, n int) {
	s.tb.Helper()
	for i := first; i < first+n; i++ {
		s.send(fmt.Sprint(i), fmt.Sprintf(`{"entity":"e-%d","version":1,"note":%q}`, i, note))
	}
}

// note makes a message and an entity of about half a kilobyte.
const note = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" +
	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" +
	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// effectsWorker starts the worker for one kind of effects.
func (s *env) effectsWorker(concurrency int, entity bool, claim worker.ClaimConfig, h worker.HandlerFunc) (stop func()) {
	s.tb.Helper()
	c := worker.Config{Concurrency: concurrency, Claim: claim}
	if entity {
		source, err := admission.ParsePartitionSource("body:/entity")
		require.NoError(s.tb, err)
		c.Admission.Partition = source
	}
	return s.workerWith(c, entity || claim.Lease > 0, h)
}

func TestAnEffectCostsNoOperationMoreThanWrittenByHand(t *testing.T) {
	for _, e := range effects {
		t.Run(e.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := history.New()
				s := newEnv(t, false, log)
				cost := func(first int, start func() func()) (ops []string, charge float64) {
					stop := start()
					s.prepare(first, 1, e.entity)
					s.sendEntities(first, 1)
					for end := time.Now().Add(time.Minute); s.left() > 0; time.Sleep(time.Millisecond) {
						require.True(t, time.Now().Before(end))
					}
					stop()
					return costOfLast(log)
				}
				ops, charge := cost(1, func() func() { return s.effectsWorker(1, e.entity, e.claim, e.handler) })
				hand, handCharge := cost(2, func() func() { return s.loopOf(1, e.byHand) })
				t.Logf("%d round trips and %.2f RU; by hand %d and %.2f", len(ops)-1, charge, len(hand)-1, handCharge)
				require.Equal(t, e.ops, ops)
				require.Equal(t, ops, hand, "the loop makes the same requests")
				require.LessOrEqual(t, charge, handCharge)
				require.NoError(t, s.Close())
				time.Sleep(10 * time.Minute) // what the SDK leaves behind ends by itself
			})
		})
	}
}
