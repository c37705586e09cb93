package cosmosstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/orderworker/orderworker/worker"
)

// Severity says how bad a finding is.
type Severity int

// The severities.
const (
	// Fault: the store refuses to work like this.
	Fault Severity = iota + 1
	// Warning: the store works, and something may go wrong or cost more than it must.
	Warning
)

// String returns the severity as a word.
func (s Severity) String() string {
	switch s {
	case Fault:
		return "fault"
	case Warning:
		return "warning"
	}
	return "unknown"
}

// A Finding is something that [Store.Check] has to say about the account, the container or the options.
type Finding struct {
	Severity Severity
	// Text says what was found, and Fix what to do about it. Both are whole sentences or close to it.
	Text string
	Fix  string
}

// String returns the finding in one line.
func (f Finding) String() string { return fmt.Sprintf("%v: %s. %s", f.Severity, f.Text, f.Fix) }

// incompatibleError marks a MisconfiguredError that only a change of account, container or options can cure, while other
// misconfigurations, such as missing rights, may cure themselves when what was set up takes effect.
type incompatibleError struct{ text string }

func (e *incompatibleError) Error() string { return "cosmosstore: " + e.text }

// incurable reports whether an error is for good as long as nobody changes account, container or options.
func incurable(err error) bool {
	if _, ok := errors.AsType[*incompatibleError](err); ok {
		return true
	}
	e, ok := errors.AsType[*answerError](err)
	return ok && e.answer.failure == severalRegions
}

// Check looks at account, container and options as they are now and returns what is wrong or doubtful, faults first. It
// reads the container and one document that does not exist, and sends one create whose body is no JSON, which shows whether
// creates are allowed and stores nothing. No finding means that all is well.
func (s *Store) Check(ctx context.Context) []Finding {
	sess, err := s.session(ctx)
	if err != nil {
		return errorFindings(err, nil)
	}
	var found []Finding
	p, err := s.readContainer(ctx, sess)
	if err != nil {
		found = errorFindings(err, found)
	} else {
		ttl, _ := ttlSeconds(s.opts.InboxRecordTTL) // validated when the store was opened
		found = append(found, containerFaults(p, s.opts, ttl)...)
		found = append(found, containerWarnings(p, s.opts.Types)...)
		found = append(found, retentionWarnings(s.opts)...)
	}
	if err := s.probe(ctx, sess); err != nil {
		found = errorFindings(err, found)
	}
	if err := s.checkRegions(); err != nil {
		found = errorFindings(err, found)
	} else if err := s.probeWrite(ctx, sess, opCreate); err != nil {
		found = errorFindings(err, found)
	}
	return faultsFirst(found)
}

func faultsFirst(all []Finding) []Finding {
	var faults, rest []Finding
	for _, f := range all {
		if f.Severity == Fault {
			faults = append(faults, f)
		} else {
			rest = append(rest, f)
		}
	}
	return append(faults, rest...)
}

// Findings returns an error of [Open] or of a [Store] as faults, one for each thing that must be put right.
func Findings(err error) []Finding {
	if err == nil {
		return nil
	}
	return errorFindings(err, nil)
}

// errorFindings adds an error as faults; several misconfigurations become one fault each.
func errorFindings(err error, found []Finding) []Finding {
	if many, ok := errors.AsType[*worker.MisconfiguredError](err); ok {
		if joined, ok := many.Cause.(interface{ Unwrap() []error }); ok {
			for _, e := range joined.Unwrap() {
				found = errorFindings(e, found)
			}
			return found
		}
		return append(found, Finding{Severity: Fault, Text: plainSentence(many.Cause), Fix: many.Fix})
	}
	if u, ok := errors.AsType[*worker.UnavailableError](err); ok {
		return append(found, Finding{Severity: Fault, Text: plainSentence(u.Cause),
			Fix: "Check that endpoint, network and account are up, and try again."})
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			found = errorFindings(e, found)
		}
		return found
	}
	return append(found, Finding{Severity: Fault, Text: plainSentence(err), Fix: "Correct the setting that it names."})
}

// plainSentence is an error's text without the name of the package.
func plainSentence(err error) string { return strings.TrimPrefix(err.Error(), "cosmosstore: ") }

