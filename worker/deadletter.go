package worker

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/orderworker/orderworker/worker/fingerprint"
)

// The names of the properties that the worker sets on a message when it dead-letters it, for programs to read.
const (
	PropertyReason     = "orderworker-reason"
	PropertyDocumentID = "orderworker-document-id"
	// PropertyPartition is the partition in which the worker looked for the record. It is left out where that is the document id.
	PropertyPartition   = "orderworker-partition"
	PropertyStoredHash  = "orderworker-stored-hash"
	PropertyArrivedHash = "orderworker-arrived-hash"
	// PropertyPaths lists the JSON pointers at which a conflict differs, one a line. One that holds a control character, such
	// as a line feed, is written as a string of JSON, in quotes; every other begins with a slash.
	PropertyPaths = "orderworker-paths"
	// PropertyProgram and PropertyVersion name the program that dead-lettered the message.
	PropertyProgram = "orderworker-program"
	PropertyVersion = "orderworker-version"
)

// The broker takes 4096 characters of reason and of description, and 64 KiB of headers and properties in all. The bounds
// are in bytes and leave room: a sender of big properties shall not keep the worker from dead-lettering.
const (
	maxReason      = 256
	maxDescription = 4000
	maxProperty    = 1024
)

// A deadLetterNote is what stands at a dead letter.
type deadLetterNote struct {
	reason, description string
	properties          map[string]any
}

// noteOf writes the note for a result. Every text in it is clean and bounded.
func noteOf(r Result, program, version string) deadLetterNote {
	n := deadLetterNote{
		reason:      clip(r.Reason, maxReason),
		description: clip(r.Detail, maxDescription),
		properties:  map[string]any{},
	}
	set := func(name, value string) {
		if value != "" {
			n.properties[name] = clip(value, maxProperty)
		}
	}
	set(PropertyReason, r.Reason)
	set(PropertyProgram, program)
	set(PropertyVersion, version)
	if !r.Admitted {
		return n
	}
	set(PropertyDocumentID, r.Commit.DocumentID)
	if r.Commit.PartitionKey() != r.Commit.DocumentID {
		set(PropertyPartition, r.Commit.PartitionKey())
	}
	if e := r.Outcome.Existing; e != nil && e.Fingerprint != nil && r.Cause == CauseConflict {
		set(PropertyStoredHash, e.Fingerprint.Hash)
		set(PropertyArrivedHash, r.ArrivedHash)
		set(PropertyPaths, strings.Join(paths(r.Differences), "\n"))
	}
	return n
}

// bare is the note of last resort, for a broker that refuses the full one.
func (n deadLetterNote) bare() deadLetterNote { return deadLetterNote{reason: n.reason} }

// describe says for people what a judgement against a message means.
func describe(r Result) string {
	key := r.Commit.Key.String()
	e := r.Outcome.Existing
	switch r.Judgement {
	case Conflict:
		if e.Claim != nil {
			return fmt.Sprintf("Other content has claimed the key %s, and its attempt may have got half way. Nothing is stored. Resolve that claim first. %s", key, hashes(e.Fingerprint.Hash, r.ArrivedHash))
		}
		text := fmt.Sprintf("Other content was stored under the key %s", key)
		if !e.CommittedAt.IsZero() {
			text += " at " + e.CommittedAt.UTC().Format(time.RFC3339)
		}
		text += ". " + hashes(e.Fingerprint.Hash, r.ArrivedHash)
		if p := places(r.Differences); len(p) > 0 {
			text += " They differ at " + strings.Join(p, ", ") + "."
		} else {
			text += " Where they differ cannot be told: what is stored was changed since, or is kept in another form."
		}
		return text + " What is stored is unchanged. Keep it and discard this message, or send the correction under a new key."
	case HashMissing:
		return fmt.Sprintf("A document is stored under the key %s (id %s) that carries no request hash this version can compare: %s", key, r.Commit.DocumentID, incomparable(*e))
	case InProgress:
		return fmt.Sprintf("Another attempt has claimed the key %s since %s and is at work.", key, e.Claim.Since.UTC().Format(time.RFC3339))
	case ClaimExpired:
		return fmt.Sprintf("Attempt %d at the key %s (%s) was claimed at %s and has not ended: what it asked other systems to do may have been done. "+
			"Find out there, and resolve the claim.", e.Claim.Number, key, strings.TrimSpace(e.Program+" "+e.ProgramVersion), e.Claim.Since.UTC().Format(time.RFC3339))
	case UnknownRecord:
		return fmt.Sprintf("The record under the key %s (id %s) was written by another version of this program (%s), which this version cannot read. Process this message with that version.", key, r.Commit.DocumentID, e.Unknown)
	case OtherKey:
		return fmt.Sprintf("The document under id %s belongs to the key %s, and this message to the key %s. Look for a program that writes documents by itself.", r.Commit.DocumentID, e.Key, key)
	case Blocked:
		return fmt.Sprintf("The order with the key %s does not exist, but its document %q does already. Nothing was stored. Find out who wrote it, remove it, and reprocess this message.", key, r.Outcome.Blocking)
	case Incomplete:
		return fmt.Sprintf("The order with the key %s is stored and equal, but some of its documents are missing: %s. Restore them by hand: a retry cannot.", key, strings.Join(e.MissingParts, ", "))
	}
	return ""
}

