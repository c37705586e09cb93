package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/reason"
)

// change makes the commit of a new message that changes documents in a partition of this test.
func (b *bench) change(id, partition string, changes ...worker.Change) (worker.Commit, worker.Rehash) {
	b.Helper()
	c, rehash := b.commit(id, fmt.Sprintf(`{"message":%q}`, id), 0)
	c.Partition, c.Documents, c.Changes = b.prefix+partition, nil, changes
	return c, rehash
}

// applies commits changes that must succeed.
func (b *bench) applies(id, partition string, changes ...worker.Change) {
	b.Helper()
	c, rehash := b.change(id, partition, changes...)
	b.judged(worker.Created, c, rehash)
}

// state reads a document that must exist.
func (b *bench) state(partition, id string) worker.State {
	b.Helper()
	s, err := b.store.Read(b.ctx, b.prefix+partition, id)
	b.succeeds(err, "read %s", id)
	return s
}

// nothingOf ends the test when a message left a record, or a document "beside".
func (b *bench) nothingOf(c worker.Commit) {
	b.Helper()
	_, err := b.store.Find(b.ctx, c.Partition, c.DocumentID)
	b.notFound(err)
	_, err = b.store.Read(b.ctx, c.Partition, "beside")
	b.notFound(err)
}

func changesOnce(b *bench) {
	b.needsChanges()
	b.applies("first", "p", worker.Upsert("order", []byte(`{"status":"NEW","paid":1,"log":[]}`)))
	for range 2 {
		c, rehash := b.change("pay", "p", worker.Upsert("beside", []byte(`{}`)),
			worker.Patch("order", worker.Set("/status", "PAID"), worker.Increment("/paid", 40), worker.Add("/log/-", "paid")))
		c.Outcome = []byte(`{"status":"PAID"}`)
		b.judge(c, rehash)
		r := b.find(c)
		b.sameJSON(c.Outcome, r.Outcome)
		b.must(!r.Stale, "a message that was applied is recorded as stale")
	}
	b.hasMembers(b.state("p", "order").Content, `"status":"PAID"`, `"paid":41`, `"log":["paid"]`)
	b.state("p", "beside")
	b.applies("delete", "p", worker.Delete("beside", b.state("p", "beside").ETag), worker.Delete("never-stored", ""))
	_, err := b.store.Read(b.ctx, b.prefix+"p", "beside")
	b.notFound(err)
}

// hasMembers ends the test unless a stored document has these members.
func (b *bench) hasMembers(content []byte, members ...string) {
	b.Helper()
	for _, m := range members {
		b.must(strings.Contains(string(content), m), "want %s in %s", m, content)
	}
}

func changesUnderETag(b *bench) {
	b.needsChanges()
	b.applies("first", "p", worker.Upsert("account", []byte(`{"n":1}`)))
	old := b.state("p", "account").ETag
	b.applies("second", "p", worker.Replace("account", []byte(`{"n":2}`), old))
	for name, change := range map[string]worker.Change{
		"replace":                 worker.Replace("account", []byte(`{"n":3}`), old),
		"replace of what is gone": worker.Replace("gone", []byte(`{}`), old),
		"delete":                  worker.Delete("account", old),
		"delete of what is gone":  worker.Delete("gone", old),
		"upsert":                  {Kind: worker.ChangeUpsert, ID: "account", Content: []byte(`{"n":3}`), ETag: old},
		"patch":                   {Kind: worker.ChangePatch, ID: "account", Operations: []worker.PatchOperation{worker.Set("/n", 3)}, ETag: old},
	} {
		c, _ := b.change("late "+name, "p", worker.Upsert("beside", []byte(`{}`)), change)
		_, err := b.store.Commit(b.ctx, c)
		_, moved := errors.AsType[*worker.StateMovedError](err)
		b.must(moved, "%s under an old ETag: want a *worker.StateMovedError, got %v", name, err)
		b.nothingOf(c)
		b.hasMembers(b.state("p", "account").Content, `"n":2`)
	}
}

func debitsExactly(b *bench) {
	b.needsChanges()
	const debits = 12
	b.applies("first", "p", worker.Upsert("account", []byte(`{"n":0}`)))
	failures := make([]error, debits)
	var wg sync.WaitGroup
	for i := range debits {
		wg.Go(func() { failures[i] = b.debit(fmt.Sprint("debit", i)) })
	}
	wg.Wait()
	b.succeeds(errors.Join(failures...), "a debit that may only lose races")
	b.hasMembers(b.state("p", "account").Content, fmt.Sprintf(`"n":%d`, debits))
}

