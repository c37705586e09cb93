package storetest

import (
	"fmt"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/admission"
)

func createsOne(b *bench) {
	c, rehash := b.commit("1042", `{"orderId":"1042","amount":40}`, 0)
	o := b.judged(worker.Created, c, rehash)
	b.must(o.Existing == nil, "a created outcome has an existing record: %+v", o.Existing)
	r := b.find(c)
	b.equal(c.DocumentID, r.DocumentID, "the stored DocumentID")
	b.equal(c.Key.String(), r.Key, "the stored Key")
	b.equal(c.Attempt, r.Attempt, "the stored Attempt")
	b.equal(c.Program, r.Program, "the stored Program")
	b.equal(c.ProgramVersion, r.ProgramVersion, "the stored ProgramVersion")
	b.equal("", r.Unknown, "what is unknown of a record of this version")
	b.must(r.Fingerprint != nil, "the fingerprint is not stored")
	b.equal(c.Fingerprint.Hash, r.Fingerprint.Hash, "the stored hash")
	b.must(c.Fingerprint.Parameters.Equal(r.Fingerprint.Parameters), "the parameters must be stored with the hash: got %+v", r.Fingerprint.Parameters)
	b.equal("order", r.Type, "the stored Type")
	b.sameJSON(c.Documents[0].Content, r.Content)
	b.equal(c.MessageID, r.MessageID, "the stored MessageID")
	b.equal(c.SequenceNumber, r.SequenceNumber, "the stored SequenceNumber")
	b.must(c.EnqueuedAt.Equal(r.EnqueuedAt), "enqueued at %v, stored %v", c.EnqueuedAt, r.EnqueuedAt)
	b.empty(r.Parts, "Parts")
	b.empty(r.MissingParts, "MissingParts")
}

func createsSeveral(b *bench) {
	c, rehash := b.commit("several", `{"amount":40}`, 3)
	b.judged(worker.Created, c, rehash)
	r := b.find(c)
	b.equal([]string{"line-1", "line-2", "line-3"}, r.Parts, "Parts")
	b.empty(r.MissingParts, "MissingParts")

	again, rehash := b.commit("several", `{"amount":40}`, 3)
	b.judged(worker.Duplicate, again, rehash)
}

func recognisesOwnWrite(b *bench) {
	for _, lines := range []int{0, 2} {
		c, rehash := b.commit(fmt.Sprintf("own-%d", lines), `{"amount":40}`, lines)
		b.judged(worker.Created, c, rehash)
		o := b.judged(worker.Own, c, rehash)
		b.must(!o.Created, "a repeated commit says that it created the documents")
	}
}

func recognisesDuplicate(b *bench) {
	c, rehash := b.commit("dup", `{"amount":40,"items":[1,2]}`, 0)
	b.judge(c, rehash)
	for _, body := range []string{`{"amount":40,"items":[1,2]}`, `{ "items" : [1, 2.0], "amount": 4e1 }`} {
		again, rehash := b.commit("dup", body, 0)
		b.judged(worker.Duplicate, again, rehash)
	}
}

func recognisesConflict(b *bench) {
	first, rehash := b.commit("conflict", `{"amount":40}`, 1)
	b.judge(first, rehash)
	for _, lines := range []int{0, 1, 2} {
		other, rehash := b.commit("conflict", `{"amount":41}`, lines)
		o := b.judged(worker.Conflict, other, rehash)
		b.equal(first.Fingerprint.Hash, o.Existing.Fingerprint.Hash, "the hash of the existing record")
		b.sameJSON([]byte(`{"amount":40}`), o.Existing.Content)
	}
	r := b.find(first)
	b.equal(first.Attempt, r.Attempt, "the stored Attempt")
	b.sameJSON([]byte(`{"amount":40}`), r.Content)
	b.equal([]string{"line-1"}, r.Parts, "the stored Parts")
}

func judgesByStoredParameters(b *bench) {
	id := b.prefix + "parameters"
	c, rehash := b.commitBy(admission.Config{Ignore: []string{"/sentAt"}}, id, `{"amount":40,"sentAt":"10:00"}`, 0)
	b.judge(c, rehash)
	again, rehash := b.commitBy(admission.Config{}, id, `{"amount":40,"sentAt":"10:05"}`, 0)
	b.judged(worker.Duplicate, again, rehash)
}
