package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/shop"
	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/worker"
)

// TestTheChecksFindAWorkerThatBreaksItsPromise plants workers that are wrong in the ways in which real ones are, and demands
// that the checks at the end of every test find each of them.
func TestTheChecksFindAWorkerThatBreaksItsPromise(t *testing.T) {
	tests := []struct {
		name string
		wrap func(worker.Store) worker.Store
		want string
	}{
		{name: "it completes without writing", want: "learnt nothing of document",
			wrap: replace(func(context.Context, worker.Store, worker.Commit) (worker.Outcome, error) {
				return worker.Outcome{Created: true}, nil
			})},
		{name: "it takes every refused create for a duplicate", want: "although something else is stored",
			wrap: replace(func(ctx context.Context, s worker.Store, c worker.Commit) (worker.Outcome, error) {
				o, err := s.Commit(ctx, c)
				if o.Existing != nil {
					o.Existing.Attempt = c.Attempt
				}
				return o, err
			})},
		{name: "it takes every repeat for a conflict", want: "although it is just what is stored",
			wrap: replace(func(ctx context.Context, s worker.Store, c worker.Commit) (worker.Outcome, error) {
				o, err := s.Commit(ctx, c)
				if o.Existing != nil && o.Existing.Fingerprint != nil {
					o.Existing.Fingerprint.Hash = "0000"
				}
				return o, err
			})},
		{name: "it forgets the lines", want: "is stored with 2 lines and documents for 0",
			wrap: replace(func(ctx context.Context, s worker.Store, c worker.Commit) (worker.Outcome, error) {
				c.Documents = c.Documents[:1]
				return s.Commit(ctx, c)
			})},
		{name: "it writes lines one by one under keys of their own", want: "nobody sent",
			wrap: replace(func(ctx context.Context, s worker.Store, c worker.Commit) (worker.Outcome, error) {
				for _, d := range c.Documents[1:] {
					line := c
					line.Partition = "" // that of the line's own id
					line.DocumentID, line.Documents = c.DocumentID+"-"+d.Name, []worker.Document{{Type: d.Type, Content: d.Content}}
					if _, err := s.Commit(ctx, line); err != nil {
						return worker.Outcome{}, err
					}
				}
				c.Documents = c.Documents[:1]
				return s.Commit(ctx, c)
			})},
		{name: "it puts a message aside because the store is down", want: "dead-lettered for NeverStorable",
			wrap: replace(func(context.Context, worker.Store, worker.Commit) (worker.Outcome, error) {
				return worker.Outcome{}, &worker.UnstorableError{Reason: "NeverStorable", Detail: "the store is down"}
			})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, testenv.Options{}, func(w *env) {
				w.evidence = t.TempDir()
				w.startWith(worker.HandlerFunc(shop.Order), tt.wrap)
				w.send(order("1", `{"amount":40}`), order("2", `{"lines":[{"sku":"a"},{"sku":"b"}]}`))
				w.waitDrained(time.Minute)
				w.send(order("1", `{"amount":40}`), order("1", `{"amount":41}`))
				w.waitDrained(time.Minute)
				require.ErrorContains(t, w.check(), tt.want)
				w.skipCheck = true
			})
		})
	}
}

// replace puts something else in the place of a store's Commit.
func replace(commit func(context.Context, worker.Store, worker.Commit) (worker.Outcome, error)) func(worker.Store) worker.Store {
	return func(s worker.Store) worker.Store { return &liar{Store: s, commit: commit} }
}

type liar struct {
	worker.Store
	commit func(context.Context, worker.Store, worker.Commit) (worker.Outcome, error)
}

func (l *liar) Commit(ctx context.Context, c worker.Commit) (worker.Outcome, error) {
	return l.commit(ctx, l.Store, c)
}
