package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/internal/amqp"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/admission"
	"github.com/orderworker/orderworker/worker/identity"
)

// effectSeeds is a fraction of the seeds of TestEverySeed.
func effectSeeds() int { return max(1, *seeds/5) }

// The entities of TestEveryEffectOfEverySeed, each in a partition of its own.
const (
	accounts    = 2
	balance     = 100 // of each account at first: not enough for all debits
	orderCount  = 2
	projections = 2
)

// command is the body of a message of this test.
type command struct {
	Do     string `json:"do"` // debit, capture, project, price, place or other
	Entity string `json:"entity"`
	Amount int64  `json:"amount"`
}

// TestEveryEffectOfEverySeed mixes every kind of effect with every fault and with workers that die, on few entities, so that
// they race. What must have come of it is added up from the inbox records and the history of the environment, and never from
// what a worker said.
func TestEveryEffectOfEverySeed(t *testing.T) {
	for n := range effectSeeds() {
		seed := *first + uint64(n)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			inBubble(t, testenv.Options{Faults: fault.Seed(seed, hardships()...)}, func(w *env) {
				w.seed, w.skipAudit = seed, true
				s := newEffectStream(w, rand.New(rand.NewPCG(seed, 9)))
				s.load()
				w.Faults.Clear()
				s.start()
				w.waitDrained(time.Hour)
				s.prove()
			})
		})
	}
}

// effectStream is a stream of commands and what is known of each by its MessageId.
type effectStream struct {
	*env
	rng      *rand.Rand
	commands map[string]command
}

func newEffectStream(w *env, rng *rand.Rand) *effectStream {
	s := &effectStream{env: w, rng: rng, commands: map[string]command{}}
	for n := range accounts {
		s.seedEntity(fmt.Sprint("account-", n), fmt.Sprintf(`"balance":%d`, balance))
	}
	for n := range orderCount {
		s.seedEntity(fmt.Sprint("order-", n), `"paid":0,"history":[]`)
	}
	w.records = true
	w.expect.DocumentID = recordID
	w.expect.Guard = func(id string) (string, bool) {
		documentID, line := strings.CutSuffix(id, identity.PartDocumentID("", "line-1"))
		return identity.PartDocumentID(documentID, "inbox-record"), line
	}
	w.expect.Ignored = func(id string) bool { return s.commands[id].Do == "other" || s.commands[id].Do == "price" }
	w.expect.Reasons = []string{"InsufficientFunds"}
	return s
}

// inEntity lets the body of a message name its partition.
func inEntity(t *testing.T) func(*worker.Config) {
	source, err := admission.ParsePartitionSource("body:/entity")
	require.NoError(t, err)
	return func(c *worker.Config) { c.Admission.Partition = source }
}

// recordID is the id of the inbox record of a message, by the documented form of the ids of parts.
func recordID(messageID string) string {
	return identity.PartDocumentID(identity.Text(messageID).DocumentID(), "inbox-record")
}

func (s *effectStream) seedEntity(id, members string) {
	s.t.Helper()
	require.NoError(s.t, s.Account.Seed(s.Database, s.Container, fmt.Sprintf(`{"id":%q,"pk":%[1]q,%s}`, id, members)))
	s.History.Add(history.Event{Op: history.CreateDocument, Entity: s.Database + "/" + s.Container, Key: id, Status: 201, Effect: true})
}

// start starts a worker that looks for the entity in the body.
func (s *effectStream) start() *runner {
	return s.startWith(worker.HandlerFunc(obey), nil, inEntity(s.t))
}

// load sends commands in bursts, some of them again, while workers come and go.
func (s *effectStream) load() {
	alive := []*runner{s.start(), s.start()}
	var ids []string
	for range 6 {
		for range 4 + s.rng.IntN(10) {
			id := fmt.Sprint("m", len(s.commands))
			if len(ids) > 0 && s.rng.IntN(4) == 0 {
				id = ids[s.rng.IntN(len(ids))]
			} else {
				s.commands[id], ids = s.draw(len(ids)), append(ids, id)
			}
			s.sendCommand(id)
		}
		time.Sleep(time.Duration(s.rng.IntN(20_000)) * time.Millisecond)
		if i := s.rng.IntN(len(alive)); s.rng.IntN(2) == 0 {
			alive[i].die()
			alive[i] = s.start()
		}
	}
}

