// Package fault plans what goes wrong in the embedded environment.
//
// A [Plan] is a script of rules, a seeded source of random faults, or both. The emulators ask it at every point, before
// and after each effect, and carry out the [Action] it returns. No shipped code knows of it. A Plan is safe for
// concurrent use; a nil *Plan plans nothing. Rules are matched in the order in which they were added, and the first that
// matches wins; a rule counts every point it matches, also when an earlier rule is applied there.
package fault

import (
	"math/rand/v2"
	"path"
	"sync"
)

// Phase tells the moment of a point relative to the effect of the operation.
type Phase int

// The phases.
const (
	// Before is the moment at which nothing has been changed yet: a fault here loses the request.
	Before Phase = iota
	// After is the moment at which the effect has happened: a fault here loses the answer.
	After
)

// A Point is one moment in an emulator at which a fault may be applied.
type Point struct {
	// Op is the operation, as in the history: "servicebus.complete", "cosmosdb.create".
	Op string
	// Key is the MessageId or the document id, where the operation has one.
	Key string
	// Entity is the path of the queue or the subscription, where the operation is about one; each subscription of a topic
	// has a copy of a message under the same MessageId.
	Entity string
	Phase  Phase
}

// Plan decides at each point whether something goes wrong.
type Plan struct {
	mu      sync.Mutex
	rules   []*Rule
	random  *seeded
	applied int
}

type seeded struct {
	rng     *rand.Rand
	choices []Choice
}

// A Choice is a fault that a seeded plan draws with a probability at every matching point.
type Choice struct {
	// Op is a pattern for operations in the syntax of [path.Match].
	Op          string
	Phase       Phase
	Probability float64
	Action      Action
}

// Script returns a plan that follows the rules.
func Script(rules ...*Rule) *Plan { return &Plan{rules: rules} }

// Seed returns a plan that draws faults from choices, the same for the same seed and the same sequence of points.
func Seed(seed uint64, choices ...Choice) *Plan {
	return &Plan{random: &seeded{rng: rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15)), choices: choices}}
}

// Add appends rules while the plan is in use.
func (p *Plan) Add(rules ...*Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, rules...)
}

// Clear removes every rule and the seeded choices: from now on nothing goes wrong.
func (p *Plan) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules, p.random = nil, nil
}

// Applied returns how many faults have been carried out.
func (p *Plan) Applied() int {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.applied
}

// At returns what happens at a point, and counts it. A nil plan returns the zero Action.
func (p *Plan) At(pt Point) Action {
	if p == nil {
		return Action{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var found *Rule
	for _, r := range p.rules {
		if r.matchesLocked(pt) && found == nil {
			found = r
		}
	}
	if found != nil {
		p.applied++
		return found.action
	}
	if a, ok := p.random.draw(pt); ok {
		p.applied++
		return a
	}
	return Action{}
}

func (s *seeded) draw(pt Point) (Action, bool) {
	if s == nil {
		return Action{}, false
	}
	for _, c := range s.choices {
		if c.Phase == pt.Phase && matchOp(c.Op, pt.Op) && s.rng.Float64() < c.Probability {
			return c.Action, true
		}
	}
	return Action{}, false
}

func matchOp(pattern, op string) bool {
	ok, err := path.Match(pattern, op)
	return ok && err == nil
}
