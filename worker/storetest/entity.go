package storetest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/orderworker/orderworker/internal/storable"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/reason"
)

// An entity is a document that messages change. One without content does not exist.
type entity struct {
	content []byte
	etag    string
}

// place is where a document is kept: by its id alone in a partition of the message's own.
func place(partition, documentID, id string) string {
	if cmp.Or(partition, documentID) == documentID {
		return id
	}
	return partition + "\n" + id
}

// Put stores a document in a partition, as another program would, and returns its ETag.
func (m *Mem) Put(partition, id string, content []byte) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entityLocked(content)
	m.entities[partition+"\n"+id] = e
	return e.etag
}

func (m *Mem) entityLocked(content []byte) entity {
	return entity{content: bytes.Clone(content), etag: m.etagLocked()}
}

// Read implements [worker.Store].
func (m *Mem) Read(ctx context.Context, partition, id string) (worker.State, error) {
	if err := ctx.Err(); err != nil {
		return worker.State{}, &worker.UnavailableError{Cause: err}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	state := worker.State{Calls: 1, Charge: 1}
	e := m.entities[partition+"\n"+id]
	if e.content == nil {
		return state, worker.ErrNotFound
	}
	state.Content, state.ETag = bytes.Clone(e.content), e.etag
	return state, nil
}

// changeLocked returns what the changes of a commit make of the entities. It changes nothing itself.
func (m *Mem) changeLocked(c worker.Commit) (changed map[string]entity, stale bool, err error) {
	changed = map[string]entity{}
	for _, change := range c.Changes {
		at := c.PartitionKey() + "\n" + change.ID
		if v := c.Version; v != nil && v.Document == change.ID {
			if stale, err := storable.Reached(m.entities[at].content, *v); stale || err != nil {
				return nil, stale, err
			}
		}
		if changed[at], err = m.changedLocked(change, m.entities[at]); err != nil {
			return nil, false, err
		}
	}
	return changed, false, nil
}

func (m *Mem) changedLocked(c worker.Change, old entity) (entity, error) {
	switch {
	case c.Condition != "":
		return entity{}, storable.Never(reason.NeverStorable, "storetest.Mem evaluates no conditions. Test them on the embedded environment, "+
			"see package workertest.")
	case c.ETag != "" && c.ETag != old.etag:
		return entity{}, &worker.StateMovedError{Document: c.ID, Cause: errors.New("another ETag")}
	case c.Kind == worker.ChangeDelete:
		return entity{}, nil
	case c.Kind != worker.ChangePatch:
		return m.entityLocked(c.Content), nil
	case old.content == nil:
		return entity{}, storable.TargetMissing(c.ID)
	}
	content, err := patched(old.content, c.Operations)
	if err != nil {
		return entity{}, storable.HandlerFault("a patch of %q that cannot be made: %v", c.ID, err)
	}
	return m.entityLocked(content), nil
}

// patched applies the operations of a patch to a document. Numbers that they leave alone keep their text.
func patched(content []byte, operations []worker.PatchOperation) ([]byte, error) {
	document, err := decoded(content)
	if err != nil {
		return nil, err
	}
	for _, o := range operations {
		text, err := json.Marshal(o.Value)
		if err != nil {
			return nil, err
		}
		value, err := decoded(text)
		if err != nil {
			return nil, err
		}
		document, err = patchAt(document, strings.Split(strings.TrimPrefix(o.Path, "/"), "/"), o.Kind, value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Path, err)
		}
	}
	return json.Marshal(document)
}

func decoded(text []byte) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&value)
	return value, err
}

var errNoMember = errors.New("there is no such member")

func patchAt(in any, path []string, kind worker.PatchKind, value any) (any, error) {
	name, rest := path[0], path[1:]
	switch at := in.(type) {
	case map[string]any:
		old, exists := at[name]
		next, err := patchValue(old, exists, rest, kind, value)
		if at[name] = next; len(rest) == 0 && kind == worker.PatchRemove {
			delete(at, name)
		}
		return at, err
	case []any:
		if name == "-" && len(rest) == 0 && kind != worker.PatchRemove {
			return append(at, value), nil
		}
		i, err := strconv.Atoi(name)
		switch {
		case err != nil || i < 0 || i >= len(at):
			return at, errNoMember
		case len(rest) == 0 && kind == worker.PatchRemove:
			return slices.Delete(at, i, i+1), nil
		case len(rest) == 0 && kind == worker.PatchAdd:
			return slices.Insert(at, i, value), nil
		}
		at[i], err = patchValue(at[i], true, rest, kind, value)
		return at, err
	}
	return in, errNoMember
}

// patchValue is what a member becomes, or what lies below it at the rest of a path.
func patchValue(old any, exists bool, rest []string, kind worker.PatchKind, value any) (any, error) {
	switch {
	case len(rest) > 0:
		return patchAt(old, rest, kind, value)
	case !exists && (kind == worker.PatchRemove || kind == worker.PatchReplace):
		return nil, errNoMember
	case !exists || kind != worker.PatchIncrement:
		return value, nil
	}
	was, ok := old.(json.Number)
	by, isNumber := value.(json.Number)
	if !ok || !isNumber {
		return nil, errors.New("it is no number")
	}
	x, _ := was.Float64() // as the service keeps them
	y, _ := by.Float64()
	return x + y, nil
}
