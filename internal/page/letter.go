package page

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/internal/messagejson"
)

// The bounds of what is shown of one letter.
const (
	shownBody  = 32 << 10
	shownValue = 500
)

// letterPage is one letter.
type letterPage struct {
	Item    deadletter.Item
	ID      string
	Notices []deadletter.Notice
	Body    deadletter.Body
	Message string
	// Read tells that Message is the body as the worker reads it, such as a compressed one.
	Read       bool
	Stored     string
	Changes    []deadletter.Change
	Properties []property
	Offers     []offer
	Next       int64
	Busy       string
}

type property struct{ Name, Value string }

// offer is an action with what its form needs.
type offer struct {
	deadletter.Offer
	Sequence int64
	Verdict  deadletter.Kind
	// NeedsTTL tells that the form must ask for a time to live.
	NeedsTTL bool
	// Main tells that this is the one to show first: the suggested action, or the first that is not refused.
	Main bool
}

// offerForm is an offer with what every form needs.
type offerForm struct {
	Offer offer
	Token string
	Write bool
}

func (s *Server) sequence(w http.ResponseWriter, r *http.Request) (int64, bool) {
	n, err := strconv.ParseInt(r.PathValue("sequence"), 10, 64)
	if err != nil {
		s.fail(w, r, http.StatusNotFound, "A dead letter is named by its sequence number.")
		return 0, false
	}
	return n, true
}

// find writes the page for a letter that cannot be shown.
func (s *Server) find(w http.ResponseWriter, r *http.Request) (deadletter.Item, bool) {
	n, ok := s.sequence(w, r)
	if !ok {
		return deadletter.Item{}, false
	}
	ctx, cancel := context.WithTimeout(r.Context(), listTime)
	defer cancel()
	item, err := s.options.Reviewer.Find(ctx, n)
	switch {
	case errors.Is(err, deadletter.ErrNoLetter):
		s.fail(w, r, http.StatusNotFound, "There is no dead letter "+strconv.FormatInt(n, 10)+". It was removed, or never there; the history may say more.")
		return item, false
	case err != nil:
		s.fail(w, r, http.StatusBadGateway, "The dead letter cannot be read: "+s.explain(err))
		return item, false
	}
	return item, true
}

func (s *Server) letter(w http.ResponseWriter, r *http.Request) {
	item, ok := s.find(w, r)
	if !ok {
		return
	}
	l := item.Letter
	p := letterPage{
		Item: item, Notices: deadletter.Notices(l, s.options.Reviewer.Settings(), time.Now()), Body: deadletter.BodyOf(l.Message, shownBody),
		Changes: item.Changes(), Next: s.next(r.Context(), l.Sequence), Offers: s.offers(item),
	}
	p.ID, _ = l.MessageID()
	p.Message = p.Body.Text
	if item.Content != nil && len(item.Content) <= shownBody {
		p.Message, p.Read = deadletter.Indented(item.Content), p.Body.Binary
		p.Body.Binary, p.Body.Cut = false, false
	}
	if item.Stored != nil {
		p.Stored = deadletter.Clip(deadletter.Indented(item.Stored), shownBody)
	}
	for _, name := range slices.Sorted(maps.Keys(l.Message.ApplicationProperties)) {
		value := deadletter.Clip(deadletter.Value(l.Message.ApplicationProperties[name]), shownValue)
		p.Properties = append(p.Properties, property{deadletter.Visible(name), value})
	}
	if j := s.jobs.running(); j != nil {
		p.Busy = j.ID
	}
	s.render(w, r, http.StatusOK, "letter", frame{Title: "Dead letter " + strconv.FormatInt(l.Sequence, 10), Section: "letters", Page: p})
}

// next returns the sequence number of the letter after this one, and zero when there is none.
func (s *Server) next(ctx context.Context, sequence int64) int64 {
	for letters, err := range s.options.Reviewer.Letters(ctx, sequence+1, 0) {
		if err == nil && len(letters) > 0 {
			return letters[0].Sequence
		}
		break
	}
	return 0
}

