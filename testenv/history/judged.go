package history

import (
	"cmp"
	"net/http"
	"slices"
)

// completion is a completed delivery: the part of the log in which it must have been judged.
type completion struct {
	message      *message
	from, until  int // positions of the lock and of the completion
	lock, settle Event
	judged       bool
}

func everyCompletionIsJudged(v *view, expect Expect) (checked int, broken []Violation) {
	byDocument := map[string][]*completion{}
	var order []string
	for _, m := range v.messages {
		for _, c := range completions(m) {
			checked++
			id := expect.DocumentID(m.key)
			if expect.Ignored != nil && expect.Ignored(m.key) {
				if slices.ContainsFunc(v.documents[id], touches) {
					broken = append(broken, Violation{What: c.message.describe() + " stands for nothing, and document " + id + " was touched", Events: []Event{c.lock, c.settle}})
				}
				continue
			}
			if byDocument[id] == nil {
				order = append(order, id)
			}
			byDocument[id] = append(byDocument[id], c)
		}
	}
	for _, id := range order {
		match(byDocument[id], judgements(v.documents[id]))
		for _, c := range byDocument[id] {
			if !c.judged {
				broken = append(broken, Violation{What: c.message.describe() + " was completed although this delivery learnt nothing of document " + id, Events: []Event{c.lock, c.settle}})
			}
		}
	}
	return checked, broken
}

// touches reports whether an event wrote a document or found it. A read that found nothing is what a message costs that is
// delivered again.
func touches(e Event) bool { return len(written(e)) > 0 || read(e) }

// completions finds the completed deliveries of a message. Dead letters are completed by people, who may discard them.
func completions(m *message) []*completion {
	if m.dead() {
		return nil
	}
	var found []*completion
	for _, e := range m.events {
		if !e.Effect || (e.Op != Complete && e.Op != Take) {
			continue
		}
		c := &completion{message: m, from: e.Seq, until: e.Seq, lock: e, settle: e}
		for _, l := range m.events {
			if l.Seq < e.Seq && l.Effect && l.Lock == e.Lock && (l.Op == Lock || l.Op == ReceiveDeferred) {
				c.from, c.lock = l.Seq, l
			}
		}
		found = append(found, c)
	}
	return found
}

// judgements finds the positions, among the events of one document, at which one delivery can have learnt that the documents
// are committed: a write that went through, or a read that showed the document. One position serves one delivery.
func judgements(events []Event) []int {
	var found []int
	for _, e := range events {
		if touches(e) && e.Note != Seeded {
			found = append(found, e.Seq)
		}
	}
	return found
}

// read reports whether a document was read, by itself or as the first of a batch of nothing but reads, which is the batch
// that succeeds without an effect. A reply that a fault made up has a note.
func read(e Event) bool {
	return e.Status == http.StatusOK && (e.Op == ReadDocument || e.Op == ExecuteBatch && !e.Effect && e.Note == "")
}

// match gives each judgement to the delivery that was open at the time and was completed first.
func match(completions []*completion, judgements []int) {
	slices.SortStableFunc(completions, func(a, b *completion) int { return cmp.Compare(a.until, b.until) })
	for _, at := range judgements {
		for _, c := range completions {
			if !c.judged && c.from <= at && at <= c.until {
				c.judged = true
				break
			}
		}
	}
}
