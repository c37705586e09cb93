package worker

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/worker/admission"
	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/identity"
	"github.com/orderworker/orderworker/worker/internal/supervise"
	"github.com/orderworker/orderworker/worker/reason"
)

// maxDifferences bounds the paths that a conflict names.
const maxDifferences = 20

// callGrace is how long a handler or a store may go on after its context has ended before it is left behind.
const callGrace = time.Second

// The causes with which the context of a handler ends.
var (
	// ErrLockLost: the lock of the message is lost, so that another worker may have it already.
	ErrLockLost = errors.New("worker: the lock of the message is lost")
	// ErrStopping: the worker must stop now.
	ErrStopping = errors.New("worker: the worker is stopping")
	// ErrHandlerTimeout: the handler's time is up.
	ErrHandlerTimeout = errors.New("worker: the handler's time is up")
)

// A Pipeline takes a message from the form in which it was received to a judgement, without settling anything. The worker,
// the review of dead letters and dry runs share it. It is safe for concurrent use.
type Pipeline struct {
	admitter       *admission.Admitter
	store          Store
	handler        Handler
	handlerTimeout time.Duration
	storeTimeout   time.Duration
	program        string
	version        string
	claims         ClaimConfig
	outbox         Outbox // nil: the store keeps no messages
	messages       OutboxConfig
	posting        *posting
	pool           *supervise.Pool // nil outside of a worker
}

// NewPipeline returns a pipeline by the settings of c for admission and for the timeouts of handler and store.
func NewPipeline(c Config, s Store, h Handler) (*Pipeline, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	if absent(s) || absent(h) {
		return nil, errors.New("worker: a store and a handler are needed")
	}
	if v, ok := h.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return nil, err
		}
	}
	a, err := admission.New(c.Admission)
	if err != nil {
		return nil, err
	}
	p := &Pipeline{admitter: a, store: s, handler: h, handlerTimeout: c.HandlerTimeout, storeTimeout: c.StoreTimeout, program: c.Program,
		version: c.Version, claims: c.Claim, messages: c.Outbox, posting: newPosting(c.Outbox.Sender, c.StoreTimeout)}
	p.outbox, _ = s.(Outbox)
	return p, nil
}

// Process makes one pass: admit, claim if so configured, handle, commit, judge. It writes to the store and settles nothing. A message that is
// processed twice is committed once, and judged a duplicate the second time.
func (p *Pipeline) Process(ctx context.Context, m *azservicebus.ReceivedMessage) Result {
	r := p.claim(ctx, p.admit(m), func(r Result, call storeCall) Result { return call(ctx, r) })
	if r.Cause == 0 && !r.handled {
		r = p.handle(ctx, r)
	}
	if r.Cause == 0 {
		r = p.commit(ctx, r)
	}
	r = p.send(ctx, p.finalRelease(ctx, r))
	if err := p.forget(ctx, r); err != nil {
		r.Unsent, r.unsentErr = true, err
	}
	return r
}

// Preview says what [Pipeline.Process] would come to, as far as that can be told without calling the handler and without
// writing: it admits the message and judges it against what is stored. A message of which nothing is stored has neither
// a Cause nor a Judgement.
func (p *Pipeline) Preview(ctx context.Context, m *azservicebus.ReceivedMessage) Result {
	r := p.admit(m)
	if r.Cause != 0 {
		return r
	}
	record, err := p.find(ctx, r.Commit.Partition, r.Commit.DocumentID)
	switch {
	case errors.Is(err, ErrNotFound):
		return r
	case err != nil:
		return r.failed(ctx, err)
	}
	r.Outcome = Outcome{Existing: &record}
	// A preview is no delivery, so it has no write of its own to recognise.
	r.Commit.Attempt = ""
	r = p.judge(r)
	u, err := p.toSend(ctx, r)
	if err != nil {
		return r.failed(ctx, err)
	}
	r.Unsent = u != nil && !u.Replayed
	return r
}

