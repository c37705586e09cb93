package storable

import (
	"encoding/json"
	"fmt"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/reason"
)

// Reached reports whether a stored document has a version already, or a newer one. A document without a version has none. The
// error is for one whose version is no number: to write over it would be a guess about which is newer.
func Reached(document []byte, v worker.Version) (bool, error) {
	raw, ok := fingerprint.Extract(document, v.Path)
	if !ok {
		return false, nil
	}
	var stored *float64
	if json.Unmarshal(raw, &stored) != nil || stored == nil {
		return false, &worker.UncertainError{Reason: reason.InvalidEffects, Detail: fmt.Sprintf("Document %+q has a version at %s "+
			"that is no number, so that nobody can tell whether this message is newer. Nothing of it was stored. Write a number there or remove it, "+
			"or correct the path in the handler, and reprocess this message.", v.Document, v.Path)}
	}
	return *stored >= float64(v.Value), nil
}
