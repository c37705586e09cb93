package storetest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/orderworker/orderworker/internal/storable"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/reason"
)

// An entity is a document that messages change.
type entity struct {
	content []byte
	etag    string
	deleted bool
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
	m.entities[partition+"\n"+id] = m.entityLocked(content)
	return m.entities[partition+"\n"+id].etag
}

func (m *Mem) entityLocked(content []byte) entity {
	m.etags++
	return entity{content: bytes.Clone(content), etag: strconv.Quote(strconv.Itoa(m.etags))}
}

// Read implements [worker.Store].
func (m *Mem) Read(ctx context.Context, partition, id string) (worker.State, error) {
	if err := ctx.Err(); err != nil {
		return worker.State{}, &worker.UnavailableError{Cause: err}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.entities[partition+"\n"+id]
	if !ok || e.deleted {
		return worker.State{Calls: 1, Charge: 1}, worker.ErrNotFound
	}
	return worker.State{Content: bytes.Clone(e.content), ETag: e.etag, Calls: 1, Charge: 1}, nil
}

// changeLocked returns what the changes of a commit make of the entities. It changes nothing itself.
func (m *Mem) changeLocked(c worker.Commit) (changed map[string]entity, stale bool, err error) {
	changed = map[string]entity{}
	for _, change := range c.Changes {
		at := c.PartitionKey() + "\n" + change.ID
		old, exists := m.entities[at]
		exists = exists && !old.deleted
		if v := c.Version; v != nil && v.Document == change.ID && exists {
			if stored, ok := versionAt(old.content, v.Path); ok && stored >= float64(v.Value) {
				return nil, true, nil
			}
		}
		next, err := m.changedLocked(change, old, exists)
		if err != nil {
			return nil, false, err
		}
		changed[at] = next
	}
	return changed, false, nil
}

func (m *Mem) changedLocked(c worker.Change, old entity, exists bool) (entity, error) {
	switch {
	case c.Condition != "":
		return entity{}, &worker.UnstorableError{Reason: reason.NeverStorable, Detail: "storetest.Mem evaluates no conditions. Test them on the embedded environment, see package workertest."}
	case c.ETag != "" && (!exists || c.ETag != old.etag):
		return entity{}, &worker.StateMovedError{Document: c.ID, Cause: errors.New("another ETag")}
	case c.Kind == worker.ChangePatch && !exists:
		return entity{}, storable.TargetMissing(c.ID)
	case c.Kind == worker.ChangeDelete:
		return entity{deleted: true}, nil
	case c.Kind == worker.ChangePatch:
		content, err := patched(old.content, c.Operations)
		if err != nil {
			return entity{}, storable.HandlerFault("a patch of %q that cannot be made: %v", c.ID, err)
		}
		return m.entityLocked(content), nil
	}
	return m.entityLocked(c.Content), nil
}

func versionAt(content []byte, path string) (float64, bool) {
	var value any
	if json.Unmarshal(content, &value) != nil {
		return 0, false
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		object, ok := value.(map[string]any)
		if !ok {
			return 0, false
		}
		value = object[name]
	}
	n, ok := value.(float64)
	return n, ok
}

// patched applies the operations of a patch to a document.
func patched(content []byte, operations []worker.PatchOperation) ([]byte, error) {
	var document any
	if err := json.Unmarshal(content, &document); err != nil {
		return nil, err
	}
	for _, o := range operations {
		var value any
		if o.Value != nil {
			text, err := json.Marshal(o.Value)
			if err != nil {
				return nil, err
			}
			if err := json.Unmarshal(text, &value); err != nil {
				return nil, err
			}
		}
		var err error
		if document, err = patchAt(document, strings.Split(strings.TrimPrefix(o.Path, "/"), "/"), o.Kind, value); err != nil {
			return nil, fmt.Errorf("%s: %w", o.Path, err)
		}
	}
	return json.Marshal(document)
}

func patchAt(in any, path []string, kind worker.PatchKind, value any) (any, error) {
	switch at := in.(type) {
	case map[string]any:
		old, exists := at[path[0]]
		if len(path) > 1 {
			next, err := patchAt(old, path[1:], kind, value)
			at[path[0]] = next
			return at, err
		}
		next, keep, err := patchedValue(old, exists, kind, value)
		if at[path[0]] = next; !keep {
			delete(at, path[0])
		}
		return at, err
	case []any:
		return patchElement(at, path, kind, value)
	}
	return in, errors.New("there is no such member")
}

func patchElement(at []any, path []string, kind worker.PatchKind, value any) (any, error) {
	if path[0] == "-" && len(path) == 1 && kind != worker.PatchRemove {
		return append(at, value), nil
	}
	i, err := strconv.Atoi(path[0])
	if err != nil || i < 0 || i >= len(at) {
		return at, errors.New("there is no such element")
	}
	switch {
	case len(path) > 1:
		at[i], err = patchAt(at[i], path[1:], kind, value)
	case kind == worker.PatchRemove:
		at = append(at[:i], at[i+1:]...)
	case kind == worker.PatchAdd:
		at = append(at[:i], append([]any{value}, at[i:]...)...)
	default:
		at[i], _, err = patchedValue(at[i], true, kind, value)
	}
	return at, err
}

func patchedValue(old any, exists bool, kind worker.PatchKind, value any) (next any, keep bool, err error) {
	switch kind {
	case worker.PatchRemove, worker.PatchReplace:
		if !exists {
			return nil, false, errors.New("there is no such member")
		}
		return value, kind == worker.PatchReplace, nil
	case worker.PatchIncrement:
		was, number := old.(float64)
		if exists && !number {
			return old, true, errors.New("it is no number")
		}
		by, _ := value.(float64)
		return was + by, true, nil
	}
	return value, true, nil
}
