package cosmosstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/orderworker/orderworker/internal/storable"
	"github.com/orderworker/orderworker/worker"
)

// changeOverhead is what azcosmos writes around one change of a batch at most, id and ETag included.
const changeOverhead = 512

// plannedChange is a change as it is sent.
type plannedChange struct {
	worker.Change
	// body is the whole document of an upsert, a replace or a create, and what a patch takes otherwise.
	body  []byte
	patch azcosmos.PatchOperations
	// version is the version that the stored document must not have reached, or nil.
	version *worker.Version
	// create tells that the document does not exist, so that an upsert with a version creates it.
	create bool
}

// addTo adds the change to a batch.
func (c plannedChange) addTo(b *azcosmos.TransactionalBatch) {
	var o azcosmos.TransactionalBatchItemOptions
	if c.ETag != "" {
		tag := azcore.ETag(c.ETag)
		o.IfMatchETag = &tag
	}
	switch {
	case c.create:
		b.CreateItem(c.body, nil)
	case c.Kind == worker.ChangeUpsert && c.ETag == "":
		b.UpsertItem(c.body, nil)
	case c.Kind == worker.ChangeUpsert, c.Kind == worker.ChangeReplace:
		b.ReplaceItem(c.ID, c.body, &o)
	case c.Kind == worker.ChangePatch:
		b.PatchItem(c.ID, c.patch, &o)
	case c.Kind == worker.ChangeDelete:
		b.DeleteItem(c.ID, &o)
	}
}

// checkRecord refuses effects that need an inbox record of their own where the store keeps none, and whatever needs a
// logical partition with several documents where there is none.
func (l layout) checkRecord(c worker.Commit) error {
	if len(c.Documents) == 0 && len(c.Changes) == 0 && !l.inboxRecords {
		return storable.HandlerFault("no document and no change")
	}
	more := len(c.Changes) > 0 || len(c.Outcome) > 0 || c.Version != nil || c.PartitionKey() != c.DocumentID
	if more && !c.WithoutRecord && !l.inboxRecords {
		return &worker.MisconfiguredError{
			Cause: errors.New("cosmosstore: the handler changes documents, or the messages share partitions, and the store keeps no inbox records of their own"),
			Fix:   "Set Options.InboxRecords (WORKER_INBOX_RECORD=true).",
		}
	}
	return nil
}

// planChange encodes a change and holds it against the container.
func (l layout) planChange(c worker.Commit, change worker.Change) (plannedChange, error) {
	p := plannedChange{Change: change}
	if problem := storable.IDProblem(change.ID); problem != "" {
		return p, storable.HandlerFault("a change of document %q, whose id %s", change.ID, problem)
	}
	if l.byID() && change.ID != c.PartitionKey() {
		return p, storable.HandlerFault("a change of document %q in partition %q. In a container whose partition key is the id that is outside of the partition", change.ID, c.PartitionKey())
	}
	if v := c.Version; v != nil && v.Document == change.ID {
		p.version = v
	}
	switch change.Kind {
	case worker.ChangeUpsert, worker.ChangeReplace:
		return p, l.planContent(&p, c.PartitionKey())
	case worker.ChangePatch:
		return p, l.planPatch(&p)
	}
	return p, nil
}

// planContent writes the id and the partition key value into the content of a change.
func (l layout) planContent(p *plannedChange, partition string) error {
	if _, err := storable.CheckContent(worker.Document{Name: p.ID, Content: p.Content}); err != nil {
		return err
	}
	if p.TTL > 0 && l.defaultTTL == nil {
		return &worker.MisconfiguredError{Fix: fixTTLOff,
			Cause: &incompatibleError{fmt.Sprintf("a change of document %q asks for a time to live, and the container ignores it", p.ID)}}
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(p.Content, &members); err != nil {
		return storable.HandlerFault("content of document %q that is not one JSON object", p.ID)
	}
	for name := range members {
		if strings.HasPrefix(name, "_") {
			delete(members, name) // what the service wrote into the document that was read
		}
	}
	if err := place(members, []string{storable.MemberID}, p.ID); err != nil {
		return storable.HandlerFault("a change of document %q whose content has another id. Change that document, or leave the id out", p.ID)
	}
	if err := place(members, l.path, partition); err != nil {
		return storable.HandlerFault("a change of document %q whose content names another partition at %s. A message changes documents of its own "+
			"partition %q: see the setting of the partition", p.ID, l.keyPath, partition)
	}
	if p.TTL > 0 {
		members[storable.MemberTTL], _ = json.Marshal(int64(p.TTL.Seconds())) // a number has no error
	}
	var err error
	p.body, err = json.Marshal(members)
	return err
}

// place writes a text at a path of names, unless another value is there.
func place(members map[string]json.RawMessage, path []string, value string) error {
	old, exists := members[path[0]]
	if len(path) == 1 {
		if exists && stringOf(old) != value {
			return errOtherValue
		}
		members[path[0]], _ = json.Marshal(value) // a string has no error
		return nil
	}
	inner := map[string]json.RawMessage{}
	if exists && json.Unmarshal(old, &inner) != nil {
		return errOtherValue
	}
	if err := place(inner, path[1:], value); err != nil {
		return err
	}
	var err error
	members[path[0]], err = json.Marshal(inner)
	return err
}

var errOtherValue = errors.New("there is another value")

// planPatch builds the operations and the condition of a patch.
func (l layout) planPatch(p *plannedChange) error {
	for _, o := range p.Operations {
		first, _, _ := strings.Cut(strings.TrimPrefix(o.Path, "/"), "/")
		if first == l.path[0] {
			return storable.HandlerFault("a patch of document %q at %s, which is the partition key of the container. Leave it alone", p.ID, o.Path)
		}
		switch o.Kind {
		case worker.PatchSet:
			p.patch.AppendSet(o.Path, o.Value)
		case worker.PatchAdd:
			p.patch.AppendAdd(o.Path, o.Value)
		case worker.PatchReplace:
			p.patch.AppendReplace(o.Path, o.Value)
		case worker.PatchRemove:
			p.patch.AppendRemove(o.Path)
		case worker.PatchIncrement:
			if n, ok := o.Value.(int64); ok {
				p.patch.AppendIncrement(o.Path, n)
			} else {
				return storable.HandlerFault("an increment of document %q at %s by a value that is no int64", p.ID, o.Path)
			}
		}
	}
	if condition := patchCondition(p.Condition, p.version); condition != "" {
		p.patch.SetCondition(condition)
	}
	var err error
	if p.body, err = json.Marshal(p.patch); err != nil {
		return storable.HandlerFault("a patch of document %q that cannot be encoded: %v", p.ID, err)
	}
	return nil
}

// patchCondition is the filter predicate of a patch: that of the handler, and that the stored version is older. Names are
// written in brackets, since some are words of the query language.
func patchCondition(handlers string, v *worker.Version) string {
	if v == nil && handlers == "" {
		return ""
	}
	if v == nil {
		return "from c where " + handlers[len("from c where "):] // in the case that the service takes
	}
	at := "c"
	for name := range strings.SplitSeq(v.Path[1:], "/") {
		at += "['" + name + "']"
	}
	older := fmt.Sprintf("(NOT IS_DEFINED(%s) OR %s < %d)", at, at, v.Value)
	if handlers == "" {
		return "from c where " + older
	}
	return "from c where (" + handlers[len("from c where "):] + ") AND " + older
}
