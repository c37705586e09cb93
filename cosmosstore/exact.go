package cosmosstore

import "github.com/orderworker/orderworker/worker/fingerprint"

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