// draw makes a command. Its number serves as the amount of money, as the version or as the price.
func (s *effectStream) draw(number int) command {
	c := command{Amount: int64(1 + number)}
	c.Do = []string{"debit", "capture", "project", "price", "place", "other"}[s.rng.IntN(6)]
	switch c.Do {
	case "debit":
		c.Entity, c.Amount = fmt.Sprint("account-", s.rng.IntN(accounts)), int64(1+s.rng.IntN(30))
	case "capture":
		c.Entity = fmt.Sprint("order-", s.rng.IntN(orderCount))
	case "project":
		c.Entity, c.Amount = fmt.Sprint("projection-", s.rng.IntN(projections)), int64(s.rng.IntN(1000))
	case "price":
		c.Entity = "article-0"
	default:
		c.Entity = "customer-0"
	}
	return c
}

func (s *effectStream) sendCommand(id string) {
	s.t.Helper()
	body, err := json.Marshal(s.commands[id])
	require.NoError(s.t, err)
	_, err = s.Broker.Send(s.Queue.Name, amqp.Message{Properties: &amqp.Properties{MessageID: id}, BodyKind: amqp.BodyData, Data: [][]byte{body}})
	require.NoError(s.t, err)
}

// obey is the handler.
func obey(ctx context.Context, m worker.Message) (worker.Effects, error) {
	var c command
	if err := json.Unmarshal(m.Body, &c); err != nil {
		return worker.Effects{}, worker.Reject("InvalidCommand", err)
	}
	switch c.Do {
	case "debit":
		return debit(ctx, m, c)
	case "capture":
		return worker.Apply(worker.Patch(c.Entity, worker.Increment("/paid", c.Amount), worker.Add("/history/-", m.MessageID))), nil
	case "project":
		content := fmt.Appendf(nil, `{"version":%d,"by":%q}`, c.Amount, m.MessageID)
		return worker.Apply(worker.Upsert(c.Entity, content)).SetVersion(c.Entity, "/version", c.Amount), nil
	case "price":
		return worker.Apply(worker.Upsert(c.Entity, m.Body)).WithoutRecord(), nil
	case "place":
		return worker.Create(worker.Document{Type: "order", Content: m.Body}, worker.Document{Name: "line-1", Type: "line", Content: m.Body}), nil
	}
	return worker.Ignore("NotOurs"), nil
}

func debit(ctx context.Context, m worker.Message, c command) (worker.Effects, error) {
	state, err := m.Read(ctx, c.Entity)
	if err != nil {
		return worker.Effects{}, err
	}
	var account struct{ Balance int64 }
	if err := json.Unmarshal(state.Content, &account); err != nil {
		return worker.Effects{}, err
	}
	if account.Balance < c.Amount {
		return worker.Effects{}, worker.Reject("InsufficientFunds", errors.New("the balance is too low"))
	}
	return worker.Apply(worker.Replace(c.Entity, fmt.Appendf(nil, `{"balance":%d}`, account.Balance-c.Amount), state.ETag)), nil
}

// prove adds up what the inbox records say and holds it against the documents.
func (s *effectStream) prove() {
	s.t.Helper()
	documents := map[string]map[string]any{}
	for _, d := range s.Account.Documents(s.Database, s.Container) {
		var members map[string]any
		require.NoError(s.t, json.Unmarshal([]byte(d.Body), &members))
		documents[d.ID] = members
	}
	rejected := map[string]bool{}
	for _, d := range s.deadLetters() {
		rejected[d.Key] = true
	}
	spent, paid, newest, captured := map[string]int64{}, map[string]int64{}, map[string]int64{}, map[string][]any{}
	for id, c := range s.commands {
		_, processed := documents[recordID(id)]
		documentID := identity.Text(id).DocumentID()
		switch c.Do {
		case "other", "price":
			require.False(s.t, processed, "%s has no record", id)
			continue
		case "place":
			require.Contains(s.t, documents, documentID, "all of %s or nothing", id)
			require.Contains(s.t, documents, identity.PartDocumentID(documentID, "line-1"), "all of %s or nothing", id)
		}
		require.NotEqual(s.t, processed, rejected[id], "%s is processed or rejected, and never both", id)
		if !processed {
			continue
		}
		switch c.Do {
		case "debit":
			spent[c.Entity] += c.Amount
		case "capture":
			paid[c.Entity] += c.Amount
			captured[c.Entity] = append(captured[c.Entity], id)
		case "project":
			newest[c.Entity] = max(newest[c.Entity], c.Amount)
		}
	}
	for n := range accounts {
		id := fmt.Sprint("account-", n)
		require.EqualValues(s.t, balance-spent[id], documents[id]["balance"], "the debits that have records, of %s", id)
	}
	for n := range orderCount {
		id := fmt.Sprint("order-", n)
		require.EqualValues(s.t, paid[id], documents[id]["paid"], "the captures that have records, of %s", id)
		require.ElementsMatch(s.t, captured[id], documents[id]["history"], "each capture once, of %s", id)
	}
	for id, version := range newest {
		require.EqualValues(s.t, version, documents[id]["version"], "the newest version of %s", id)
	}
}
