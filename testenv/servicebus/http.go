package servicebus

import (
	"encoding/json"
	"net/http"
)

// Handler serves health and management over HTTP, as the official emulator does on port 5300:
//
//	GET /health   200 {"status":"healthy"}, or 503 once the broker is closed
//	GET /queues   the counts of every queue and subscription, by path
//
// and the administration API of Azure, which its clients speak with a query parameter api-version: queues, topics,
// subscriptions and rules are made, read with their counts, listed, changed and deleted. AutoDeleteOnIdle and the keys of
// authorization rules are kept and not carried out. Settings that the broker cannot carry out are refused by name.
func (b *Broker) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		if b.isClosed() {
			writeJSON(w, http.StatusServiceUnavailable, map[string]string{"status": "unhealthy"})
			return
		}
		writeJSON(w, http.StatusOK, map[string]string{"status": "healthy"})
	})
	mux.HandleFunc("GET /queues", func(w http.ResponseWriter, _ *http.Request) {
		all := map[string]Counts{}
		for _, e := range b.namespace.all() {
			if e.kind == kindTopic {
				continue
			}
			if c, err := b.Counts(e.cfg.Name); err == nil {
				all[e.cfg.Name] = c
			}
		}
		writeJSON(w, http.StatusOK, all)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isAdmin(r) {
			b.administer(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client has gone if this fails
}
