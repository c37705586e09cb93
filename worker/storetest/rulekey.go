package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/admission"
)

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
		b.equal(map[worker.Judgement]int{worker.Created: 1, worker.Duplicate: 49}, counts, "the judgements of fifty copies")
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
	slices.Sort(judgements)
	b.equal([]worker.Judgement{worker.Created, worker.Conflict}, judgements, "the judgements of two contents")
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
			r, err := b.store.Find(b.ctx, "", c.DocumentID)
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
		b.judged(worker.Created, c, rehash)
		commits[i] = c
	}
	for i, key := range keys {
		r := b.find(commits[i])
		b.equal(commits[i].Key.String(), r.Key, "the stored Key")
		again, rehash := b.commitBy(admission.Config{}, key, fmt.Sprintf(`{"n":%d}`, i), i%2)
		b.judged(worker.Duplicate, again, rehash)
		other, rehash := b.commitBy(admission.Config{}, key, `{"n":-1}`, i%2)
		b.judged(worker.Conflict, other, rehash)
	}
}

func isNotOverridden(b *bench) {
	body := `{"id":"other","pk":"other","_etag":"x","_ts":1,"ttl":1,"type":"x","hash":"x","request":{"hash":"x","attempt":"x","messageId":"x"},"order":{"id":"y"}}`
	c, rehash := b.commit("override", body, 1)
	c.Documents[1].Content = []byte(body)
	b.judged(worker.Created, c, rehash)
	r := b.find(c)
	b.equal(c.Attempt, r.Attempt, "the stored Attempt")
	b.equal(c.Fingerprint.Hash, r.Fingerprint.Hash, "the stored hash")
	b.equal(c.MessageID, r.MessageID, "the stored MessageID")
	b.equal("order", r.Type, "the stored Type")
	b.sameJSON([]byte(body), r.Content)
	_, err := b.store.Find(b.ctx, "", "other")
	b.notFound(err)
}