// Lookup returns the key of a message, whose body may be one that cannot be admitted, and what is stored under that key. The
// error is a [*reason.Refusal] when the message has no key, [ErrNotFound] when nothing is stored, or one of the store's.
func (p *Pipeline) Lookup(ctx context.Context, m *azservicebus.ReceivedMessage) (identity.Key, Record, error) {
	key, partition, refusal := p.admitter.Key(m)
	if refusal != nil {
		return identity.Key{}, Record{}, refusal
	}
	record, err := p.find(ctx, partition, key.DocumentID())
	return key, record, err
}

// find asks the store for a record, within its time.
func (p *Pipeline) find(ctx context.Context, partition, documentID string) (Record, error) {
	ctx, cancel := context.WithTimeout(ctx, p.storeTimeout)
	defer cancel()
	return supervise.Call(ctx, p.pool, callGrace, func(ctx context.Context) (Record, error) {
		return p.store.Find(ctx, partition, documentID)
	}, nil)
}

// admit starts the result of a delivery, with a nonce of its own.
func (p *Pipeline) admit(m *azservicebus.ReceivedMessage) Result {
	message, refusal := p.admitter.Admit(m)
	if refusal != nil {
		return Result{Cause: CauseRefused, Reason: refusal.Reason, Detail: refusal.Detail}
	}
	return Result{Admitted: true, Message: message, Commit: Commit{
		Key:            message.Key,
		DocumentID:     message.DocumentID,
		Attempt:        rand.Text(),
		Fingerprint:    message.Fingerprint,
		MessageID:      message.MessageID,
		SequenceNumber: message.SequenceNumber,
		EnqueuedAt:     message.EnqueuedAt,
		Partition:      message.Partition,
		Program:        p.program,
		ProgramVersion: p.version,
	}}
}

// handle asks the handler for the effects, under the claim if there is one. It leaves Cause zero when there are some to commit.
func (p *Pipeline) handle(ctx context.Context, r Result) Result {
	if r.held {
		return p.handleClaimed(ctx, r)
	}
	return p.callHandler(ctx, r)
}

func (p *Pipeline) callHandler(ctx context.Context, r Result) Result {
	hctx, cancel := context.WithTimeoutCause(ctx, p.handlerTimeout, ErrHandlerTimeout)
	defer cancel()
	message, reader := p.messageOf(r), &stateReader{store: p.store, partition: r.Commit.PartitionKey(), timeout: p.storeTimeout}
	message.Reader = reader
	r.HandlerRuns++
	effects, err := supervise.Call(hctx, p.pool, callGrace, func(ctx context.Context) (Effects, error) {
		return p.handler.Handle(ctx, message)
	}, nil)
	r.stuck = cmp.Or(supervise.Stuck(err), r.stuck)
	r = reader.account(r)
	if err != nil {
		return r.handlerFailed(hctx, err)
	}
	r.Reason, r.Detail, r.Err, r.RetryAfter, r.readFailed = "", "", nil, 0, false
	return p.take(hctx, r, effects)
}

// take adds the effects of the handler to the commit.
func (p *Pipeline) take(ctx context.Context, r Result, effects Effects) Result {
	messages, err := p.takeMessages(ctx, r.Message, effects)
	if err := errors.Join(checkEffects(effects), err); err != nil {
		return r.effectsInvalid(ctx, err)
	}
	if word := effects.Ignored(); word != "" {
		r.Cause, r.Reason = CauseIgnored, word
		return r
	}
	r.Cause, r.handled = 0, true
	r.Commit.Documents, r.Commit.Changes, r.Commit.Version = effects.Documents, effects.Changes, effects.Version
	r.Commit.Messages, r.Commit.Replay = messages, effects.replay
	r.Commit.Outcome, r.Commit.WithoutRecord = effects.Outcome, effects.withoutRecord && !r.held
	return r
}

// effectsInvalid is the result for documents that can never be stored. A handler whose context has ended may have returned
// whatever it had.
func (r Result) effectsInvalid(ctx context.Context, err error) Result {
	if cause := context.Cause(ctx); cause != nil {
		return r.interrupted(cause)
	}
	r.Cause, r.Reason, r.Err = CauseInvalidEffects, reason.InvalidEffects, err
	r.Detail = "The handler returned " + err.Error() + ". Fix the handler, and reprocess this message."
	return r
}

