package storetest

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/admission"
	"github.com/orderworker/orderworker/worker/fingerprint"
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
	// Changes tells that the store keeps inbox records of their own, so that messages may change documents.
	Changes bool
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
		{"what no database can take is refused for ever and leaves nothing behind", refusesImpossible},
		{"a call whose context has ended fails as unavailable or has its effect, and can be repeated", endsWithContext},
		{"a store that works says that it is ready", isReady},
		{"a document that expired is forgotten", forgetsExpired},
		{"an order of which somebody removed a line is not a duplicate", missesRemoved},
		{"a line that expired by its own time is not missed", missesNoExpired},
		{"a line that exists without its order is never overwritten", blockedByRemains},
		{"changes are made together with the record, and once", changesOnce},
		{"a change under an ETag that is old changes nothing", changesUnderETag},
		{"changes that race for one document all come out in it", debitsExactly},
		{"of events in any order the newest is kept, and of the others the record alone", keepsNewest},
		{"a change that does not fit its document is refused with what to do", refusesChanges},
		{"numbers that a change leaves alone keep their text", keepsNumbers},
		{"of fifty claims at once one is made, completed once, and nothing committed before", claimsOnceOfFifty},
		{"a claim is recognised by its nonce when it is made and when it is renewed", recognisesOwnClaim},
		{"a claim that is renewed stays in progress, and one that is not ends by the clock of the store", renewsClaims},
		{"a claim whose lease has ended is taken over once, and who had it commits nothing", takesClaimsOver},
		{"a claim that was released is as good as none, and its number is counted on", releasesClaims},
		{"messages are kept with the commit until they are sent, and no longer", keepsMessages},
		{"nothing is to be sent for a commit that did not happen", keepsNoMessagesOfOthers},
		{"of relays at once one takes messages up, and none what was sent", takesUpOnce},
		{"a reply is kept for its time once it was sent", replaysMessages},
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
	b.succeeds(err, "the configuration of admission")
	// Each commit is for a message of its own: another delivery of one message would be told from a duplicate.
	sequence, enqueued := rand64(), time.Now().Add(-time.Second).UTC().Truncate(time.Millisecond)
	m, refusal := a.Admit(&azservicebus.ReceivedMessage{MessageID: id, Body: []byte(body), SequenceNumber: &sequence, EnqueuedTime: &enqueued})
	b.must(refusal == nil, "the message is refused: %v", refusal)
	commit := worker.Commit{
		Key: m.Key, DocumentID: m.DocumentID, Attempt: rand.Text(), Fingerprint: m.Fingerprint,
		MessageID: m.MessageID, SequenceNumber: sequence, EnqueuedAt: enqueued,
		Program: "storetest", ProgramVersion: "1.2.3",
		Documents: []worker.Document{{Type: "order", Content: []byte(body)}},
	}
	for i := range lines {
		commit.Documents = append(commit.Documents, worker.Document{
			Name: fmt.Sprintf("line-%d", i+1), Type: "line", Content: fmt.Appendf(nil, `{"line":%d}`, i+1),
		})
	}
	return commit, func(r fingerprint.Parameters) (fingerprint.Fingerprint, error) { return a.Rehash(m, r) }
}

// rand64 is a sequence number that no other message has.
func rand64() int64 { return mathrand.Int64N(1<<53) + 1 }

// judge commits and judges, and fails the test on an error.
func (b *bench) judge(c worker.Commit, rehash worker.Rehash) (worker.Judgement, worker.Outcome) {
	b.Helper()
	o, err := b.store.Commit(b.ctx, c)
	b.succeeds(err, "commit")
	b.must(o.Calls > 0, "a store counts its requests: Outcome.Calls is %d", o.Calls)
	return worker.Judge(c, o, rehash), o
}

// judged commits, and ends the test unless the judgement is the wanted one.
func (b *bench) judged(want worker.Judgement, c worker.Commit, rehash worker.Rehash) worker.Outcome {
	b.Helper()
	j, o := b.judge(c, rehash)
	b.equal(want, j, "the judgement of %s", c.MessageID)
	return o
}

// find returns the record of a commit, which must be stored.
func (b *bench) find(c worker.Commit) worker.Record {
	b.Helper()
	r, err := b.store.Find(b.ctx, c.Partition, c.DocumentID)
	b.succeeds(err, "find %s", c.MessageID)
	return r
}

// wait lets time pass in the bubble of a test.
func (b *bench) wait(d time.Duration) { time.Sleep(d) }
