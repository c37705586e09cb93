package cosmosstore

import (
	"slices"
	"sync"
)

// maxRefused is how many messages with different keys the store may refuse in a row, with no write accepted in between,
// before the refusals are called the store's own fault.
const maxRefused = 3

// standing is what the answers to its writes tell of the store. Reads say nothing of it: a read-only key, a proxy that
// passes GET alone and a region in a fail-over answer reads as ever. Safe for concurrent use.
type standing struct {
	mu sync.Mutex
	// guarded by mu
	doubted operation // the last write that got no answer which only a working store gives, opCreate or opBatch; or ""
	refused []string  // the ids of the last messages that were refused, each once, with none accepted since
}

// accepted records a write that the store carried out. It proves that the store takes writes.
func (s *standing) accepted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubted, s.refused = "", nil
}

// answered records that a write was answered as only a working store does: by a document that was found, or by the
// refusal of a write without sense. It does not say that other writes are accepted.
func (s *standing) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubted = ""
}

// doubt records any other answer.
func (s *standing) doubt(op operation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubted = wholeWrite(op)
}

// inDoubt returns the write that should be tried before the store is called ready, or "".
func (s *standing) inDoubt() operation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doubted
}

// refuse records a message whose write was refused for a cause that may be its own, and reports whether so many
// others were refused before it that it is not.
func (s *standing) refuse(id string) (many bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refused) < maxRefused && !slices.Contains(s.refused, id) {
		s.refused = append(s.refused, id)
	}
	return len(s.refused) >= maxRefused
}

// wholeWrite is the request of which an operation is a part.
func wholeWrite(op operation) operation {
	if op == opBatchCreate || op == opBatchChange {
		return opBatch
	}
	return op
}