// offers returns what can be done with a letter. Where only a new time to live stands in the way of a resubmit, its form
// asks for one.
func (s *Server) offers(item deadletter.Item) []offer {
	settings, now := s.options.Reviewer.Settings(), time.Now()
	var out []offer
	main := false
	for _, o := range deadletter.Offers(item.Letter, item.Verdict, settings, deadletter.Choice{}, now) {
		next := offer{Offer: o, Sequence: item.Letter.Sequence, Verdict: item.Verdict.Kind}
		if o.Action == deadletter.Resubmit && o.Refused != "" {
			renewed := deadletter.OfferOf(o.Action, item.Letter, item.Verdict, settings, deadletter.Choice{NewTTL: time.Hour}, now)
			if renewed.Refused == "" {
				next.Offer, next.NeedsTTL = renewed, true
			}
		}
		next.Main = !main && next.Refused == ""
		main = main || next.Main
		out = append(out, next)
	}
	return out
}

func (s *Server) export(w http.ResponseWriter, r *http.Request) {
	item, ok := s.find(w, r)
	if !ok {
		return
	}
	line, err := deadletter.ExportLine(item.Letter)
	if err != nil {
		s.fail(w, r, http.StatusInternalServerError, "The dead letter cannot be exported: "+err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Content-Disposition", `attachment; filename="dead-letter-`+strconv.FormatInt(item.Letter.Sequence, 10)+`.jsonl"`)
	_, _ = w.Write(append(line, '\n')) // the browser may be gone
}

// actPatience is how long a person waits for a letter that somebody else holds.
const actPatience = 8 * time.Second

// actTime bounds one action. It is finished, also when the browser goes away.
const actTime = time.Minute

func (s *Server) act(w http.ResponseWriter, r *http.Request) {
	n, ok := s.sequence(w, r)
	if !ok {
		return
	}
	o, ok := s.order(w, r, r.PathValue("action"))
	if !ok {
		return
	}
	o.Expect = deadletter.Kind(r.PostForm.Get("verdict"))
	release, ok := s.jobs.take()
	if !ok {
		s.fail(w, r, http.StatusConflict, "Something else is under way. Wait until it is done.")
		return
	}
	defer release()
	ctx, cancel := s.background()
	defer cancel()
	ctx, cancelTime := context.WithTimeout(ctx, actTime)
	defer cancelTime()
	var got deadletter.Outcome
	_, err := s.options.Reviewer.Act(ctx, deadletter.Application{
		Command: o, Pace: deadletter.Pace{Patience: actPatience}, Outcome: func(out deadletter.Outcome) { got = out },
	}, n)
	s.scan.invalidate()
	if err != nil || got.Result == "" {
		s.fail(w, r, http.StatusBadGateway, "It was not done: "+s.explain(err))
		return
	}
	next := s.next(ctx, n)
	http.Redirect(w, r, "/outcomes/"+s.outcomes.keep(outcomePage{Outcome: got, Next: next, Why: o.Why}), http.StatusSeeOther)
}

// explain is what an error means for people. No error means that an action was cut off.
func (s *Server) explain(err error) string {
	if err == nil {
		return "it was interrupted"
	}
	return s.options.Explain(err).Error()
}

// maxWhy bounds a reason, in characters.
const maxWhy = 500

// order reads the part that the forms of all actions have.
func (s *Server) order(w http.ResponseWriter, r *http.Request, action string) (deadletter.Command, bool) {
	a, known := deadletter.ParseAction(action)
	o := deadletter.Command{Action: a, Why: deadletter.Clip(r.PostForm.Get("why"), maxWhy), Choice: deadletter.Choice{Acknowledged: r.PostForm.Get("acknowledged") == "yes"}}
	o.Actor, _ = s.guard.actor(r)
	switch {
	case !known:
		s.fail(w, r, http.StatusNotFound, "There is no such action.")
		return o, false
	case blank(o.Why):
		s.fail(w, r, http.StatusBadRequest, "Say why this is done: go back and fill in the reason.")
		return o, false
	}
	if text := r.PostForm.Get("ttl"); text != "" {
		ttl, err := messagejson.ParseDuration(text)
		if err != nil || ttl <= 0 {
			s.fail(w, r, http.StatusBadRequest, "A time to live is written like 24h or P1D.")
			return o, false
		}
		o.Choice.NewTTL = ttl
	}
	return o, true
}
