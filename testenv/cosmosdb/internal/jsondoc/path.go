package jsondoc

import "strings"

// SplitPath reads a path such as /address/city, or /"odd name"/x, into its names.
func SplitPath(path string) []string {
	var names []string
	for rest := strings.TrimPrefix(path, "/"); rest != ""; {
		var name string
		if quoted, ok := strings.CutPrefix(rest, `"`); ok {
			name, rest, _ = strings.Cut(quoted, `"`)
			rest = strings.TrimPrefix(rest, "/")
		} else {
			name, rest, _ = strings.Cut(rest, "/")
		}
		names = append(names, name)
	}
	return names
}

// At returns the value at a path of member names and reports whether it is there.
func At(v any, names []string) (any, bool) {
	for _, n := range names {
		o, ok := v.(*Object)
		if !ok {
			return nil, false
		}
		if v, ok = o.Get(n); !ok {
			return nil, false
		}
	}
	return v, true
}
