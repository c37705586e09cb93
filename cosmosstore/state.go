package cosmosstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/orderworker/orderworker/internal/storable"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/fingerprint"
)

// Read returns a document of a partition by its own id, or [worker.ErrNotFound], as [worker.Store] demands. A replica that lags
// behind may show an older version, whose ETag no change will match.
func (s *Store) Read(ctx context.Context, partition, id string) (worker.State, error) {
	ctx, t := withStats(ctx)
	state, err := s.readState(ctx, partition, id)
	state.Calls, state.Charge = t.sum()
	return state, err
}

func (s *Store) readState(ctx context.Context, partition, id string) (worker.State, error) {
	l, err := s.lookup(ctx, partition, id)
	if err != nil {
		return worker.State{}, err
	}
	f, err := l.one(ctx, id)
	switch {
	case err != nil:
		return worker.State{}, err
	case f.document == nil:
		return worker.State{}, fmt.Errorf("%w: %q in partition %q", worker.ErrNotFound, id, partition)
	}
	return worker.State{Content: f.state(), ETag: f.etag()}, nil
}

// state is a document as a handler reads it: without what the service writes, and with its numbers as they were sent.
func (d document) state() []byte {
	own := d.own()
	if content := d.content(); content != nil {
		own[stringOf(d[storable.MemberType])] = content
	}
	return d.restored(own.encode())
}

// own is a document without the members that the service and the store write anew with each change.
func (d document) own() document {
	own := document{}
	for name, value := range d {
		if !strings.HasPrefix(name, "_") && name != storable.MemberExact {
			own[name] = value
		}
	}
	return own
}

// exactTexts are the texts of numbers by the pointers at which [document.content] and [document.state] look for them: those
// of the content of a message's document begin at the content.
func (d document) exactTexts(exact []fingerprint.Exact) map[string]string {
	content := "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(stringOf(d[storable.MemberType])) + "/"
	texts := map[string]string{}
	for path, text := range exactTexts(exact) {
		if rest, inside := strings.CutPrefix(path, content); inside && d.content() != nil {
			path = "/" + rest
		}
		texts[path] = text
	}
	return texts
}
