package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/reason"
)

func findsNothing(b *bench) {
	_, err := b.store.Find(b.ctx, "", b.prefix+"nobody")
	b.notFound(err)
}

func refusesTooLarge(b *bench) {
	b.needsBounds()
	for _, lines := range []int{0, 2} {
		c, _ := b.commit(fmt.Sprintf("large-%d", lines), `{"amount":40}`, lines)
		last := len(c.Documents) - 1
		c.Documents[last].Content = []byte(`{"text":"` + strings.Repeat("x", 3<<20) + `"}`)
		b.refused(c, reason.TooLarge)
	}
}

// needsBounds skips a test of bounds where the store has none.
func (b *bench) needsBounds() {
	b.Helper()
	if b.options.Unbounded {
		b.Skip("needs a store with bounds: Options.Unbounded")
	}
}

func refusesTooMany(b *bench) {
	b.needsBounds()
	c, _ := b.commit("many", `{"amount":40}`, 100)
	b.refused(c, reason.TooLarge)
}

func refusesImpossible(b *bench) {
	for content, code := range map[string]string{
		`{"x":}`: reason.NotJSON, `[]`: reason.InvalidEffects, ``: reason.InvalidEffects,
	} {
		for _, lines := range []int{0, 1} {
			c, _ := b.commit("impossible", `{"amount":40}`, lines)
			c.Documents[lines].Content = []byte(content)
			b.refused(c, code)
		}
	}
	c, _ := b.commit("impossible", `{}`, 1)
	c.Documents[1].Name = ""
	b.refused(c, reason.InvalidEffects)
}

func (b *bench) refused(c worker.Commit, code string) {
	b.Helper()
	_, err := b.store.Commit(b.ctx, c)
	e, ok := errors.AsType[*worker.UnstorableError](err)
	b.must(ok, "the commit must fail with a *worker.UnstorableError, or say Options.Unbounded if it has no bounds; got %v", err)
	b.equal(code, e.Reason, "the reason code")
	b.must(e.Detail != "", "the refusal says nothing to a person")
	_, err = b.store.Find(b.ctx, "", c.DocumentID)
	b.notFound(err)
}

func endsWithContext(b *bench) {
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	c, rehash := b.commit("ended", `{"amount":40}`, 2)
	if _, err := b.store.Commit(ctx, c); err != nil {
		_, ok := errors.AsType[*worker.UnavailableError](err)
		b.must(ok || errors.Is(err, context.Canceled), "the error must be a *worker.UnavailableError or the context's; got %v", err)
	}
	j, _ := b.judge(c, rehash)
	b.must(j == worker.Created || j == worker.Own, "the judgement: want created or own write, got %v", j)
	r := b.find(c)
	b.empty(r.MissingParts, "MissingParts")
}

func isReady(b *bench) { b.succeeds(b.store.Ready(b.ctx), "ready") }
