package servicebus

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// A namespace holds the entities of a broker. One mutex guards everything in it, because messages move between entities:
// from a topic to its subscriptions, from a queue to its dead letters. A method whose name ends in Locked wants it held.
// The order of locks is the namespace's, then a peer's or a connection's.
type namespace struct {
	mu     sync.Mutex
	closed bool
	agenda
	entities map[string]*entity // by lower-case path
}

func newNamespace() *namespace {
	return &namespace{agenda: newAgenda(), entities: map[string]*entity{}}
}

// close ends the timer. Nothing changes any more.
func (n *namespace) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	if n.timer != nil {
		n.timer.Stop()
	}
}

// lookup returns the log at a lower-case path: of an entity, or of its dead letters. It returns nil when there is none.
func (n *namespace) lookup(path string) *store {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e := n.entities[path]; e != nil {
		return &e.main
	}
	p, ok := strings.CutSuffix(path, strings.ToLower(deadLetterSuffix))
	if e := n.entities[p]; ok && e != nil && e.kind != kindTopic {
		return &e.dead
	}
	return nil
}

// all returns the entities in the order of their paths.
func (n *namespace) all() []*entity {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.allLocked()
}

func (n *namespace) allLocked() []*entity {
	paths := slices.Sorted(maps.Keys(n.entities))
	es := make([]*entity, len(paths))
	for i, p := range paths {
		es[i] = n.entities[p]
	}
	return es
}