// hashes names the two hashes of a conflict.
func hashes(stored, arrived string) string {
	if arrived == "" {
		return fmt.Sprintf("Stored hash %s; this message has none of the values that were compared when it was made (settings only and ignore of then).", stored)
	}
	return fmt.Sprintf("Stored hash %s, arrived hash %s.", stored, arrived)
}

// incomparable says why a record cannot be compared with a message, and what to do.
func incomparable(r Record) string {
	switch {
	case r.Fingerprint != nil && r.Key != "" && r.Fingerprint.Parameters.Version <= fingerprint.Version1:
		return fmt.Sprintf("its parameters, of version %d with %q and form %q, is none that any version ever made, so somebody changed it since. Compare it with this message by hand.",
			r.Fingerprint.Parameters.Version, r.Fingerprint.Parameters.Algorithm, r.Fingerprint.Parameters.Form)
	case r.Fingerprint != nil && r.Key != "":
		return fmt.Sprintf("it was hashed by parameters of version %d with %q, which this version does not know. A newer version wrote it; use that version to judge this message.",
			r.Fingerprint.Parameters.Version, r.Fingerprint.Parameters.Algorithm)
	case r.Key == "" && r.Attempt == "" && r.Fingerprint == nil:
		return "it does not look like one that this worker wrote. Find out who did; if it is this order, discard this message, and if not, free the id or use another container and reprocess."
	case r.Key == "":
		return "it does not say its key, so somebody changed it since. Compare it with this message by hand."
	}
	return "its hash is missing or damaged, so somebody changed it since. Compare it with this message by hand."
}

// paths lists the pointers for programs to read.
func paths(differences []fingerprint.Difference) []string {
	p := make([]string, 0, len(differences))
	for _, d := range differences {
		if d.Path == "" {
			return []string{"the whole body"}
		}
		p = append(p, onOneLine(d.Path))
	}
	return p
}

// places lists the pointers for people, with the side that alone has a value there. Without it a member that was left out
// reads like one that was changed. What is not visible ASCII is escaped, since other characters may look alike.
func places(differences []fingerprint.Difference) []string {
	p := paths(differences)
	for i := range p {
		if path := differences[i].Path; strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r > '~' }) {
			p[i] = strconv.QuoteToASCII(path)
		}
		switch differences[i].Kind {
		case fingerprint.Added:
			p[i] += " (only in this message)"
		case fingerprint.Removed:
			p[i] += " (only in what is stored)"
		}
	}
	return p
}

// onOneLine returns a path as it is, or as a string of JSON when a control character in it would break the line.
func onOneLine(path string) string {
	if !strings.ContainsFunc(path, unicode.IsControl) {
		return path
	}
	text, _ := json.Marshal(path) // A string has no error.
	return string(text)
}

// clip makes a text safe for a property: valid UTF-8 without control characters other than line feeds, at most limit
// bytes, cut at the boundary of a character and with an ellipsis where something is missing.
func clip(s string, limit int) string {
	const ellipsis = "…"
	// What lies far beyond the limit needs no cleaning; a character has at most 4 bytes, and cleaning at most triples it.
	if len(s) > 4*limit+utf8.UTFMax {
		s = s[:4*limit+utf8.UTFMax]
	}
	s = strings.Map(func(c rune) rune {
		if c != '\n' && unicode.IsControl(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
	if len(s) <= limit {
		return s
	}
	end := limit - len(ellipsis)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis
}
