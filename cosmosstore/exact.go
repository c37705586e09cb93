package cosmosstore

import (
	"errors"

	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/reason"
)

// exactNumbers returns the numbers of a content that the store would round, as original text by JSON pointer.
func exactNumbers(content []byte) (map[string]string, error) {
	found, err := fingerprint.Inexact(content)
	if p, ok := errors.AsType[*fingerprint.Problem](err); ok && p.Kind == fingerprint.TooLarge {
		return nil, never(reason.TooLarge, "The content of a document cannot be stored: %s. Send such numbers as strings, or with at most "+
			"15 digits.", p.Cause)
	}
	if err != nil {
		return nil, never(reason.NeverStorable, "The numbers of a document cannot be read: %v. Correct the sender, or the handler.", err)
	}
	if len(found) == 0 {
		return nil, nil
	}
	texts := make(map[string]string, len(found))
	for _, e := range found {
		texts[e.Path] = e.Text
	}
	return texts, nil
}

// restoreNumbers puts the original texts back. A content that was changed into something else stays as it is.
func restoreNumbers(content []byte, texts map[string]string) []byte {
	exact := make([]fingerprint.Exact, 0, len(texts))
	for path, text := range texts {
		exact = append(exact, fingerprint.Exact{Path: path, Text: text})
	}
	restored, err := fingerprint.Restore(content, exact)
	if err != nil {
		return content
	}
	return restored
}
