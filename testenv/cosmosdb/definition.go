package cosmosdb

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/orderworker/orderworker/testenv/cosmosdb/internal/jsondoc"
)

// definition is what a container's properties mean.
type definition struct {
	keyPaths   [][]string
	keyVersion int
	// ttl is the defaultTtl in seconds; nil switches expiry off, whatever the documents say.
	ttl        *int64
	uniqueKeys [][][]string
	// indexed tells that the properties of documents are indexed, which is what writes are charged for.
	indexed bool
}

// definitionDefaults are the members of a container that the service adds where a client leaves them out.
var definitionDefaults = []struct{ name, text string }{
	{"indexingPolicy", `{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]}`},
	{"conflictResolutionPolicy", `{"mode":"LastWriterWins","conflictResolutionPath":"/_ts","conflictResolutionProcedure":""}`},
	{"geospatialConfig", `{"type":"Geography"}`},
}

// fillDefinition adds what the service adds to the properties of a container: policies, and the kind of the partition key.
func fillDefinition(props *jsondoc.Object) {
	for _, d := range definitionDefaults {
		if v, ok := props.Get(d.name); !ok || v == nil {
			v, _ := jsondoc.Parse([]byte(d.text)) // it is valid
			props.Set(d.name, v)
		}
	}
	v, _ := props.Get("partitionKey")
	key, ok := v.(*jsondoc.Object)
	if !ok {
		return
	}
	if kind, _ := key.Text("kind"); kind == "" {
		key.Set("kind", "Hash")
	}
}

// maxKeyPaths is how many levels a hierarchical partition key may have.
const maxKeyPaths = 3

// readDefinition checks the properties of a container.
func readDefinition(props *jsondoc.Object) (definition, error) {
	var d definition
	var err error
	if d.keyPaths, d.keyVersion, err = readKeyDefinition(props); err != nil {
		return d, err
	}
	var mode string
	mode, d.indexed = readIndexing(props)
	if v, ok := props.Get("defaultTtl"); ok && v != nil {
		ttl, err := readTTL(v)
		if err != nil {
			return d, fmt.Errorf("defaultTtl: %w", err)
		}
		if strings.EqualFold(mode, "none") {
			return d, errors.New("defaultTtl needs indexing: the indexingMode must not be none")
		}
		d.ttl = &ttl
	}
	d.uniqueKeys = readUniqueKeys(props)
	return d, nil
}

func readKeyDefinition(props *jsondoc.Object) (paths [][]string, version int, err error) {
	list, _ := jsondoc.At(props, []string{"partitionKey", "paths"})
	texts, ok := list.([]any)
	if !ok || len(texts) == 0 || len(texts) > maxKeyPaths {
		return nil, 0, fmt.Errorf("the partition key needs 1 to %d paths", maxKeyPaths)
	}
	for _, t := range texts {
		s, _ := t.(string)
		if len(s) < 2 || s[0] != '/' {
			return nil, 0, fmt.Errorf("the partition key path %s does not begin with a slash and a name", jsondoc.String(t))
		}
		paths = append(paths, jsondoc.SplitPath(s))
	}
	version = 1
	if v, ok := jsondoc.At(props, []string{"partitionKey", "version"}); ok {
		if f, ok := v.(float64); !ok || (f != 1 && f != 2) {
			return nil, 0, errors.New("the partition key version must be 1 or 2")
		}
		version = int(v.(float64))
	}
	return paths, version, nil
}

func readIndexing(props *jsondoc.Object) (mode string, indexed bool) {
	m, _ := jsondoc.At(props, []string{"indexingPolicy", "indexingMode"})
	mode, _ = m.(string)
	excluded, _ := jsondoc.At(props, []string{"indexingPolicy", "excludedPaths"})
	paths, _ := excluded.([]any)
	for _, p := range paths {
		if v, _ := jsondoc.At(p, []string{"path"}); v == "/*" {
			return mode, false
		}
	}
	return mode, !strings.EqualFold(mode, "none")
}

func readUniqueKeys(props *jsondoc.Object) [][][]string {
	var keys [][][]string
	list, _ := jsondoc.At(props, []string{"uniqueKeyPolicy", "uniqueKeys"})
	entries, _ := list.([]any)
	for _, e := range entries {
		v, _ := jsondoc.At(e, []string{"paths"})
		texts, _ := v.([]any)
		var paths [][]string
		for _, t := range texts {
			if s, ok := t.(string); ok {
				paths = append(paths, jsondoc.SplitPath(s))
			}
		}
		if len(paths) > 0 {
			keys = append(keys, paths)
		}
	}
	return keys
}

// readTTL reads a time to live in seconds: -1 for never, or 1 to 2147483647.
func readTTL(v any) (int64, error) {
	f, ok := v.(float64)
	if !ok || f != math.Trunc(f) || f > math.MaxInt32 || (f < 1 && f != -1) {
		return 0, fmt.Errorf("a time to live is -1 or 1 to 2147483647 seconds, not %s", jsondoc.String(v))
	}
	return int64(f), nil
}
