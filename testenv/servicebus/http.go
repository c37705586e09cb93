package servicebus

import (
	"encoding/json"
	"net/http"
)

// Handler serves health and management over HTTP, as the official emulator does on port 5300:
//
//	GET /health   200 {"status":"healthy"}, or 503 once the broker is closed
//	GET /queues   the counts of every queue and subscription, by path
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
	return mux
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client has gone if this fails
}
