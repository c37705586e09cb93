package cosmosstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/orderworker/orderworker/worker"
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
	content, err := withoutSystem(f.document)
	return worker.State{Content: content, ETag: stringOf(f.document["_etag"])}, err
}

// withoutSystem is a document without the members that the service writes.
func withoutSystem(d document) ([]byte, error) {
	own := map[string]json.RawMessage{}
	for name, value := range d {
		if !strings.HasPrefix(name, "_") {
			own[name] = value
		}
	}
	return json.Marshal(own)
}

// versionOf returns the version of a stored document, and false when it has none that is a number.
func versionOf(d document, path string) (float64, bool) {
	members := map[string]json.RawMessage(d)
	names := strings.Split(path[1:], "/")
	for _, name := range names[:len(names)-1] {
		var inner map[string]json.RawMessage
		if json.Unmarshal(members[name], &inner) != nil {
			return 0, false
		}
		members = inner
	}
	var n float64
	if json.Unmarshal(members[names[len(names)-1]], &n) != nil {
		return 0, false
	}
	return n, true
}
