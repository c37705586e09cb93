package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/identity"
)

// outbox returns the store as an outbox, or skips the test.
func (b *bench) outbox() worker.Outbox {
	b.Helper()
	o, ok := b.store.(worker.Outbox)
	if !ok {
		b.Skip("the store keeps no messages")
	}
	return o
}

// sending is a commit of one order that sends messages.
func (b *bench) sending(id string, names ...string) (worker.Commit, worker.Rehash) {
	b.Helper()
	c, rehash := b.commit(id, `{"amount":40}`, 0)
	for _, name := range names {
		c.Messages = append(c.Messages, worker.Sending{To: "stock", Name: name, MessageID: identity.OutgoingMessageID(c.DocumentID, name),
			Line: fmt.Appendf(nil, `{"body":"%s <&> 12345678901234567890"}`, name)})
	}
	return c, rehash
}

// pending returns what is left of a commit, and whether anything is.
func (b *bench) pending(c worker.Commit) (worker.Unsent, bool) {
	b.Helper()
	u, err := b.outbox().Pending(b.ctx, c.Partition, c.DocumentID)
	if errors.Is(err, worker.ErrNotFound) {
		return worker.Unsent{}, false
	}
	b.succeeds(err, "pending of %s", c.MessageID)
	return u, true
}

// overdue returns the outbox of a commit among those that were not touched for so long.
func (b *bench) overdue(c worker.Commit, untouched time.Duration) (worker.Unsent, bool) {
	b.Helper()
	all, err := b.outbox().Overdue(b.ctx, untouched, 1000)
	b.succeeds(err, "overdue")
	i := slices.IndexFunc(all, func(u worker.Unsent) bool { return u.DocumentID == c.DocumentID })
	if i < 0 {
		return worker.Unsent{}, false
	}
	return all[i], true
}

func keepsMessages(b *bench) {
	c, rehash := b.sending("m", "accepted", "reserve")
	b.judged(worker.Created, c, rehash)
	u, ok := b.pending(c)
	b.must(ok, "messages are kept until they are sent")
	b.equal(c.Messages, u.Messages, "the messages as they were committed")
	b.must(b.find(c).Outbox, "the record says that there are messages")
	b.equal(0, len(b.find(c).MissingParts), "missing parts with the messages")
	b.succeeds(b.outbox().Sent(b.ctx, u), "sent")
	_, ok = b.pending(c)
	b.must(!ok, "what was sent is not pending")
	b.succeeds(b.outbox().Sent(b.ctx, u), "sent twice")
	b.equal(0, len(b.find(c).MissingParts), "missing parts when everything was sent")
	again, rehash := b.sending("m", "accepted", "reserve")
	b.judged(worker.Duplicate, again, rehash)
	_, ok = b.pending(c)
	b.must(!ok, "a duplicate sends nothing")
}

func keepsNoMessagesOfOthers(b *bench) {
	plain, rehash := b.commit("plain", `{"amount":40}`, 0)
	b.judged(worker.Created, plain, rehash)
	b.must(!b.find(plain).Outbox, "a record without messages says so")
	_, ok := b.pending(plain)
	b.must(!ok, "a commit without messages has none")
	first, rehash := b.sending("m", "accepted")
	b.judged(worker.Created, first, rehash)
	other, rehash := b.commit("m", `{"amount":41}`, 0)
	other.Messages = []worker.Sending{{To: "elsewhere", Name: "x", MessageID: "x", Line: []byte(`{}`)}}
	b.judged(worker.Conflict, other, rehash)
	u, _ := b.pending(first)
	b.equal(first.Messages, u.Messages, "the messages after a conflict")
}

func takesUpOnce(b *bench) {
	c, rehash := b.sending("m", "accepted")
	b.judged(worker.Created, c, rehash)
	u, ok := b.overdue(c, 0)
	for try := 0; !ok && try < 100; try++ { // a replica that lags behind does not show it yet
		b.wait(100 * time.Millisecond)
		u, ok = b.overdue(c, 0)
	}
	b.must(ok, "what is not sent is overdue")
	_, fresh := b.overdue(c, time.Hour)
	b.must(!fresh, "what was committed just now is not overdue for an hour")
	var wins, losses int
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			_, err := b.outbox().TakeUp(b.ctx, u)
			mu.Lock()
			defer mu.Unlock()
			if _, moved := errors.AsType[*worker.StateMovedError](err); moved {
				losses++
			} else if err == nil {
				wins++
			}
		})
	}
	all.Wait()
	b.equal(1, wins, "relays that took it up")
	b.equal(9, losses, "relays that came too late")
	again, _ := b.overdue(c, 0)
	for try := 0; again.Attempts == 0 && try < 100; try++ {
		b.wait(100 * time.Millisecond)
		again, _ = b.overdue(c, 0)
	}
	b.equal(1, again.Attempts, "attempts")
	b.equal(c.Messages, again.Messages, "the messages after it was taken up")
	taken, err := b.outbox().TakeUp(b.ctx, again)
	b.succeeds(err, "taken up again")
	b.succeeds(b.outbox().Sent(b.ctx, taken), "sent")
	_, err = b.outbox().TakeUp(b.ctx, taken)
	_, moved := errors.AsType[*worker.StateMovedError](err)
	b.must(moved, "what was sent cannot be taken up: %v", err)
}

func replaysMessages(b *bench) {
	if !b.options.TTL {
		b.Skip("the store keeps documents for ever")
	}
	c, rehash := b.sending("m", "reply")
	c.Replay = 20 * time.Second
	b.judged(worker.Created, c, rehash)
	u, _ := b.pending(c)
	b.equal(20*time.Second, u.Replay, "the time for which a reply is kept")
	b.succeeds(b.outbox().Sent(b.ctx, u), "sent")
	u, ok := b.pending(c)
	b.must(ok && u.Replayed, "a reply is kept once it was sent")
	b.equal(c.Messages, u.Messages, "the reply")
	_, overdue := b.overdue(c, 0)
	b.must(!overdue, "a reply that was sent is not overdue")
	b.succeeds(b.outbox().Sent(b.ctx, u), "sent again")
	if b.options.Bubble {
		b.wait(c.Replay + b.options.TTLDelay + time.Second)
		_, ok = b.pending(c)
		b.must(!ok, "a reply is not kept for ever")
	}
}