// debit adds one to the account as often as it takes to win the race.
func (b *bench) debit(id string) error {
	for {
		s, err := b.store.Read(b.ctx, b.prefix+"p", "account")
		if err != nil {
			return err
		}
		var account struct{ N int }
		if err := json.Unmarshal(s.Content, &account); err != nil {
			return err
		}
		c, _ := b.change(id, "p", worker.Replace("account", fmt.Appendf(nil, `{"n":%d}`, account.N+1), s.ETag))
		_, err = b.store.Commit(b.ctx, c)
		if _, moved := errors.AsType[*worker.StateMovedError](err); !moved {
			return err
		}
	}
}

func keepsNewest(b *bench) {
	b.needsChanges()
	for _, kind := range []worker.ChangeKind{worker.ChangeUpsert, worker.ChangePatch} {
		entity := "by " + string(kind)
		b.applies("first "+entity, entity, worker.Upsert("e", []byte(`{"name":"none"}`)))
		for i, tt := range []struct {
			version int64
			stale   bool
		}{{9, false}, {10, false}, {9, true}, {10, true}, {11, false}, {2, true}, {100, false}} {
			change := worker.Upsert("e", fmt.Appendf(nil, `{"version":%d,"name":"n%d"}`, tt.version, i))
			if kind == worker.ChangePatch {
				change = worker.Patch("e", worker.Set("/version", tt.version), worker.Set("/name", fmt.Sprint("n", i)))
			}
			want := worker.Created
			if tt.stale {
				want = worker.Stale
			}
			for _, want := range []worker.Judgement{want, worker.Duplicate} {
				c, rehash := b.change(fmt.Sprint("event", i, kind), entity, change)
				c.Version = &worker.Version{Document: "e", Path: "/version", Value: tt.version}
				if _, sends := b.store.(worker.Outbox); sends {
					c.Messages = []worker.Sending{{To: "stock", Name: "x", MessageID: "x", Line: []byte(`{}`)}}
				}
				b.judged(want, c, rehash)
				r := b.find(c)
				b.equal(!tt.stale && len(c.Messages) > 0, r.Outbox, "event %d has messages to send", i)
				b.equal(tt.stale, r.Stale, "the record of event %d is stale", i)
			}
		}
		b.hasMembers(b.state(entity, "e").Content, `"version":100`, `"name":"n6"`)
	}
}

func refusesChanges(b *bench) {
	b.needsChanges()
	b.applies("first", "p", worker.Upsert("e", []byte(`{"version":"7","name":"kept"}`)))
	for name, change := range map[string]worker.Change{
		"an upsert": worker.Upsert("e", []byte(`{"version":8,"name":"new"}`)),
		"a patch":   worker.Patch("e", worker.Set("/version", 8), worker.Set("/name", "new")),
	} {
		c, _ := b.change("text "+name, "p", change)
		c.Version = &worker.Version{Document: "e", Path: "/version", Value: 8}
		b.uncertain(c, reason.InvalidEffects)
	}
	b.hasMembers(b.state("p", "e").Content, `"version":"7"`, `"name":"kept"`)
	c, _ := b.change("no target", "p", worker.Upsert("beside", []byte(`{}`)), worker.Patch("gone", worker.Set("/n", 1)))
	b.uncertain(c, reason.ChangeTargetMissing)
	c, _ = b.change("rounded", "p", worker.Upsert("beside", []byte(`{}`)), worker.Patch("e", worker.Set("/n", int64(1<<53+1))))
	b.refused(c, reason.InvalidEffects)
}

// uncertain commits what must fail with a reason that a person can act on, and leave nothing.
func (b *bench) uncertain(c worker.Commit, code string) {
	b.Helper()
	_, err := b.store.Commit(b.ctx, c)
	e, ok := errors.AsType[*worker.UncertainError](err)
	b.must(ok, "want a *worker.UncertainError, got %v", err)
	b.equal(code, e.Reason, "the reason code")
	b.nothingOf(c)
}

func keepsNumbers(b *bench) {
	b.needsChanges()
	const big, long = `"big":12345678901234567890`, `0.1000000000000000055511151231257827`
	b.applies("first", "p", worker.Upsert("e", []byte(`{"n":1,`+big+`,"list":[{"price":`+long+`}]}`)))
	for i := range 2 {
		s := b.state("p", "e")
		b.hasMembers(s.Content, big, long)
		b.must(!strings.Contains(string(s.Content), "exactNumbers"), "a handler sees a member of the store: %s", s.Content)
		content := strings.Replace(string(s.Content), fmt.Sprintf(`"n":%d`, i+1), fmt.Sprintf(`"n":%d`, i+2), 1)
		b.applies(fmt.Sprint("change", i), "p", worker.Replace("e", []byte(content), s.ETag))
	}
	b.applies("patch", "p", worker.Patch("e", worker.Increment("/n", 1)))
	b.hasMembers(b.state("p", "e").Content, `"n":4`, big, long)
}

// needsChanges skips a test of changes where the store makes none.
func (b *bench) needsChanges() {
	b.Helper()
	if !b.options.Changes {
		b.Skip("needs a store that keeps inbox records of their own: Options.Changes")
	}
}
