package cosmosdb

import (
	"errors"
	"fmt"

	"github.com/orderworker/orderworker/testenv/cosmosdb/internal/jsondoc"
)

// partitionKey is the value that names a logical partition, one component for each path. A component is nil, a bool, a
// float64, a string, or undefined.
type partitionKey []any

// undefined is the component of a document that has nothing at the partition key path.
type undefined struct{}

// maxKey is the limit of a partition key value in bytes.
const maxKey = 2048

// hashedBytes is how much of a string version 1 of the hash looks at. Longer values are accepted, by the upstream tests as
// well; those that begin alike share a logical partition, and with it the unique keys.
const hashedBytes = 101

// parsePartitionKey reads the header x-ms-documentdb-partitionkey. ok is false when there is no header. The client's
// spelling of control characters and of characters above U+FFFF is not JSON, and is refused as by the service.
func parsePartitionKey(header string) (key partitionKey, ok bool, err error) {
	if header == "" {
		return nil, false, nil
	}
	v, err := jsondoc.Parse([]byte(header))
	if err != nil {
		return nil, false, errors.New("the partition key header is not a JSON array")
	}
	list, isList := v.([]any)
	if !isList || len(list) == 0 {
		return nil, false, errors.New("the partition key header is not a JSON array with components")
	}
	for _, c := range list {
		switch c := c.(type) {
		case *jsondoc.Object:
			if c.Len() > 0 {
				return nil, false, errors.New("a partition key component is an object")
			}
			key = append(key, undefined{})
		case []any:
			return nil, false, errors.New("a partition key component is an array")
		default:
			key = append(key, c)
		}
	}
	return key, true, nil
}

// keyOf reads the partition key of a document. An object or array counts as nothing.
func (d definition) keyOf(doc *jsondoc.Object) partitionKey {
	key := make(partitionKey, len(d.keyPaths))
	for i, path := range d.keyPaths {
		v, ok := jsondoc.At(doc, path)
		switch v.(type) {
		case *jsondoc.Object, []any:
			ok = false
		}
		key[i] = v
		if !ok {
			key[i] = undefined{}
		}
	}
	return key
}

// checkSize holds the key against the limit.
func (k partitionKey) checkSize() error {
	n := 0
	for _, c := range k {
		if s, ok := c.(string); ok {
			n += len(s)
		}
	}
	if n > maxKey {
		return fmt.Errorf("the partition key has %d bytes, at most %d are allowed", n, maxKey)
	}
	return nil
}

// logicalPartition is what the hash of the container sees of a key.
func (d definition) logicalPartition(k partitionKey) string {
	if d.keyVersion != 1 {
		return k.String()
	}
	seen := make(partitionKey, len(k))
	for i, c := range k {
		if s, ok := c.(string); ok {
			c = s[:min(len(s), hashedBytes)]
		}
		seen[i] = c
	}
	return seen.String()
}

// String returns the key in canonical form, a JSON array in which {} stands for undefined. It identifies the partition.
func (k partitionKey) String() string { return jsondoc.String(k.value()) }

func (k partitionKey) value() any {
	list := make([]any, len(k))
	for i, c := range k {
		list[i] = c
		if c == (undefined{}) {
			list[i] = jsondoc.NewObject()
		}
	}
	return list
}

// display returns the key for the history: the JSON of the value itself where there is only one component.
func (k partitionKey) display() string {
	if len(k) == 1 {
		return jsondoc.String(k.value().([]any)[0])
	}
	return k.String()
}

// hasPrefix reports whether the first components of k are those of prefix.
func (k partitionKey) hasPrefix(prefix partitionKey) bool {
	if len(prefix) > len(k) {
		return false
	}
	for i, c := range prefix {
		if k[i] != c {
			return false
		}
	}
	return true
}
