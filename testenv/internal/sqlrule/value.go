package sqlrule

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
)

// value reads something that is no comparison.
func (p *parser) value() (node, error) {
	t := p.peek()
	n, err := p.sum()
	if err == nil && n.predicate {
		err = p.fault(t, "a value is expected, and not a comparison")
	}
	return n, err
}

func (p *parser) sum() (node, error) { return p.arithmetic([]string{"+", "-"}, p.product) }

func (p *parser) product() (node, error) { return p.arithmetic([]string{"*", "/", "%"}, p.sign) }

// arithmetic reads values that operators of one rank join, from left to right.
func (p *parser) arithmetic(operators []string, operand func() (node, error)) (node, error) {
	left, err := operand()
	for err == nil && p.peek().kind == symbol && slices.Contains(operators, p.peek().text) {
		op := p.peek()
		p.next++
		var right node
		if right, err = operand(); err != nil {
			break
		}
		if left.predicate || right.predicate {
			return node{}, p.fault(op, "%s joins values, and there is a comparison", op)
		}
		a, b := left.eval, right.eval
		left = node{eval: func(m Message) any { return calculate(op.text, a(m), b(m)) }}
	}
	return left, err
}

func (p *parser) sign() (node, error) {
	t := p.peek()
	if !p.take("-") && !p.take("+") {
		return p.primary()
	}
	n, err := p.nested(p.sign)
	if err == nil && n.predicate {
		err = p.fault(t, "%s stands before a value", t)
	}
	if err != nil || t.text == "+" {
		return n, err
	}
	return node{eval: func(m Message) any { return calculate("-", int64(0), n.eval(m)) }}, nil
}

func (p *parser) primary() (node, error) {
	t := p.peek()
	constant := func(v any) (node, error) {
		p.next++
		return node{eval: func(Message) any { return v }}, nil
	}
	switch {
	case t.kind == text:
		return constant(t.text)
	case t.kind == number:
		v, err := parseNumber(t.text)
		if err != nil {
			return node{}, p.fault(t, "the number %s is too large", t.text)
		}
		return constant(v)
	case t.kind == parameter:
		v, ok := p.parameters[t.text]
		if !ok {
			return node{}, p.fault(t, "the parameter %s has no value", t.text)
		}
		return constant(v)
	case t.is("true"), t.is("false"):
		return constant(t.is("true"))
	case t.is("null"):
		return constant(nil)
	case p.take("("):
		n, err := p.nested(p.or)
		if err != nil {
			return node{}, err
		}
		return n, p.expect(")")
	case t.kind == word && p.tokens[p.next+1].is("("):
		return p.function(t)
	}
	name, err := p.property()
	return node{eval: func(m Message) any { return value(m, name) }}, err
}

func parseNumber(s string) (any, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, nil
	}
	return strconv.ParseFloat(s, 64)
}

func value(m Message, n Name) any {
	if v, ok := m.Value(n); ok {
		return v
	}
	return unknown{}
}

// function reads a call.
func (p *parser) function(t token) (node, error) {
	p.next += 2
	switch {
	case t.is("newid"):
		return node{eval: func(Message) any { return newID() }}, p.expect(")")
	case t.is("property"), t.is("p"):
		n, err := p.nested(p.value)
		if err != nil {
			return node{}, err
		}
		return node{eval: func(m Message) any {
			name, ok := n.eval(m).(string)
			if !ok {
				return unknown{}
			}
			return value(m, Name{Text: name})
		}}, p.expect(")")
	}
	return node{}, p.fault(t, "the function %s is not supported; supported are newid and property, or p", t)
}

// newID returns a random uuid of version 4 as text.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