// containerFaults returns why a container cannot be used. It is a pure function.
func containerFaults(p azcosmos.ContainerProperties, o Options, markerTTL int64) []Finding {
	var found []Finding
	markers := o.InboxRecords
	fault := func(fix, format string, args ...any) {
		found = append(found, Finding{Severity: Fault, Text: fmt.Sprintf(format, args...), Fix: fix})
	}
	const recreate = "Create a container with the partition key path /pk and version 2; a partition key cannot be changed."
	switch paths := p.PartitionKeyDefinition.Paths; {
	case len(paths) == 0:
		fault(recreate, "the container has no partition key")
	case len(paths) > 1:
		fault(recreate, "the container has a hierarchical partition key of %d levels", len(paths))
	default:
		names, err := splitPath(paths[0])
		switch {
		case err != nil:
			fault(recreate, "%v", err)
		case reserved(names[0]) && (len(names) > 1 || names[0] != memberID):
			fault(recreate, "the partition key path %s lies inside a member that belongs to the store", paths[0])
		case slices.Contains(o.Types, names[0]):
			fault(recreate, "the partition key path %s begins with the member that holds the content of documents of type %q, where the store "+
				"writes nothing of its own: none of them could be stored", paths[0], names[0])
		case markers && len(names) == 1 && names[0] == memberID:
			fault(recreate, "markers need the marker beside its documents, and in a container with the partition key path /id every "+
				"document is alone")
		}
		if v := p.PartitionKeyDefinition.Version; v != 2 {
			fault(recreate, "the partition key of the container has version %d, which takes values of 101 bytes only", max(v, 1))
		}
	}
	ttl := p.DefaultTimeToLive
	switch {
	case ttl != nil && *ttl > 0:
		fault("Set the default time to live to -1 or switch it off, or use another container.",
			"the container removes every document after %v: an order would vanish, and its message would be new again",
			time.Duration(*ttl)*time.Second)
	case markers && markerTTL > 0 && ttl == nil:
		fault("Set the default time to live to -1 (on, without a default).",
			"the container ignores the time to live of markers, since its own is off")
	}
	return found
}

// containerWarnings returns what a container could do better. It is a pure function.
func containerWarnings(p azcosmos.ContainerProperties, types []string) []Finding {
	var found []Finding
	if paths := p.PartitionKeyDefinition.Paths; len(paths) == 1 {
		if path, err := splitPath(paths[0]); err == nil {
			found = append(found, pathWarnings(path, types)...)
		}
	}
	if u := p.UniqueKeyPolicy; u != nil && len(u.UniqueKeys) > 0 {
		found = append(found, Finding{Severity: Warning,
			Text: "the container has unique keys: two documents of one message with the same values refuse each other with a conflict " +
				"that looks like a duplicate",
			Fix: "Use a container without unique keys; the id is unique already."})
	}
	if ip := p.IndexingPolicy; ip != nil && indexesAll(*ip) {
		found = append(found, Finding{Severity: Warning,
			Text: "the container indexes every property, which makes each create dearer by about 0.2 request units per value",
			Fix:  "Exclude the path /* unless you query the documents; the store reads by id alone."})
	}
	return found
}

// pathWarnings returns what a partition key path keeps from being stored, beside what is a fault since the types of documents
// are known. It is a pure function.
func pathWarnings(path, types []string) []Finding {
	switch {
	case len(path) == 1 && path[0] == memberID:
		return []Finding{{Severity: Warning,
			Text: "the partition key path of the container is /id: messages with several documents, such as an order with lines, will be refused",
			Fix:  "Use a container whose partition key path is /pk, unless every message becomes one document."}}
	case len(path) > 1 && len(types) == 0:
		return []Finding{{Severity: Warning,
			Text: fmt.Sprintf("the partition key path of the container is /%s: messages with a document of type %q will be refused",
				strings.Join(path, "/"), path[0]),
			Fix: "Use a container whose partition key path is /pk, unless no document has that type."}}
	}
	return nil
}

func indexesAll(ip azcosmos.IndexingPolicy) bool {
	for _, e := range ip.ExcludedPaths {
		if e.Path == "/*" {
			return false
		}
	}
	for _, i := range ip.IncludedPaths {
		if i.Path == "/*" {
			return true
		}
	}
	return false
}

// retentionWarnings holds the memory of keys against the time in which a message can come back. It is a pure function.
func retentionWarnings(o Options) []Finding {
	if !o.Lifetime.outlives(o.InboxRecordTTL) {
		return nil
	}
	return []Finding{{Severity: Warning,
		Text: fmt.Sprintf("markers are kept for %v, and %v", o.InboxRecordTTL, o.Lifetime),
		Fix:  "Keep markers longer than that, or for ever."}}
}

// guardWarnings does the same for a document whose creation decides and which the handler lets expire. It is a pure function.
func guardWarnings(o Options, guard worker.Document) []Finding {
	if o.InboxRecords || !o.Lifetime.outlives(guard.TTL) {
		return nil
	}
	return []Finding{{Severity: Warning,
		Text: fmt.Sprintf("documents of type %q, whose creation decides, are kept for %v, and %v", guard.Type, guard.TTL, o.Lifetime),
		Fix:  "Keep them longer than that, or for ever, or use markers."}}
}

// outlives reports whether a message can come back after what was kept for ttl is gone. Zero is for ever.
func (l Lifetime) outlives(ttl time.Duration) bool {
	return ttl > 0 && l != Lifetime{} && ttl <= l.Total()
}

// String says how long a message can come back.
func (l Lifetime) String() string {
	return fmt.Sprintf("a message can come back for %v (locks %v x %d, time to live %v, review %v)",
		l.Total(), l.Lock, l.Deliveries, l.TimeToLive, l.Review)
}

// forgetful tells of what forgets keys too early. One that comes with a message is told of once.
func (s *Store) forgetful(ctx context.Context, found []Finding) {
	for _, f := range found {
		s.log.LogAttrs(ctx, slog.LevelWarn, "keys are forgotten too early", slog.String(keyCause, f.Text+". "+f.Fix))
	}
}
