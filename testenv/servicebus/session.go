package servicebus

import (
	"maps"
	"slices"
	"time"
)

// The sessions of a queue or a subscription that requires them. Each message belongs to one, and only the holder of a
// session gets its messages, in the order of their sequence numbers. Invariants:
//   - a session has at most one holder, a receiver link, and its messages are locked only while it has one;
//   - a session is in line exactly when it has messages that can be delivered and no holder;
//   - nobody waits while a session is in line.
type sessions struct {
	byID    map[string]*session
	line    []*session // sessions that can be accepted, the one that became so first in front
	waiting []*waiter  // receivers that want any session, the first in front
}

// A session is the messages of one session id, with a state of its own. It is forgotten when it has no message, no state and
// no holder.
type session struct {
	alarm // rings when the lock ends
	store *store
	id    string

	messages    int                // in the log, whatever their states
	ready       heap[*message]     // those that can be delivered
	held        map[int64]*message // those that the holder has locked, by sequence number
	holder      *consumer          // nil: the session is not locked
	lockedUntil time.Time
	sending     int // deliveries that the fault plan delays: what follows waits, to keep the order

	state   []byte // nil: none
	updated time.Time
}

func newSessions() *sessions { return &sessions{byID: map[string]*session{}} }

// of returns the session of an id, which may be new.
func (ss *sessions) of(s *store, id string) *session {
	n := ss.byID[id]
	if n == nil {
		n = &session{store: s, id: id, held: map[int64]*message{}, ready: newReady()}
		ss.byID[id] = n
	}
	return n
}

// readyLen is how many messages of all sessions can be delivered.
func (ss *sessions) readyLen() int {
	n := 0
	for _, s := range ss.byID {
		n += s.ready.len()
	}
	return n
}

// list returns the ids of the sessions that f selects, in order.
func (ss *sessions) list(f func(*session) bool) []string {
	ids := slices.Sorted(maps.Keys(ss.byID))
	return slices.DeleteFunc(ids, func(id string) bool { return !f(ss.byID[id]) })
}

// reviewLocked puts a session in line or takes it out, or forgets it, after something about it has changed.
func (ss *sessions) reviewLocked(n *session, now time.Time) {
	i := slices.Index(ss.line, n)
	available := n.holder == nil && n.ready.len() > 0
	switch {
	case available && i < 0:
		ss.line = append(ss.line, n)
		n.store.serveWaitingLocked(now)
	case !available && i >= 0:
		ss.line = slices.Delete(ss.line, i, i+1)
	}
	if n.holder == nil && n.messages == 0 && n.state == nil {
		delete(ss.byID, n.id)
	}
}

// beginLocked and doneLocked tell that a delivery is under way that the fault plan delays. Without a session the order of
// deliveries is not kept.
func (n *session) beginLocked() {
	if n != nil {
		n.sending++
	}
}

func (n *session) doneLocked() {
	if n != nil {
		n.sending--
	}
}

// heldInOrder are the messages that the holder has locked, by sequence number.
func (n *session) heldInOrder() []*message {
	ms := make([]*message, 0, len(n.held))
	for _, seq := range slices.Sorted(maps.Keys(n.held)) {
		ms = append(ms, n.held[seq])
	}
	return ms
}
