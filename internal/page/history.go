package page

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/orderworker/orderworker/internal/deadletter"
)

// The bounds of the history.
const (
	historyRows = 200
	historyDays = 14
	historyTime = 30 * time.Second
)

type historyPage struct {
	Entries   []deadletter.Entry
	MessageID string
	Sequence  string
	Days      int
	Most      int
	Err       string
}

func (s *Server) history(w http.ResponseWriter, r *http.Request) {
	p := historyPage{MessageID: r.URL.Query().Get("message-id"), Sequence: r.URL.Query().Get("sequence"), Days: historyDays, Most: historyRows}
	q := deadletter.Query{From: time.Now().AddDate(0, 0, -historyDays), Most: historyRows, MessageID: p.MessageID}
	if p.Sequence != "" {
		var err error
		if q.Sequence, err = strconv.ParseInt(p.Sequence, 10, 64); err != nil {
			s.fail(w, r, http.StatusBadRequest, "A sequence number is a whole number.")
			return
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), historyTime)
	defer cancel()
	for e, err := range s.options.Ledger.Entries(ctx, q) {
		if err != nil {
			p.Err = s.explain(err)
			break
		}
		p.Entries = append(p.Entries, e)
	}
	s.render(w, r, http.StatusOK, "history", frame{Title: "History", Section: "history", Page: p})
}
