package traffic

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/orderworker/orderworker/testenv/history"
)

// replay goes through a history and holds each write of an entity against the command whose inbox record was created in the
// same transaction, and each end of a command against what was written.
type replay struct {
	run       Run
	documents map[string]document
	entities  map[string]bool
	// contents are the different contents that were sent under an id.
	contents map[string][]Command
	prices   map[string][]Command // by entity
	// recorded is the position at which the record of a message was created.
	recorded map[string]int
	// winner is the content that was committed, as its write shows or, for a stale one, the first completion.
	winner    map[string]Command
	open      map[int64]*delivery
	conflicts []Outcome
	wrong     []string
}

// delivery is an open delivery of a command.
type delivery struct {
	command Command
	since   int
	lowest  float64 // the lowest balance of its account meanwhile
}

func newReplay(r Run) *replay {
	p := &replay{run: r, entities: r.entities(), documents: map[string]document{}, contents: map[string][]Command{}, prices: map[string][]Command{},
		recorded: map[string]int{}, winner: map[string]Command{}, open: map[int64]*delivery{}}
	for _, m := range r.Sent {
		if m.isOrder() {
			continue
		}
		c := commandOf(m)
		p.contents[m.ID] = append(p.contents[m.ID], c)
		if c.Do == Price {
			p.prices[c.Entity] = append(p.prices[c.Entity], c)
		}
	}
	return p
}

// commandOf reads a command. The stream has made it, so it can be read.
func commandOf(m Message) (c Command) {
	_ = json.Unmarshal(m.Body, &c)
	return c
}

func (p *replay) say(format string, args ...any) {
	p.wrong = append(p.wrong, fmt.Sprintf(format, args...))
}

func (p *replay) audit() []string {
	for _, e := range p.run.Events {
		p.store(e)
		m, command := p.run.Sent[e.Sequence]
		if !command || m.isOrder() || !e.Effect || !strings.EqualFold(e.Entity, p.run.Queue) {
			continue
		}
		if e.Op == history.Lock {
			c := commandOf(m)
			p.open[e.Sequence] = &delivery{command: c, since: e.Seq, lowest: p.balance(c.Entity)}
		}
		if o, ended := p.run.outcome(e); ended {
			p.end(o, p.open[e.Sequence])
			delete(p.open, e.Sequence)
		}
	}
	for _, o := range p.conflicts {
		if w, ok := p.winner[o.Message.ID]; !ok || w == commandOf(o.Message) {
			p.say("command %s %s, although it is just what was committed", o.Message.ID, o)
		}
	}
	p.compareStored()
	return p.wrong
}

// compareStored holds the last write of each document against what is stored.
func (p *replay) compareStored() {
	for _, id := range slices.Sorted(maps.Keys(p.documents)) {
		if stored := parseDocument([]byte(p.run.Documents[id])); !reflect.DeepEqual(stored, p.documents[id]) {
			p.say("document %s is stored as %v, and was written as %v", id, stored, p.documents[id])
		}
	}
}

// store takes in what an event wrote.
func (p *replay) store(e history.Event) {
	if !e.Effect || len(e.Writes) == 0 {
		return
	}
	messageID, changes := "", 0
	for _, w := range e.Writes {
		if isRecord(w.ID) {
			messageID, _ = Guard(w.ID)
			p.recorded[messageID] = e.Seq
		}
	}
	for _, w := range e.Writes {
		after := parseDocument(w.Body)
		if before := p.documents[w.ID]; e.Note != history.Seeded && p.entities[w.ID] {
			p.judge(messageID, w.ID, before, after)
			changes++
		}
		p.documents[w.ID] = after
		p.lower(w.ID)
	}
	if contents := p.contents[messageID]; len(contents) > 0 && changes == 0 {
		p.judgeStale(messageID, contents)
	}
}

// judge holds a write against the contents that can have asked for it.
func (p *replay) judge(messageID, id string, before, after document) {
	contents := p.contents[messageID]
	if messageID == "" {
		contents = p.prices[id]
	}
	for _, c := range contents {
		if want, ok := c.apply(messageID, before); ok && c.Entity == id && reflect.DeepEqual(want, after) {
			p.winner[messageID] = c
			return
		}
	}
	p.say("document %s went from %v to %v, which is not what command %q of %v asks for", id, before, after, messageID, contents)
}

// judgeStale holds a record without a change: an equal or newer version must have been stored.
func (p *replay) judgeStale(messageID string, contents []Command) {
	c := contents[0]
	if stored, _ := p.documents[c.Entity]["version"].(float64); c.Do != Project && c.Do != Revise || stored < float64(c.Amount) {
		p.say("command %s of %v has a record and no effect", messageID, contents)
	}
}

// end holds the end of a command against what is stored.
func (p *replay) end(o Outcome, d *delivery) {
	c, id := commandOf(o.Message), o.Message.ID
	recordedAt, recorded := p.recorded[id]
	switch {
	case d == nil:
		p.say("command %s %s without a delivery", id, o)
	case o.Completed && (c.Do == Foreign || c.Do == Price):
		if recorded {
			p.say("command %s (%s) has a record", id, c.Do)
		}
	case o.Completed && !recorded:
		p.say("command %s %s, and has no record", id, o)
	case o.Completed:
		if w, known := p.winner[id]; known && w != c {
			p.say("command %s %s, although other content was committed", id, o)
		}
		p.winner[id] = c
		if stored, _ := p.documents[c.Entity]["version"].(float64); (c.Do == Project || c.Do == Revise) && stored < float64(c.Amount) {
			p.say("command %s %s, and %s has the older version %v", id, o, c.Entity, stored)
		}
	case o.Reason == p.run.Words.Conflict:
		p.conflicts = append(p.conflicts, o)
	case recorded && recordedAt < d.since:
		p.say("command %s %s, although it was committed before", id, o)
	case o.Reason == InsufficientFunds && (c.Do != Debit || d.lowest >= float64(c.Amount)):
		p.say("command %s %s, although the balance never was below %d", id, o, c.Amount)
	case o.Reason == AlreadyPaid && (c.Do != Capture || p.documents[c.Entity]["status"] != "PAID"):
		p.say("command %s %s, although nobody has paid %s", id, o, c.Entity)
	}
}

func (p *replay) balance(entity string) float64 {
	n, _ := p.documents[entity]["balance"].(float64)
	return n
}

// lower notes a new balance for the deliveries that are open.
func (p *replay) lower(entity string) {
	for _, d := range p.open {
		if d.command.Entity == entity {
			d.lowest = min(d.lowest, p.balance(entity))
		}
	}
}