// handlerFailed says what an error of the handler means. What ended its context comes before what it made of that.
func (r Result) handlerFailed(ctx context.Context, err error) Result {
	r.Err = err
	if e, ok := asReject(err); ok {
		r.Cause, r.Reason, r.Detail = CauseRejected, wordOf(e.Reason, reason.Rejected), errorText(e.Err)
		return r
	}
	if cause := context.Cause(ctx); cause != nil {
		return r.interrupted(cause)
	}
	if isStoreError(err) {
		r.readFailed = true
		return r.failed(ctx, err)
	}
	if e, ok := asRetry(err); ok {
		r.Cause, r.Reason, r.RetryAfter = CauseRetryLater, reason.HandlerError, e.After
		r.Detail = "The handler kept asking for a later retry: " + errorText(e.Err)
		return r
	}
	if e, ok := errors.AsType[*supervise.PanicError](err); ok {
		r.Cause, r.Reason, r.Detail = CauseHandlerPanic, reason.HandlerPanic, "The handler panicked: "+e.Error()
		return r
	}
	r.Cause, r.Reason, r.Detail = CauseHandlerError, reason.HandlerError, "The handler failed: "+err.Error()
	return r
}

// interrupted is the result of a call whose context ended with cause.
func (r Result) interrupted(cause error) Result {
	r.Err = cause
	switch {
	case errors.Is(cause, ErrLockLost):
		r.Cause = CauseLockLost
	case errors.Is(cause, ErrClaimLost):
		r.Cause = CauseInProgress
	case errors.Is(cause, ErrHandlerTimeout):
		r.Cause, r.Reason = CauseHandlerTimeout, reason.Timeout
		r.Detail = "The handler was too slow: its time was up before it returned. Make it faster, or raise the handler timeout."
	default:
		r.Cause = CauseStopped
	}
	return r
}

// commit asks the store to create the documents, and judges its answer. It may be called again with the same result: the
// nonce stays, so that an earlier try is recognised.
func (p *Pipeline) commit(ctx context.Context, r Result) Result {
	r, outcome, err := p.write(ctx, r, r.Commit, p.store.Commit)
	if err != nil {
		return r.failed(ctx, err)
	}
	r.Outcome = outcome
	if r = p.judge(r); r.Commit.Claim != nil && outcome.Existing != nil && !r.Committed() {
		r = r.unclaimed() // somebody else has taken over
	}
	return r
}

// write makes one writing call of the store within its time, and counts it.
func (p *Pipeline) write(ctx context.Context, r Result, c Commit, call func(context.Context, Commit) (Outcome, error)) (Result, Outcome, error) {
	if r.running() {
		return r, Outcome{}, supervise.ErrStuck
	}
	ctx, cancel := context.WithTimeout(ctx, p.storeTimeout)
	defer cancel()
	outcome, err := supervise.Call(ctx, p.pool, callGrace, func(ctx context.Context) (Outcome, error) { return call(ctx, c) }, nil)
	r.stuck = cmp.Or(supervise.Stuck(err), r.stuck)
	r.Calls += outcome.Calls
	r.Charge += outcome.Charge
	return r, outcome, err
}

// lookFirst asks the store whether the message was processed before, so that a message that comes again does not run its
// handler again. It leaves Cause as it is when nothing is stored; the commit decides in any case.
func (p *Pipeline) lookFirst(ctx context.Context, r Result) Result {
	r.looked = true
	record, err := p.find(ctx, r.Commit.Partition, r.Commit.DocumentID)
	switch {
	case err == nil:
		r.Outcome = Outcome{Existing: &record}
		if r = p.judge(r); r.Judgement == ClaimExpired && p.claims.Lease > 0 {
			r.Cause = 0 // to be taken over
		}
		return r
	case errors.Is(err, ErrNotFound):
		return r
	}
	if failed := r.failed(ctx, err); failed.Cause != CauseUncertain {
		failed.looked = false
		return failed
	}
	return r // the commit of this message will tell more
}

