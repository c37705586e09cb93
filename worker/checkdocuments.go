package worker

import (
	"bytes"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// CheckDocuments finds what no store could make sense of. The error says what a handler returned. [Pipeline] calls it before a
// commit, and a store may do so to be safe from other callers; what else it takes to be stored is for the store to say.
func CheckDocuments(documents []Document) error {
	if len(documents) == 0 {
		return errors.New("no document and no error. Return at least one document, Ignore the message, or Reject it")
	}
	names := make(map[string]bool, len(documents))
	for i, d := range documents {
		switch {
		case i == 0 && d.Name != "":
			return fmt.Errorf("a first document with the name %+q. The first has none", clip(d.Name, maxReason))
		case i > 0 && d.Name == "":
			return fmt.Errorf("document %d without a name. Only the first has none", i+1)
		case !utf8.ValidString(d.Name): // what is written is another name, by which the document is never found
			return fmt.Errorf("a document with the name %+q, which is not UTF-8 text", clip(d.Name, maxReason))
		case names[d.Name]:
			return fmt.Errorf("two documents with the name %+q. Names are unique within a message", clip(d.Name, maxReason))
		case d.Type == "":
			return fmt.Errorf("document %d without a type", i+1)
		case !object(d.Content):
			return fmt.Errorf("document %d (%s) with content that is not one JSON object", i+1, clip(d.Type, maxReason))
		case d.TTL < 0 || d.TTL%time.Second != 0:
			return fmt.Errorf("document %d (%s) with the time to live %v, which is not a number of whole seconds", i+1, clip(d.Type, maxReason), d.TTL)
		}
		names[d.Name] = true
	}
	return nil
}

// object reports whether a content looks like one JSON object, from its first and last characters.
func object(content []byte) bool {
	c := bytes.Trim(content, " \t\r\n")
	return len(c) >= 2 && c[0] == '{' && c[len(c)-1] == '}'
}
