package cosmosstore

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/orderworker/orderworker/worker"
)

// memberClaim is the member of the inbox record that says how long it is in progress.
const memberClaim = "claim"

// leaseMargin is how long after the end of a lease a claim counts as over. _ts is in whole seconds, Date too, and
// the machines of the service that write them have clocks of their own.
const leaseMargin = 5 * time.Second

// claimMember is the claim of a record in progress. It has no time: the service says when it was written, in _ts.
type claimMember struct {
	Number       int   `json:"number"`
	LeaseSeconds int64 `json:"leaseSeconds"`
	Released     bool  `json:"released,omitempty"`
}

// Claim stores the record of a message as in progress, as [worker.Store] demands: one create, or one replace.
func (s *Store) Claim(ctx context.Context, c worker.Commit) (worker.Outcome, error) {
	ctx, t := withStats(ctx)
	o, err := s.claim(ctx, t, c)
	o.Calls, o.Charge = t.sum()
	return o, err
}

func (s *Store) claim(ctx context.Context, t *requestStats, c worker.Commit) (worker.Outcome, error) {
	sess, err := s.writable(ctx)
	if err != nil {
		return worker.Outcome{}, err
	}
	if err := s.checkRegions(); err != nil {
		return worker.Outcome{}, err
	}
	k := &committer{store: s, sess: sess, stats: t, documentID: c.DocumentID, commit: c, compose: layout.claimPlan, claims: true}
	return k.run(ctx)
}

// claimPlan is the one write that makes, renews or releases a claim. Only one that was released may be forgotten.
func (l layout) claimPlan(c worker.Commit, now time.Time) (plan, error) {
	c.Documents, c.Changes, c.Messages, c.Version, c.Outcome, c.WithoutRecord = nil, nil, nil, nil, nil, false
	if err := l.checkCommit(c); err != nil {
		return plan{}, err
	}
	if !c.Claim.Released {
		l.inboxRecordTTL = 0
	}
	p := l.recordPlan(c, now, stateClaimed)
	return p, p.checkBounds()
}

// addClaim adds the inbox record to a plan that claims a message, or completes its claim: a replace of just the version that is known,
// or a create.
func (l layout) addClaim(p *plan, c worker.Commit, e envelope) {
	if e.request.State == stateClaimed {
		e.request.CommittedAt = ""
		e.request.Claim = &claimMember{c.Claim.Number, int64(c.Claim.Lease / time.Second), c.Claim.Released}
	}
	if c.Claim.ETag == "" {
		l.add(p, "", e)
		return
	}
	e.partition = p.partition
	p.records, p.claimed = 0, true
	p.changes = []plannedChange{{Change: worker.Change{Kind: worker.ChangeReplace, ID: e.id, ETag: c.Claim.ETag}, body: e.encode(l.path)}}
}

// claim reads the claim of a record in progress.
func (d document) claim(request map[string]json.RawMessage) *worker.ClaimRecord {
	m := valueOf[claimMember](request[memberClaim])
	return &worker.ClaimRecord{Number: m.Number, Lease: time.Duration(m.LeaseSeconds) * time.Second, Released: m.Released, ETag: d.etag(), Since: d.modifiedAt()}
}

// stored reads the record, and whether its claim is over: by the clock of the service alone, which says when the document was written and
// when it was read. Without a time in the reply only a lease of zero is over.
func (f found) stored() stored {
	r := f.record()
	if c := r.Claim; c != nil {
		r.CommittedAt = time.Time{}
		now, err := http.ParseTime(f.date)
		c.Over = c.Lease <= 0 || err == nil && now.Sub(c.Since) > c.Lease+leaseMargin
	}
	return r
}

// dateOf is the time of the service in a reply, or "".
func dateOf(r *http.Response) string {
	if r == nil {
		return ""
	}
	return r.Header.Get("Date")
}

// done is the outcome of a write that had its effect.
func (k *committer) done() worker.Outcome {
	if !k.claims {
		return worker.Outcome{Created: true}
	}
	claim := *k.commit.Claim
	claim.ETag = k.last.etag
	return worker.Outcome{Claim: &claim}
}

// resolveClaim acts on a record that was found. Of the attempt's own claim nothing remains, since it is what the commit completes, and of one that
// was released neither. Retry tells that the plan replaces the version that was found now.
func (k *committer) resolveClaim(r *worker.Record) (o worker.Outcome, retry bool, err error) {
	if r == nil || r.Claim == nil {
		return worker.Outcome{Existing: r}, false, nil
	}
	c, own, fresh := k.commit.Claim, r.Attempt == k.commit.Attempt, k.commit.Claim == nil || k.commit.Claim.ETag == ""
	switch {
	case own && k.claims && r.Claim.Released == c.Released && r.Claim.Lease == c.Lease:
		return worker.Outcome{Claim: r.Claim}, false, nil
	case own && c != nil && r.Claim.ETag == c.ETag:
		return worker.Outcome{}, false, nil
	case own && c != nil && (k.claims || !r.Claim.Released), fresh && r.Claim.Released:
		return worker.Outcome{}, true, k.replanClaim(r.Claim, own)
	}
	return worker.Outcome{Existing: r}, false, nil
}

// replanClaim lets the plan replace a version of the record, or create it where there is none.
func (k *committer) replanClaim(stored *worker.ClaimRecord, own bool) error {
	var claim worker.ClaimRecord
	if k.commit.Claim != nil {
		claim = *k.commit.Claim
	}
	claim.ETag = stored.ETag
	if claim.Number = stored.Number; !own {
		claim.Number++
	}
	k.commit.Claim = &claim
	return k.makePlan()
}

// handleLostClaim acts on a write that was refused since the record is no longer as it was claimed. End tells that the commit is over.
func (k *committer) handleLostClaim(ctx context.Context) (o worker.Outcome, end bool, err error) {
	r, err := k.lookup().record(ctx, []string{inboxRecordID(k.documentID)})
	switch {
	case err != nil:
		return worker.Outcome{}, true, err
	case r == nil: // somebody has deleted it
		err = k.replanClaim(&worker.ClaimRecord{Number: k.commit.Claim.Number}, true)
		return worker.Outcome{}, err != nil, err
	}
	o, _, err = k.resolveClaim(r)
	return o, ends(o) || err != nil, err
}