// judge says what the outcome means.
func (p *Pipeline) judge(r Result) Result {
	r.Err, r.RetryAfter = nil, 0
	arrived := ""
	r.Judgement = Judge(r.Commit, r.Outcome, func(parameters fingerprint.Parameters) (fingerprint.Fingerprint, error) {
		f, err := p.admitter.Rehash(r.Message, parameters)
		arrived = f.Hash
		return f, err
	})
	r.ArrivedHash = arrived
	switch {
	case r.Judgement.Committed():
		r.Cause, r.Reason, r.Detail = CauseCommitted, "", ""
		return r
	case r.Judgement == InProgress:
		r.Cause, r.Reason, r.Detail = CauseInProgress, "", describe(r)
		return r
	case r.Judgement == ClaimExpired:
		r.Cause, r.Reason, r.Detail = CauseUncertain, reason.ClaimExpired, describe(r)
		return r
	case r.Judgement == UnknownRecord:
		r.Cause, r.Reason, r.Detail = CauseUncertain, reason.StoredRecordUnknown, describe(r)
		return r
	case r.Judgement == 0:
		r.Cause, r.Reason, r.Detail = CauseUncertain, reason.ConflictUnread, "The store neither created the documents nor showed what stands in their way."
		return r
	}
	if e := r.Outcome.Existing; r.Judgement == Conflict && e != nil {
		r.Differences = p.differences(r.Message, *e)
	}
	r.Cause, r.Reason, r.Detail = CauseConflict, reasonOf(r.Judgement), describe(r)
	return r
}

// differences returns the paths at which a message differs from a record, and nil when the record cannot tell: its document
// was changed by somebody since, or its handler stores another form than the message has, as its own hash shows.
func (p *Pipeline) differences(m Message, e Record) []fingerprint.Difference {
	parameters := e.Fingerprint.Parameters
	arrived, err := p.admitter.Content(m, parameters)
	if err != nil {
		return nil
	}
	if stored, err := fingerprint.Compute(e.Content, parameters); err != nil || stored.Hash != e.Fingerprint.Hash {
		return nil
	}
	return fingerprint.Compare(e.Content, arrived, parameters, maxDifferences)
}

// failed says what an error of the store means. This is the one place that looks inside it.
func (r Result) failed(ctx context.Context, err error) Result {
	r.Err, r.refused = err, false
	if e, ok := errors.AsType[*UnstorableError](err); ok {
		r.Cause, r.Reason, r.Detail = CauseUnstorable, cmp.Or(e.Reason, reason.NeverStorable), cmp.Or(e.Detail, "The store can never take this message: "+errorText(e.Cause)+".")
		if e.Reason == reason.InvalidEffects {
			r.Cause = CauseInvalidEffects
		}
		return r
	}
	if e, ok := errors.AsType[*StateMovedError](err); ok {
		r.Cause, r.Reason, r.handled = CauseStateMoved, reason.StateKeptChanging, false
		r.Detail = fmt.Sprintf("Document %q kept changing between the handler's read and the commit: the handler ran %d times. Nothing of this message "+
			"was stored. Let fewer messages change one document at a time, and reprocess this message.", e.Document, r.HandlerRuns)
		return r
	}
	if e, ok := errors.AsType[*UncertainError](err); ok {
		r.handled = r.handled && len(r.Commit.Changes) == 0 // what it depends on may have come meanwhile
		r.refused = e.Refused
		r.Cause, r.Reason, r.Detail = CauseUncertain, cmp.Or(e.Reason, reason.NeverStorable), cmp.Or(e.Detail, "The store could not commit this message: "+errorText(e.Cause)+".")
		return r
	}
	if e, ok := errors.AsType[*supervise.PanicError](err); ok {
		r.Cause, r.Reason, r.Detail = CauseUncertain, reason.NeverStorable, "The store panicked over this message: "+e.Error()
		return r
	}
	if cause := context.Cause(ctx); cause != nil {
		return r.interrupted(cause)
	}
	if _, ok := errors.AsType[*MisconfiguredError](err); ok {
		r.Cause = CauseMisconfigured
		return r
	}
	// An error of no class is taken for an outage: that keeps the message, and stops a worker that would otherwise
	// dead-letter one message after the other for a fault that nobody has understood yet.
	r.Cause, r.RetryAfter = CauseUnavailable, 0
	if e, ok := errors.AsType[*UnavailableError](err); ok {
		r.RetryAfter = e.RetryAfter
	}
	return r
}
