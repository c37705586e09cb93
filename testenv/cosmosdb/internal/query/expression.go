package query

import (
	"slices"
	"strings"
)

// expression has a value for a document, or none.
type expression interface {
	eval(e environment) any
}

// environment is what an expression may look at.
type environment struct {
	doc    any
	params map[string]any
}

// undefined is the value of a property that is not there, and of a comparison that makes no sense.
type undefined struct{}

type (
	literal        struct{ value any }
	parameter      struct{ name string }
	pathExpression struct {
		root  string
		steps []any // member names and indexes
	}
	not   struct{ of expression }
	logic struct {
		and         bool
		left, right expression
	}
	comparison struct {
		op          string
		left, right expression
	}
	call struct {
		function function
		args     []expression
	}
)

// expression reads OR, the weakest operator.
func (p *parser) expression() (expression, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, &Unsupported{Feature: "very deep nesting"}
	}
	defer func() { p.depth-- }()
	left, err := p.conjunction()
	for err == nil && p.accept("OR") {
		var right expression
		right, err = p.conjunction()
		left = logic{left: left, right: right}
	}
	return left, err
}

func (p *parser) conjunction() (expression, error) {
	left, err := p.negation()
	for err == nil && p.accept("AND") {
		var right expression
		right, err = p.negation()
		left = logic{and: true, left: left, right: right}
	}
	return left, err
}

func (p *parser) negation() (expression, error) {
	if !p.peek().is("NOT") {
		return p.comparison()
	}
	if p.depth++; p.depth > maxNesting {
		return nil, &Unsupported{Feature: "very deep nesting"}
	}
	defer func() { p.depth-- }()
	p.take()
	e, err := p.negation()
	return not{of: e}, err
}

func (p *parser) comparison() (expression, error) {
	left, err := p.operand()
	if err != nil {
		return nil, err
	}
	if p.peek().is("NOT") {
		p.take()
		e, err := p.membership(left)
		if e == nil && err == nil {
			return nil, p.unexpected(p.peek())
		}
		return not{of: e}, err
	}
	if e, err := p.membership(left); e != nil || err != nil {
		return e, err
	}
	for _, op := range []string{"=", "!=", "<>", "<=", ">=", "<", ">"} {
		if p.accept(op) {
			right, err := p.operand()
			return comparison{op: op, left: left, right: right}, err
		}
	}
	return left, nil
}

// membership reads IN and BETWEEN, and returns nil when neither follows.
func (p *parser) membership(left expression) (expression, error) {
	switch {
	case p.accept("IN"):
		list, err := p.arguments()
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return nil, &SyntaxError{Near: "IN ()"}
		}
		return oneOf(left, list), nil
	case p.accept("BETWEEN"):
		low, err := p.operand()
		if err != nil {
			return nil, err
		}
		if err := p.expect("AND"); err != nil {
			return nil, err
		}
		high, err := p.operand()
		return logic{and: true, left: comparison{op: ">=", left: left, right: low}, right: comparison{op: "<=", left: left, right: high}}, err
	}
	return nil, nil
}

// oneOf is left = list[0] OR left = list[1] and so on, halved again and again so that long lists do not nest deeply.
func oneOf(left expression, list []expression) expression {
	if len(list) == 1 {
		return comparison{op: "=", left: left, right: list[0]}
	}
	half := len(list) / 2
	return logic{left: oneOf(left, list[:half]), right: oneOf(left, list[half:])}
}

// arguments reads a list in parentheses.
func (p *parser) arguments() ([]expression, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	var list []expression
	if p.accept(")") {
		return nil, nil
	}
	for {
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		list = append(list, e)
		if p.accept(")") {
			return list, nil
		}
		if err := p.expect(","); err != nil {
			return nil, err
		}
	}
}

var constants = map[string]any{"TRUE": true, "FALSE": false, "NULL": nil, "UNDEFINED": undefined{}}

func (p *parser) operand() (expression, error) {
	t := p.take()
	switch t.kind {
	case textToken:
		return literal{t.text}, nil
	case numberToken:
		return literal{t.number}, nil
	case parameterToken:
		return parameter{t.text}, nil
	case markToken:
		return p.marked(t)
	case wordToken:
		if v, ok := constants[strings.ToUpper(t.text)]; ok {
			return literal{v}, nil
		}
		if p.peek().is("(") {
			return p.call(t.text)
		}
		if slices.Contains(unsupportedWords, strings.ToUpper(t.text)) {
			return nil, p.unexpected(t)
		}
		return p.path(t.text)
	}
	return nil, p.unexpected(t)
}

func (p *parser) marked(t token) (expression, error) {
	switch {
	case t.is("("):
		if p.peek().is("SELECT") {
			return nil, &Unsupported{Feature: "a subquery"}
		}
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		return e, p.expect(")")
	case t.is("["):
		return p.arrayOf()
	case t.is("{"):
		return p.objectOf()
	case t.is("-") && p.peek().kind == numberToken:
		return literal{-p.take().number}, nil
	}
	return nil, p.unexpected(t)
}

func (p *parser) path(root string) (expression, error) {
	e := &pathExpression{root: root}
	p.paths = append(p.paths, e)
	for {
		switch {
		case p.accept("."):
			t := p.take()
			if t.kind != wordToken {
				return nil, p.unexpected(t)
			}
			if p.peek().is("(") {
				return nil, &Unsupported{Feature: "a user-defined function"}
			}
			e.steps = append(e.steps, t.text)
		case p.accept("["):
			t := p.take()
			switch t.kind {
			case textToken:
				e.steps = append(e.steps, t.text)
			case numberToken:
				e.steps = append(e.steps, int(t.number))
			default:
				return nil, p.unexpected(t)
			}
			if err := p.expect("]"); err != nil {
				return nil, err
			}
		default:
			return e, nil
		}
	}
}

func (p *parser) call(name string) (expression, error) {
	f, ok := functions[strings.ToUpper(name)]
	if strings.EqualFold(name, "COUNT") {
		ok, p.counting = p.counting, false
	}
	if !ok {
		return nil, &Unsupported{Feature: "the function " + name}
	}
	args, err := p.arguments()
	if err != nil {
		return nil, err
	}
	if len(args) < f.least || len(args) > f.most {
		return nil, &SyntaxError{Near: name}
	}
	return call{function: f, args: args}, nil
}
