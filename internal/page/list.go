package page

import (
	"context"
	"encoding/csv"
	"net/http"
	"slices"
	"time"

	"github.com/orderworker/orderworker/internal/deadletter"
)

// The bounds of one page of the list.
const (
	listRows = 50
	listSeen = 5000
	listTime = 10 * time.Second
)

// listPage is the first page: the search, the messages that it found, and the overview of all.
type listPage struct {
	Selection selection
	Overview  overview
	Rows      []listRow
	// Next is the address at which the list goes on; empty at its end. Short tells that the page ended for the time it took
	// and not for its rows.
	Next  string
	Short bool
	Err   string
	// Actions are those that would not be refused for each of the rows.
	Actions []deadletter.Offer
	// Doubt tells that nobody knows of one of the rows to which program it belongs.
	Doubt bool
	// UnderWay are the plans that are being made or applied.
	UnderWay []job
}

type listRow struct {
	deadletter.Item
	ID      string
	Notices []deadletter.Notice
	// Same tells that the row before has the same key.
	Same bool
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	selected, f, ok := s.selected(w, r, r.URL.Query())
	if !ok {
		return
	}
	p := listPage{Selection: selected, UnderWay: s.jobs.underWay()}
	p.Overview = s.overviewOf(r.Context(), selected)
	s.rows(r.Context(), f, &p)
	s.render(w, r, http.StatusOK, "list", frame{Title: "Dead-lettered messages", Section: "messages", Page: p})
}

// rows fills one page of the list. Messages that are not selected are passed over, but not for ever.
func (s *Server) rows(ctx context.Context, f deadletter.Filter, p *listPage) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	// What only a verdict can tell is matched here, so that what is passed over is counted.
	all := f
	all.Kinds, all.Key = nil, ""
	seen, next := 0, int64(0)
	for item, err := range s.options.Reviewer.List(ctx, all) {
		switch {
		case err != nil && next > 0 && ctx.Err() != nil:
			p.Next, p.Short = p.Selection.Next(next), true
			return
		case err != nil:
			if p.Err = deadletter.Visible(s.explain(err)); ctx.Err() != nil {
				p.Err = "Nothing was found in " + listTime.String() + ". Narrow the search, such as by age, or use the list command."
			}
			return
		case len(p.Rows) == listRows || seen == listSeen:
			p.Next, p.Short = p.Selection.Next(item.DeadLetter.Sequence), len(p.Rows) < listRows
			return
		}
		seen++
		next = item.DeadLetter.Sequence + 1
		if f.Matches(item) {
			s.addRow(p, item)
		}
	}
}

// addRow puts messages of one key together, and collects the actions that one of the rows allows.
func (s *Server) addRow(p *listPage, item deadletter.Item) {
	settings, now := s.options.Reviewer.Settings(), time.Now()
	row := listRow{Item: item, Notices: deadletter.Notices(item.DeadLetter, settings, now)}
	row.ID, _ = item.DeadLetter.MessageID()
	p.Doubt = p.Doubt || item.Verdict.Doubt != ""
	for _, o := range deadletter.Offers(item.DeadLetter, item.Verdict, settings, deadletter.Choice{UnknownProgram: true}, now) {
		known := slices.ContainsFunc(p.Actions, func(a deadletter.Offer) bool { return a.Action == o.Action })
		if o.Refused == "" && !known {
			p.Actions = append(p.Actions, o)
		}
	}
	item.DeadLetter.Message.Data, item.DeadLetter.Encoded, row.Content, row.Stored = nil, nil, nil, nil // the list shows no bodies
	at := len(p.Rows)
	for i, other := range p.Rows {
		if item.Key != "" && other.Key == item.Key {
			at, row.Same = i+1, true
		}
	}
	p.Rows = slices.Insert(p.Rows, at, row)
}

// csv writes the selected messages as a table for a spreadsheet, as they come.
func (s *Server) csv(w http.ResponseWriter, r *http.Request) {
	_, f, ok := s.selected(w, r, r.URL.Query())
	if !ok {
		return
	}
	attach(w, "text/csv; charset=utf-8", "dead-letters.csv")
	out := csv.NewWriter(w)
	_ = out.Write(deadletter.TableHeader())
	for item, err := range s.options.Reviewer.List(r.Context(), f) {
		if err != nil {
			_ = out.Write([]string{"the list broke off here", "", "", "", "", deadletter.Cell(s.explain(err))})
			break
		}
		_ = out.Write(item.TableRow())
	}
	out.Flush()
}

// attach makes the answer a file.
func attach(w http.ResponseWriter, kind, name string) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
}
