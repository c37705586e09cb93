package sqlrule

import "fmt"

// A Filter is a parsed filter.
type Filter struct{ root node }

// maxLength bounds an expression, as the service does.
const maxLength = 1024

// ParseFilter parses a filter; parameters have the values of the names that begin with @. The error says where in the text
// the fault is, counted from 1, or what is not supported.
func ParseFilter(s string, parameters map[string]any) (Filter, error) {
	p, err := parse(s, parameters)
	if err != nil {
		return Filter{}, err
	}
	n, err := p.predicate()
	if err != nil {
		return Filter{}, err
	}
	if t := p.peek(); t.kind != end {
		return Filter{}, p.fault(t, "%s is not expected here", t)
	}
	return Filter{n}, nil
}

func parse(s string, parameters map[string]any) (*parser, error) {
	if len(s) > maxLength {
		return nil, fmt.Errorf("the expression has %d characters; at most %d are allowed", len(s), maxLength)
	}
	all, err := tokens(s)
	if err != nil {
		return nil, err
	}
	return &parser{tokens: all, parameters: parameters}, nil
}

// Matches reports whether the filter is true for a message, and not false or unknown.
func (f Filter) Matches(m Message) bool { return f.root.eval(m) == true }

// A node is a part of an expression. A predicate is true, false or unknown; other nodes have values.
type node struct {
	predicate bool
	eval      func(Message) any
}

// unknown is the value of what has none.
type unknown struct{}

// A parser reads tokens one by one, by recursive descent: OR binds weakest, then AND, NOT, comparisons, sums and products.
type parser struct {
	tokens     []token
	parameters map[string]any
	next       int
	depth      int
}

func (p *parser) peek() token { return p.tokens[p.next] }

// take passes over the next token when it is s.
func (p *parser) take(s string) bool {
	if p.peek().is(s) {
		p.next++
		return true
	}
	return false
}

func (p *parser) expect(s string) error {
	if !p.take(s) {
		return p.fault(p.peek(), "%q is expected, not %s", s, p.peek())
	}
	return nil
}

// predicate reads a predicate.
func (p *parser) predicate() (node, error) {
	t := p.peek()
	n, err := p.or()
	if err == nil && !n.predicate {
		err = p.fault(t, "a comparison is expected, and this is a value")
	}
	return n, err
}

func (p *parser) or() (node, error) { return p.chain("or", p.and, disjunction) }

func (p *parser) and() (node, error) { return p.chain("and", p.not, conjunction) }

// chain reads predicates that an operator joins.
func (p *parser) chain(operator string, operand func() (node, error), join func(a, b any) any) (node, error) {
	left, err := operand()
	for err == nil && p.peek().is(operator) {
		t := p.peek()
		p.next++
		var right node
		if right, err = operand(); err != nil {
			break
		}
		if !left.predicate || !right.predicate {
			return node{}, p.fault(t, "%s joins comparisons, and there is a value", t)
		}
		a, b := left.eval, right.eval
		left = node{true, func(m Message) any { return join(a(m), b(m)) }}
	}
	return left, err
}

func conjunction(a, b any) any {
	switch {
	case a == false || b == false:
		return false
	case a == true && b == true:
		return true
	}
	return unknown{}
}

func disjunction(a, b any) any { return negation(conjunction(negation(a), negation(b))) }

func negation(a any) any {
	if b, ok := a.(bool); ok {
		return !b
	}
	return unknown{}
}

func (p *parser) not() (node, error) {
	t := p.peek()
	if !p.take("not") {
		return p.comparison()
	}
	n, err := p.nested(p.not)
	if err != nil {
		return node{}, err
	}
	if !n.predicate {
		return node{}, p.fault(t, "NOT stands before a comparison, and this is a value")
	}
	return node{true, func(m Message) any { return negation(n.eval(m)) }}, nil
}

// maxDepth bounds what is nested in one expression.
const maxDepth = 64

// nested reads a part that may contain itself.
func (p *parser) nested(f func() (node, error)) (node, error) {
	if p.depth++; p.depth > maxDepth {
		return node{}, p.fault(p.peek(), "more than %d parts are nested", maxDepth)
	}
	defer func() { p.depth-- }()
	return f()
}
