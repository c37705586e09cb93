package storetest

import (
	"fmt"
	"time"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/identity"
)

func forgetsExpired(b *bench) {
	if !b.options.TTL || !b.options.Bubble {
		b.Skip("needs a store that keeps TTL, and a bubble whose time costs nothing: Options.TTL and Options.Bubble")
	}
	c, rehash := b.commit("expired", `{"amount":40}`, 0)
	c.Documents[0].TTL = 30 * time.Second
	b.judge(c, rehash)
	b.wait(20 * time.Second)
	again, rehash := b.commit("expired", `{"amount":40}`, 0)
	b.judged(worker.Duplicate, again, rehash)
	b.wait(11*time.Second + b.options.TTLDelay)
	_, err := b.store.Find(b.ctx, "", c.DocumentID)
	b.notFound(err)
	b.judged(worker.Created, again, rehash)
}

func missesRemoved(b *bench) {
	if b.options.Remove == nil {
		b.Skip("needs a way to take documents away: Options.Remove")
	}
	for _, lines := range []int{1, 3} {
		id := fmt.Sprintf("removed-%d", lines)
		c, rehash := b.commit(id, `{"amount":40}`, lines)
		b.judge(c, rehash)
		b.options.Remove(b.store, identity.PartDocumentID(c.DocumentID, "line-1"))
		again, rehash := b.commit(id, `{"amount":40}`, lines)
		o := b.judged(worker.Incomplete, again, rehash)
		b.equal([]string{"line-1"}, o.Existing.MissingParts, "MissingParts")
		r := b.find(c)
		b.equal([]string{"line-1"}, r.MissingParts, "Find and Commit agree")
		other, rehash := b.commit(id, `{"amount":41}`, lines)
		b.judged(worker.Conflict, other, rehash)
	}
}

func missesNoExpired(b *bench) {
	if !b.options.TTL || !b.options.Bubble {
		b.Skip("needs a store that keeps TTL, and a bubble whose time costs nothing: Options.TTL and Options.Bubble")
	}
	c, rehash := b.commit("expired-line", `{"amount":40}`, 2)
	c.Documents[1].TTL = 30 * time.Second
	b.judge(c, rehash)
	b.wait(31*time.Second + b.options.TTLDelay)
	again, rehash := b.commit("expired-line", `{"amount":40}`, 2)
	b.judged(worker.Duplicate, again, rehash)
	r := b.find(c)
	b.empty(r.MissingParts, "MissingParts")
}

func blockedByRemains(b *bench) {
	if b.options.Remove == nil {
		b.Skip("needs a way to take documents away: Options.Remove")
	}
	for _, lines := range []int{1, 3} {
		id := fmt.Sprintf("remains-%d", lines)
		c, rehash := b.commit(id, `{"amount":40}`, lines)
		b.judge(c, rehash)
		b.options.Remove(b.store, c.DocumentID)
		again, rehash := b.commit(id, `{"amount":40}`, lines)
		j, _ := b.judge(again, rehash)
		b.must(j != worker.Created, "an order was created over the lines of another")
	}
}
