package cosmosstore

import (
	"encoding/json"
	"strings"
)

// Members of the request member that say how to read it.
const (
	memberVersion = "version"
	memberState   = "state"
	// stateCommitted is the state of every record that has none.
	stateCommitted = "committed"
	// stateStale is the state of a record whose message found an equal or newer version stored.
	stateStale = "stale"
)

// maxQuoted bounds what is quoted of a stored value, in bytes.
const maxQuoted = 40

// unknownFormat says why this version of the product cannot read a request member, or "" when it can: see "How the stored
// format evolves" in the package documentation. Nil is no request member, and has no format.
func unknownFormat(request map[string]json.RawMessage) string {
	if request == nil {
		return ""
	}
	version, ok := request[memberVersion]
	if !ok {
		return "no version"
	}
	var number float64 // a program that rewrites documents may turn 1 into 1.0
	if json.Unmarshal(version, &number) != nil || number != requestVersion {
		return memberVersion + quoted(version)
	}
	if state, ok := request[memberState]; ok && stringOf(state) != stateCommitted && stringOf(state) != stateStale {
		return memberState + quoted(state)
	}
	return ""
}

// quoted shows a stored value after a name: " 2", " null", or a plain word in quotes. Anything else is not repeated.
func quoted(raw json.RawMessage) string {
	var word string
	text := string(raw)
	if json.Unmarshal(raw, &word) == nil && text != "null" {
		text = word
	}
	switch {
	case !plainWord(text):
		return " of an unknown kind"
	case word != "":
		return ` "` + text + `"`
	}
	return " " + text
}

// plainWord reports whether a text is short and made of letters, digits, dots and dashes.
func plainWord(s string) bool {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"
	return s != "" && len(s) <= maxQuoted && strings.Trim(s, plain) == ""
}
