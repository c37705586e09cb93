package cosmosstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/orderworker/orderworker/internal/storable"
	"github.com/orderworker/orderworker/worker"
)

// incompatibleError marks a MisconfiguredError that only a change of account, container or options can fix, while other
// misconfigurations, such as missing rights, may end by themselves when what was set up takes effect.
type incompatibleError struct{ text string }

func (e *incompatibleError) Error() string { return "cosmosstore: " + e.text }

// misfit is the error for what the container cannot hold as it is.
func misfit(fix, format string, args ...any) error {
	return &worker.MisconfiguredError{Fix: fix, Cause: &incompatibleError{fmt.Sprintf(format, args...)}}
}

// incurable reports whether an error is for good as long as nobody changes account, container or options.
func incurable(err error) bool {
	if _, ok := errors.AsType[*incompatibleError](err); ok {
		return true
	}
	e, ok := errors.AsType[*answerError](err)
	return ok && e.answer.failure == severalRegions
}

const (
	fixRecreate = "Create a container with the partition key path /pk and version 2; a partition key cannot be changed."
	fixTTLOff   = "Set the default time to live to -1 (on, without a default)."
)

// containerFindings returns why a container cannot be used, and what it could do better. It is a pure function.
func containerFindings(p azcosmos.ContainerProperties, o Options) []Finding {
	found := append(partitionKeyFindings(p.PartitionKeyDefinition, o), ttlFaults(p.DefaultTimeToLive, o)...)
	if u := p.UniqueKeyPolicy; u != nil && len(u.UniqueKeys) > 0 {
		found = append(found, Finding{Severity: Warning,
			Text: "the container has unique keys: two documents of one message with the same values refuse each other with a conflict " +
				"that looks like a duplicate",
			Fix: "Use a container without unique keys; the id is unique already."})
	}
	if ip := p.IndexingPolicy; ip != nil && indexesAll(*ip) {
		found = append(found, Finding{Severity: Warning,
			Text: "the container indexes every property, which makes each create cost about 0.2 request units more per value",
			Fix:  "Exclude the path /* unless you query the documents; the store reads by id alone."})
	}
	return found
}

func unfit(format string, args ...any) Finding {
	return Finding{Severity: Fault, Text: fmt.Sprintf(format, args...), Fix: fixRecreate}
}

func partitionKeyFindings(d azcosmos.PartitionKeyDefinition, o Options) []Finding {
	var found []Finding
	switch len(d.Paths) {
	case 0:
		found = append(found, unfit("the container has no partition key"))
	case 1:
		if f, ok := pathFinding(d.Paths[0], o); ok {
			found = append(found, f)
		}
	default:
		found = append(found, unfit("the container has a hierarchical partition key of %d levels", len(d.Paths)))
	}
	if d.Version != 2 {
		found = append(found, unfit("the partition key of the container has version %d, which takes values of 101 bytes only", max(d.Version, 1)))
	}
	return found
}

// pathFinding says what a partition key path keeps from being stored.
func pathFinding(path string, o Options) (Finding, bool) {
	names, err := splitPath(path)
	if err != nil {
		return unfit("%v", err), true
	}
	byID := len(names) == 1 && names[0] == storable.MemberID
	switch {
	case storable.Reserved(names[0]) && !byID:
		return unfit("the partition key path %s lies inside a member that belongs to the store", path), true
	case slices.Contains(o.Types, names[0]):
		return typeInPath(names, names[0]), true
	case byID && o.InboxRecords:
		return unfit("an inbox record must be beside the documents of its message, and in a container with the partition key path /id every " +
			"document is alone"), true
	case byID && len(o.Types) > 1:
		return unfit("messages become documents of the types %s in one transaction, and in a container with the partition key path /id every "+
			"document is alone", strings.Join(o.Types, ", ")), true
	case byID:
		return Finding{Severity: Warning,
			Text: "the partition key path of the container is /id: the first message with several documents, such as an order with lines, stops the store",
			Fix:  "Use a container whose partition key path is /pk, unless every message becomes one document."}, true
	case len(o.Types) == 0:
		return Finding{Severity: Warning,
			Text: fmt.Sprintf("the partition key path of the container is %s: the first message with a document of type %q stops the store", path, names[0]),
			Fix:  "Name the types of the documents in the options, or use a container whose partition key path is /pk."}, len(names) > 1
	}
	return Finding{}, false
}

// typeInPath is the finding that documents of a type cannot be stored.
func typeInPath(path []string, name string) Finding {
	return Finding{Severity: Fault, Fix: "Use another type in the handler, or a container with another partition key path, such as /pk.",
		Text: fmt.Sprintf("the partition key path /%s begins with the member that holds the content of documents of type %q, where the store "+
			"writes nothing of its own: none of them can be stored", strings.Join(path, "/"), name)}
}

func ttlFaults(ttl *int32, o Options) []Finding {
	switch {
	case ttl != nil && *ttl > 0:
		return []Finding{{Severity: Fault, Fix: "Set the default time to live to -1 or switch it off, or use another container.",
			Text: fmt.Sprintf("the container removes every document after %v: an order would vanish, and its message would be new again",
				time.Duration(*ttl)*time.Second)}}
	case o.InboxRecordTTL > 0 && ttl == nil:
		return []Finding{{Severity: Fault, Fix: fixTTLOff,
			Text: "the container ignores the time to live of inbox records, since its own is off"}}
	}
	return nil
}

func indexesAll(ip azcosmos.IndexingPolicy) bool {
	excluded := slices.ContainsFunc(ip.ExcludedPaths, func(e azcosmos.ExcludedPath) bool { return e.Path == "/*" })
	return !excluded && slices.ContainsFunc(ip.IncludedPaths, func(i azcosmos.IncludedPath) bool { return i.Path == "/*" })
}
