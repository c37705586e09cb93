package cosmosstore

import (
	"cmp"
	"context"
	"slices"
)

// Check looks at account, container and options as they are now and returns what is wrong or doubtful, faults first. It
// reads the container and one document that does not exist, and sends one create whose body is no JSON, which shows whether
// creates are allowed and stores nothing. No finding means that all is well.
func (s *Store) Check(ctx context.Context) []Finding {
	sess, err := s.session(ctx)
	if err != nil {
		return Findings(err)
	}
	var found []Finding
	if p, err := s.readContainer(ctx, sess); err != nil {
		found = Findings(err)
	} else {
		found = append(containerFindings(p, s.opts), s.opts.inboxRecordWarnings()...)
	}
	if unfit := sess.unfit.Load(); unfit != nil {
		found = append(found, Findings(unfit)...)
	}
	found = append(found, Findings(s.probe(ctx, sess))...)
	if err := s.checkRegions(); err != nil {
		found = append(found, Findings(err)...)
	} else {
		found = append(found, Findings(s.probeWrite(ctx, sess, opCreate))...)
	}
	slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(a.Severity, b.Severity) })
	return found
}
