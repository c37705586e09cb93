package fault

import "strings"

// A Rule applies a fault at certain points of one operation.
type Rule struct {
	op     string
	key    string
	entity string
	phase  Phase
	first  int
	count  int
	action Action
	seen   int
}

// On starts a rule for operations that match the pattern, in the syntax of [path.Match]: "cosmosdb.create",
// "servicebus.*". Unless told otherwise it is applied once, at the first match.
func On(op string) *Rule { return &Rule{op: op, first: 1, count: 1} }

// Key restricts the rule to one MessageId or document id.
func (r *Rule) Key(key string) *Rule { r.key = key; return r }

// Entity restricts the rule to the queue or the subscription at one path; paths do not depend on case.
func (r *Rule) Entity(path string) *Rule { r.entity = path; return r }

// Nth applies the rule at the nth match, counted from 1.
func (r *Rule) Nth(n int) *Rule { r.first = n; return r }

// Times applies the rule at n matches in a row.
func (r *Rule) Times(n int) *Rule { r.count = n; return r }

// Always applies the rule at every match from its first on.
func (r *Rule) Always() *Rule { r.count = -1; return r }

// Before sets the action, which comes before the effect.
func (r *Rule) Before(a Action) *Rule { r.phase, r.action = Before, a; return r }

// After sets the action, which comes after the effect.
func (r *Rule) After(a Action) *Rule { r.phase, r.action = After, a; return r }

// matchesLocked reports whether the rule is applied at pt, and counts the match. The plan's lock is held.
func (r *Rule) matchesLocked(pt Point) bool {
	if r.phase != pt.Phase || !matchOp(r.op, pt.Op) || (r.key != "" && r.key != pt.Key) {
		return false
	}
	if r.entity != "" && !strings.EqualFold(r.entity, pt.Entity) {
		return false
	}
	r.seen++
	return r.seen >= r.first && (r.count < 0 || r.seen < r.first+r.count)
}
