package cosmosstore

import (
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

// planChange encodes a change and holds it against the container.
func (l layout) planChange(c worker.Commit, change worker.Change) (plannedChange, error) {
	p := plannedChange{Change: change}
	if l.byID() && change.ID != c.PartitionKey() {
		return p, storable.HandlerFault("a change of document %+q in partition %+q. In a container whose partition key is the id that is outside "+
			"of the partition", change.ID, c.PartitionKey())
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

// planContent writes the id, the partition key value and the texts of numbers into the content of a change.
func (l layout) planContent(p *plannedChange, partition string) error {
	exact, err := storable.CheckContent(worker.Document{Name: p.ID, Content: p.Content})
	if err != nil {
		return err
	}
	if p.TTL > 0 && l.defaultTTL == nil {
		return misfit(fixTTLOff, "a change of document %+q asks for a time to live, and the container ignores it", p.ID)
	}
	members := membersOf(p.Content)
	if members == nil {
		return storable.HandlerFault("content of document %+q that is not one JSON object", p.ID)
	}
	members = members.own()
	if !place(members, []string{storable.MemberID}, p.ID) {
		return storable.HandlerFault("a change of document %+q whose content has another id. Change that document, or leave the id out", p.ID)
	}
	if !place(members, l.path, partition) {
		return storable.HandlerFault("a change of document %+q whose content names another partition at %s. A message changes documents of its own "+
			"partition %+q: see the setting of the partition", p.ID, l.keyPath, partition)
	}
	if len(exact) > 0 {
		members[storable.MemberExact] = encoded(members.exactTexts(exact))
	}
	if p.TTL > 0 {
		members[storable.MemberTTL] = encoded(int64(p.TTL.Seconds()))
	}
	p.body = members.encode()
	return nil
}

// place writes a text at a path of names, and reports false when another value is there.
func place(members document, path []string, value string) bool {
	old, exists := members[path[0]]
	if len(path) == 1 {
		members[path[0]] = quote(value)
		return !exists || stringOf(old) == value
	}
	inner := membersOf(old)
	if inner == nil {
		inner = document{}
	}
	fits := (!exists || old[0] == '{') && place(inner, path[1:], value)
	members[path[0]] = inner.encode()
	return fits
}

// planPatch builds the operations and the condition of a patch.
func (l layout) planPatch(p *plannedChange) error {
	if err := storable.CheckPatch(p.Change); err != nil {
		return err
	}
	for _, o := range p.Operations {
		first, _, _ := strings.Cut(strings.TrimPrefix(o.Path, "/"), "/")
		if first == l.path[0] {
			return storable.HandlerFault("a patch of document %+q at %s, which is the partition key of the container. Leave it alone", p.ID, o.Path)
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
			n, ok := o.Value.(int64)
			if !ok {
				return storable.HandlerFault("an increment of document %+q at %s by a value that is no int64", p.ID, o.Path)
			}
			p.patch.AppendIncrement(o.Path, n)
		}
	}
	if condition := patchCondition(p.Condition, p.version); condition != "" {
		p.patch.SetCondition(condition)
	}
	p.body = encoded(p.patch)
	return nil
}

// conditionPrefix begins every filter predicate, in the case that the service takes.
const conditionPrefix = "from c where "

// patchCondition is the filter predicate of a patch: that of the handler, and that the stored version is older. Names are
// written in brackets, since some are words of the query language.
func patchCondition(handlers string, v *worker.Version) string {
	if handlers != "" {
		handlers = handlers[len(conditionPrefix):]
	}
	if v == nil {
		if handlers == "" {
			return ""
		}
		return conditionPrefix + handlers
	}
	at := "c['" + strings.ReplaceAll(v.Path[1:], "/", "']['") + "']"
	older := fmt.Sprintf("(NOT IS_DEFINED(%s) OR %s < %d)", at, at, v.Value)
	if handlers == "" {
		return conditionPrefix + older
	}
	return conditionPrefix + "(" + handlers + ") AND " + older
}
