package page

import (
	"context"
	"encoding/csv"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/orderworker/orderworker/internal/deadletter"
)

// The bounds of one page of the list.
const (
	listRows = 50
	listSeen = 5000
	listTime = 10 * time.Second
)

// listPage is the first page: the groups, and the letters of one of them.
type listPage struct {
	Count    count
	Counting int
	Verdict  deadletter.Kind
	Reason   string
	HasWhy   bool // a reason is selected, even the empty one
	Rows     []listRow
	// Next is the sequence number from which the list goes on; zero at its end. Short tells that the page ended for the time
	// it took and not for its rows.
	Next  int64
	Short bool
	Err   string
	// Actions are what a plan for this selection can propose.
	Actions []deadletter.Action
	// Busy is the id of the job that is under way.
	Busy string
}

type listRow struct {
	Letter  *deadletter.DeadLetter
	ID      string
	Verdict deadletter.Verdict
	Notices []deadletter.Notice
}

// selection reads which letters are asked for.
func selection(values url.Values) (deadletter.Filter, deadletter.Kind, bool) {
	var f deadletter.Filter
	kind, ok := deadletter.ParseKind(values.Get("verdict"))
	if values.Get("verdict") == "" {
		kind, ok = "", true
	}
	if kind != "" {
		f.Kinds = []deadletter.Kind{kind}
	}
	if values.Has("reason") {
		f.Reasons = []string{values.Get("reason")}
	}
	from, err := strconv.ParseInt(values.Get("from"), 10, 64)
	if err == nil {
		f.FirstSequence = from
	}
	return f, kind, ok && (err == nil || values.Get("from") == "")
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	f, kind, ok := selection(r.URL.Query())
	if !ok {
		s.fail(w, r, http.StatusBadRequest, "There is no such selection.")
		return
	}
	p := listPage{Verdict: kind, Reason: r.URL.Query().Get("reason"), HasWhy: r.URL.Query().Has("reason")}
	p.Count, p.Counting = s.counts(r.Context())
	s.rows(r.Context(), f, &p)
	p.Actions = plannable(kind)
	if j := s.jobs.running(); j != nil {
		p.Busy = j.ID
	}
	fr := frame{Title: "Dead letters", Section: "letters", Page: p}
	if p.Counting > 0 {
		fr.Refresh = 3
	}
	s.render(w, r, http.StatusOK, "list", fr)
}

// plannable returns what can be done with all letters of a verdict at once, the suggested action first.
func plannable(k deadletter.Kind) []deadletter.Action {
	switch k {
	case deadletter.AlreadyApplied:
		return []deadletter.Action{deadletter.Discard}
	case deadletter.NeverApplied:
		return []deadletter.Action{deadletter.Reprocess, deadletter.Resubmit}
	}
	return nil
}

// rows fills one page of the list. Letters of other verdicts are passed over, but not for ever.
func (s *Server) rows(ctx context.Context, f deadletter.Filter, p *listPage) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	all := f
	all.Kinds = nil
	seen := 0
	for item, err := range s.options.Reviewer.List(ctx, all) {
		switch {
		case err != nil && p.Next > 0 && ctx.Err() != nil:
			p.Short = true
			return
		case err != nil:
			p.Next, p.Err = 0, deadletter.Visible(s.explain(err))
			return
		case len(p.Rows) == listRows || seen == listSeen:
			p.Next, p.Short = item.Letter.Sequence, len(p.Rows) < listRows
			return
		}
		seen++
		p.Next = item.Letter.Sequence + 1
		if f.Matches(item) {
			p.Rows = append(p.Rows, s.row(item))
		}
	}
	p.Next = 0
}

func (s *Server) row(item deadletter.Item) listRow {
	id, _ := item.Letter.MessageID()
	item.Letter.Message.Data, item.Letter.Encoded = nil, nil // the page shows no bodies
	return listRow{Letter: item.Letter, ID: id, Verdict: item.Verdict, Notices: deadletter.Notices(item.Letter, s.options.Reviewer.Settings(), time.Now())}
}

// csv writes the selected letters as a table for a spreadsheet, as they come.
func (s *Server) csv(w http.ResponseWriter, r *http.Request) {
	f, _, ok := selection(r.URL.Query())
	if !ok {
		s.fail(w, r, http.StatusBadRequest, "There is no such selection.")
		return
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="dead-letters.csv"`)
	out := csv.NewWriter(w)
	_ = out.Write([]string{"sequence", "message id", "verdict", "reason", "came in", "description"})
	for item, err := range s.options.Reviewer.List(r.Context(), f) {
		if err != nil {
			_ = out.Write([]string{"the list broke off here", "", "", "", "", deadletter.Cell(s.explain(err))})
			break
		}
		l := item.Letter
		id, _ := l.MessageID()
		came := ""
		if at := l.EnqueuedAt; !at.IsZero() {
			came = at.UTC().Format(time.RFC3339)
		}
		_ = out.Write([]string{
			strconv.FormatInt(l.Sequence, 10), deadletter.Cell(id), item.Verdict.Kind.Title(), deadletter.Cell(l.Reason()), came, deadletter.Cell(l.Description()),
		})
	}
	out.Flush()
}
