package servicebus

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/orderworker/orderworker/testenv/internal/amqp"
	"github.com/orderworker/orderworker/testenv/internal/sqlrule"
)

// A Rule selects messages of a topic for a subscription, and may change the copies that it selects.
type Rule struct {
	Name string
	// Filter selects messages. Defaults to all.
	Filter Filter
	// Action changes the copy: SET and REMOVE statements. The copy gets the property RuleName beside. Defaults to no change.
	Action string
	// ActionParameters are the values of names in the action that begin with @.
	ActionParameters map[string]any
}

// defaultRule is what a subscription gets for which no rule is asked.
const defaultRule = "$Default"

// A rule is a Rule that was parsed.
type rule struct {
	Rule
	created time.Time
	selects func(*view) bool
	action  *sqlrule.Action // nil: none
}

var ruleName = regexp.MustCompile(`^[^/\\?#@*]{1,50}$`)

// newRule parses a rule. The error says what the service or this broker does not allow.
func newRule(r Rule, now time.Time) (*rule, error) {
	if !ruleName.MatchString(r.Name) {
		return nil, fmt.Errorf(`a rule name has 1 to 50 characters, none of /\?#@*`)
	}
	if r.Filter == nil {
		r.Filter = TrueFilter{}
	}
	parsed := &rule{Rule: r, created: now}
	var err error
	if parsed.selects, err = r.Filter.parse(); err != nil {
		return nil, fmt.Errorf("the filter: %w", err)
	}
	if r.Action == "" {
		return parsed, nil
	}
	action, err := sqlrule.ParseAction(r.Action, plainValues(r.ActionParameters))
	if err != nil {
		return nil, fmt.Errorf("the action: %w", err)
	}
	parsed.action = &action
	return parsed, nil
}

// rules are the rules of a subscription, in the order of their making.
type rules []*rule

// newRules parses rules, and reports every fault.
func newRules(list []Rule, now time.Time) (rules, []string) {
	if len(list) == 0 {
		list = []Rule{{Name: defaultRule}}
	}
	var rs rules
	var faults []string
	for _, r := range list {
		parsed, err := newRule(r, now)
		if err == nil && rs.find(r.Name) >= 0 {
			err = fmt.Errorf("the name is used twice (names do not depend on case)")
		}
		if err != nil {
			faults = append(faults, fmt.Sprintf("rule %q: %v", r.Name, err))
			continue
		}
		rs = append(rs, parsed)
	}
	return rs, faults
}

// find returns the index of the rule of a name, or -1.
func (rs rules) find(name string) int {
	return slices.IndexFunc(rs, func(r *rule) bool { return strings.EqualFold(r.Name, name) })
}

// copies returns the copies of a message that the rules ask for: one for all rules without an action that select it, and one
// for each rule with an action.
func (rs rules) copies(m *message) []*message {
	original := newView(m)
	var all []*message
	plain := false
	for _, r := range rs {
		if !r.selects(original) {
			continue
		}
		if r.action == nil {
			plain = true
			continue
		}
		changed := newView(m.copy())
		r.action.Apply(changed)
		changed.Set(sqlrule.Name{Text: "RuleName"}, r.Name)
		all = append(all, changed.edited())
	}
	if plain {
		return append([]*message{m.copy()}, all...)
	}
	return all
}

// ruleError turns the error of a rule into what a client is told.
func ruleError(name string, err error) *amqp.Error {
	return amqp.Errorf(amqp.InvalidField, "rule %q: %v", name, err)
}
