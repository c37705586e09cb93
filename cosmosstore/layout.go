package cosmosstore

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/orderworker/orderworker/internal/storable"
	"github.com/orderworker/orderworker/worker"
)

// layout is what the store needs to know of its container to write into it.
type layout struct {
	// keyPath is the partition key path as the service writes it, and path the same split into names, one member name per level. It is ["id"] when the id is the partition key.
	keyPath string
	path    []string
	// defaultTTL is the default time to live of the container in seconds, and nil when time to live is off.
	defaultTTL *int32
	// inbox records and inboxRecordTTL (seconds, zero for ever) are those of the options.
	inboxRecords   bool
	inboxRecordTTL int64
	// typesKnown tells that the options name the types of all documents.
	typesKnown bool
	// uniqueKeys are the unique keys of the container beside the id, each as its paths.
	uniqueKeys []string
}

// equal reports whether two layouts take the same documents.
func (l layout) equal(other layout) bool { return reflect.DeepEqual(l, other) }

// byID reports whether the id is the partition key, so that every document is alone in its logical partition.
func (l layout) byID() bool { return len(l.path) == 1 && l.path[0] == storable.MemberID }

// layoutOf reads the layout of a container. The error names every reason why the container cannot be used.
func layoutOf(p azcosmos.ContainerProperties, o Options) (layout, error) {
	l := layout{defaultTTL: p.DefaultTimeToLive, inboxRecords: o.InboxRecords, typesKnown: len(o.Types) > 0,
		inboxRecordTTL: int64(o.InboxRecordTTL / time.Second)}
	var errs []error
	for _, f := range containerFindings(p, o) {
		if f.Severity == Fault {
			errs = append(errs, &worker.MisconfiguredError{Fix: f.Fix, Cause: &incompatibleError{f.Text}})
		}
	}
	if len(errs) > 0 {
		return l, misconfiguredAll(errs)
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

// misconfiguredAll joins several misconfigurations into one error of the same type.
func misconfiguredAll(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return &worker.MisconfiguredError{Fix: "Each of these must be put right.", Cause: errors.Join(errs...)}
}

// splitPath splits a partition key path such as /pk, /tenant/id or /"odd name"/id into the names of its levels.
func splitPath(path string) ([]string, error) {
	rest, ok := strings.CutPrefix(path, "/")
	if !ok || rest == "" {
		return nil, fmt.Errorf("the partition key path %q does not begin with a slash and a name", path)
	}
	var names []string
	for {
		name, tail, found, err := cutName(rest)
		if err != nil || name == "" {
			return nil, fmt.Errorf("the partition key path %q has an empty or open name", path)
		}
		names = append(names, name)
		if !found {
			return names, nil
		}
		rest = tail
	}
}

// cutName takes the first name off a path, quoted or not. Found tells that a slash, and so another name, follows.
func cutName(s string) (name, tail string, found bool, err error) {
	if !strings.HasPrefix(s, `"`) {
		name, tail, found = strings.Cut(s, "/")
		return name, tail, found, nil
	}
	name, tail, found = strings.Cut(s[1:], `"`)
	switch {
	case !found:
		return "", "", false, errors.New("a quote is open")
	case tail == "":
		return name, "", false, nil
	case tail[0] != '/':
		return "", "", false, errors.New("something follows a quote")
	}
	return name, tail[1:], true, nil
}
