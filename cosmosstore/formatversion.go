package cosmosstore

import (
	"encoding/json"
	"regexp"
)

// Members of the request member that say how to read it.
const (
	memberVersion = "version"
	memberState   = "state"
	// stateCommitted is the state of every record that has none.
	stateCommitted = "committed"
	// stateStale is the state of a record whose message found an equal or newer version stored.
	stateStale = "stale"
	// stateClaimed is the state of a record in progress: nothing is committed.
	stateClaimed = "claimed"
)

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
	if valueOf[float64](version) != requestVersion { // a program that rewrites documents may turn 1 into 1.0
		return memberVersion + quoted(version)
	}
	state, ok := request[memberState]
	switch stringOf(state) {
	case stateCommitted, stateStale:
		return ""
	case stateClaimed:
		if valueOf[claimMember](request[memberClaim]).Number < 1 {
			return memberState + quoted(state) + " without a claim"
		}
		return ""
	}
	if ok {
		return memberState + quoted(state)
	}
	return ""
}

// plainWord is a short text of letters, digits, dots and dashes. Nothing else that is stored is repeated.
var plainWord = regexp.MustCompile(`^[\w.-]{1,40}$`)

// quoted shows a stored value after a name: " 2", " null", or a plain word in quotes.
func quoted(raw json.RawMessage) string {
	switch text, word := string(raw), stringOf(raw); {
	case plainWord.MatchString(word):
		return ` "` + word + `"`
	case plainWord.MatchString(text):
		return " " + text
	}
	return " of an unknown kind"
}
