package cosmosstore

import "sync"

// writeHealth is what the answers to writes say about the store. Reads say nothing of it: a read-only key, a proxy that passes
// GET alone and a region in a fail-over answer reads as ever. It is safe for concurrent use.
type writeHealth struct {
	mu sync.Mutex
	// doubted is a write that must be answered as only a working store does before the store is called ready, opCreate or
	// opBatch; "" when the last write was. A fresh store is in doubt: nothing was written yet.
	doubted operation
}

// answered records that a write was answered as only a working store does: it was carried out, a document was found in its
// place, or a write that can have no effect was refused.
func (h *writeHealth) answered() { h.set("") }

// doubt records any other answer.
func (h *writeHealth) doubt(op operation) { h.set(wholeWrite(op)) }

func (h *writeHealth) set(op operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.doubted = op
}

// inDoubt returns the write that should be tried before the store is called ready, or "".
func (h *writeHealth) inDoubt() operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.doubted
}

// wholeWrite is the request of which an operation is a part.
func wholeWrite(op operation) operation {
	if op == opBatchCreate || op == opBatchChange {
		return opBatch
	}
	return op
}
