package cosmosstore

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/orderworker/orderworker/internal/storable"
	"github.com/orderworker/orderworker/worker"
)

// layout is what the store needs to know of its container to write into it.
type layout struct {
	// keyPath is the partition key path as the service writes it, and path the names of its levels: ["id"] when the id is the
	// partition key.
	keyPath string
	path    []string
	// defaultTTL is the default time to live of the container in seconds, and nil when time to live is off.
	defaultTTL *int32
	// inboxRecords and inboxRecordTTL are those of the options.
	inboxRecords   bool
	inboxRecordTTL time.Duration
	// typesKnown tells that the options name the types of all documents.
	typesKnown bool
	// uniqueKeys are the unique keys of the container beside the id, each as its paths.
	uniqueKeys []string
}

// byID reports whether the id is the partition key, so that every document is alone in its logical partition.
func (l layout) byID() bool { return len(l.path) == 1 && l.path[0] == storable.MemberID }

// layoutOf reads the layout of a container. The error names every reason why the container cannot be used.
func layoutOf(p azcosmos.ContainerProperties, o Options) (layout, error) {
	l := layout{defaultTTL: p.DefaultTimeToLive, inboxRecords: o.InboxRecords, typesKnown: len(o.Types) > 0,
		inboxRecordTTL: o.InboxRecordTTL}
	var errs []error
	for _, f := range containerFindings(p, o) {
		if f.Severity == Fault {
			errs = append(errs, misfit(f.Fix, "%s", f.Text))
		}
	}
	switch len(errs) {
	case 0:
	case 1:
		return l, errs[0]
	default:
		return l, &worker.MisconfiguredError{Fix: "Each of these must be put right.", Cause: errors.Join(errs...)}
	}
	l.keyPath = p.PartitionKeyDefinition.Paths[0]
	l.path, _ = splitPath(l.keyPath)
	if u := p.UniqueKeyPolicy; u != nil {
		for _, k := range u.UniqueKeys {
			l.uniqueKeys = append(l.uniqueKeys, strings.Join(k.Paths, ", "))
		}
	}
	return l, nil
}

// levelPattern is one level of a partition key path: a name, in quotes where it holds a slash.
var levelPattern = regexp.MustCompile(`^/(?:"([^"]+)"|([^/"][^/]*))`)

// splitPath splits a partition key path such as /pk, /tenant/id or /"odd name"/id into the names of its levels.
func splitPath(path string) ([]string, error) {
	var names []string
	for rest := path; rest != "" || names == nil; {
		level := levelPattern.FindStringSubmatch(rest)
		if level == nil {
			return nil, fmt.Errorf("the partition key path %q is not made of names that follow slashes", path)
		}
		names = append(names, level[1]+level[2])
		rest = rest[len(level[0]):]
	}
	return names, nil
}
