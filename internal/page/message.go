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
)

// The bounds of what is shown of one message.
const (
	shownBody  = 32 << 10
	shownValue = 500
)

// messagePage is one dead-lettered message.
type messagePage struct {
	Item    deadletter.Item
	ID      string
	Notices []deadletter.Notice
	Body    deadletter.Body
	Message string
	// Read tells that Message is the body as the worker reads it, such as a compressed one. HasBody tells that there are
	// bytes to download.
	Read, HasBody bool
	Stored        string
	Changes       []deadletter.Change
	Facts         []deadletter.Fact
	Properties    []deadletter.Fact
	Offers        []offer
	Next          int64
	// Others have the same key, as far as they were counted.
	Others   []int64
	UnderWay []job
}

// offer is an action with what its form needs.
type offer struct {
	deadletter.Offer
	Sequence int64
	Verdict  deadletter.Kind
	// NeedsTTL tells that the form must ask for a time to live, and NeedsProgram that somebody must say that the message belongs to
	// this program.
	NeedsTTL, NeedsProgram bool
	// Main tells that this is the one to show first: the recommended action, or the first that is not refused.
	Main bool
}

func (s *Server) sequence(w http.ResponseWriter, r *http.Request) (int64, bool) {
	n, err := strconv.ParseInt(r.PathValue("sequence"), 10, 64)
	if err != nil {
		s.fail(w, r, http.StatusNotFound, "A dead-lettered message is named by its sequence number.")
		return 0, false
	}
	return n, true
}

// find writes the page for a message that cannot be shown.
func (s *Server) find(w http.ResponseWriter, r *http.Request) (deadletter.Item, bool) {
	n, ok := s.sequence(w, r)
	if !ok {
		return deadletter.Item{}, false
	}
	ctx, cancel := context.WithTimeout(r.Context(), listTime)
	defer cancel()
	item, err := s.options.Reviewer.Find(ctx, n)
	switch {
	case errors.Is(err, deadletter.ErrAbsent):
		s.fail(w, r, http.StatusNotFound, "There is no dead-lettered message "+strconv.FormatInt(n, 10)+". It was removed, or never there; the history may say more.")
		return item, false
	case err != nil:
		s.fail(w, r, http.StatusBadGateway, "The dead-lettered message cannot be read: "+s.explain(err))
		return item, false
	}
	return item, true
}

func (s *Server) message(w http.ResponseWriter, r *http.Request) {
	item, ok := s.find(w, r)
	if !ok {
		return
	}
	l := item.DeadLetter
	p := messagePage{
		Item: item, Notices: deadletter.Notices(l, s.options.Reviewer.Settings(), time.Now()), Body: deadletter.BodyOf(l.Message, shownBody),
		Changes: item.Changes(), Next: s.next(r.Context(), l.Sequence), Facts: l.Facts(s.options.Reviewer.Settings().Queue), Offers: s.offers(item),
		UnderWay: s.jobs.underWay(),
	}
	p.ID, _ = l.MessageID()
	_, p.HasBody = l.Content()
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
		p.Properties = append(p.Properties, deadletter.Fact{Name: deadletter.Visible(name), Value: value})
	}
	if item.DocumentID != "" {
		for _, n := range s.scan.sameKey(item.DocumentID) {
			if n != l.Sequence {
				p.Others = append(p.Others, n)
			}
		}
	}
	s.render(w, r, http.StatusOK, "message", frame{Title: "Dead-lettered message " + strconv.FormatInt(l.Sequence, 10), Section: "messages", Page: p})
}

// next returns the sequence number of the message after this one, and zero when there is none.
func (s *Server) next(ctx context.Context, sequence int64) int64 {
	for messages, err := range s.options.Reviewer.Pages(ctx, sequence+1, 0) {
		if err == nil && len(messages) > 0 {
			return messages[0].Sequence
		}
		break
	}
	return 0
}

// offers returns what can be done with a message. Where only a time to live is missing, or the word of a person that the message
// belongs to this program, the form asks for it.
func (s *Server) offers(item deadletter.Item) []offer {
	settings, now := s.options.Reviewer.Settings(), time.Now()
	var out []offer
	main := false
	for _, o := range deadletter.Offers(item.DeadLetter, item.Verdict, settings, deadletter.Choice{}, now) {
		next := offer{Offer: o, Sequence: item.DeadLetter.Sequence, Verdict: item.Verdict.Kind}
		for _, c := range []deadletter.Choice{{NewTTL: time.Hour}, {UnknownProgram: true}, {NewTTL: time.Hour, UnknownProgram: true}} {
			if next.Refused == "" {
				break
			}
			if again := deadletter.OfferOf(o.Action, item.DeadLetter, item.Verdict, settings, c, now); again.Refused == "" {
				next.Offer, next.NeedsTTL, next.NeedsProgram = again, c.NewTTL > 0, c.UnknownProgram
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
	line, err := deadletter.ExportLine(item.DeadLetter)
	if err != nil {
		s.fail(w, r, http.StatusInternalServerError, "The dead-lettered message cannot be exported: "+err.Error())
		return
	}
	attach(w, "application/x-ndjson", "dead-letter-"+strconv.FormatInt(item.DeadLetter.Sequence, 10)+".jsonl")
	_, _ = w.Write(append(line, '\n')) // the browser may be gone
}

// body hands out the body as it was sent.
func (s *Server) body(w http.ResponseWriter, r *http.Request) {
	item, ok := s.find(w, r)
	if !ok {
		return
	}
	content, ok := item.DeadLetter.Content()
	if !ok {
		s.fail(w, r, http.StatusNotFound, "The body of this message is not made of bytes. The export has it.")
		return
	}
	attach(w, "application/octet-stream", "body-"+strconv.FormatInt(item.DeadLetter.Sequence, 10))
	_, _ = w.Write(content) // the browser may be gone
}
