package sqlrule

import "slices"

// comparison reads a comparison, or what one can be made of.
func (p *parser) comparison() (node, error) {
	t := p.peek()
	if p.take("exists") {
		return p.exists()
	}
	left, err := p.sum()
	if err != nil || left.predicate {
		return left, err
	}
	if op := p.peek(); op.kind == symbol && slices.Contains([]string{"=", "<>", "!=", ">", ">=", "<", "<="}, op.text) {
		p.next++
		return p.compare(left, op)
	}
	if p.take("is") {
		return p.isNull(t)
	}
	not := p.take("not")
	var n node
	switch op := p.peek(); {
	case p.take("in"):
		n, err = p.in(left)
	case p.take("like"):
		n, err = p.like(left)
	case not:
		err = p.fault(op, "IN or LIKE is expected, not %s", op)
	default:
		return left, nil
	}
	if err == nil && not {
		return node{true, func(m Message) any { return negation(n.eval(m)) }}, nil
	}
	return n, err
}

func (p *parser) exists() (node, error) {
	if err := p.expect("("); err != nil {
		return node{}, err
	}
	name, err := p.property()
	if err == nil {
		err = p.expect(")")
	}
	return node{true, func(m Message) any {
		_, ok := m.Value(name)
		return ok
	}}, err
}

// isNull reads what follows IS. The property before it was read as a value, and is read again for its name.
func (p *parser) isNull(start token) (node, error) {
	not := p.take("not")
	if err := p.expect("null"); err != nil {
		return node{}, err
	}
	after := p.next
	p.next = slices.IndexFunc(p.tokens, func(t token) bool { return t.at == start.at })
	name, err := p.property()
	if err == nil && !p.peek().is("is") {
		err = p.fault(start, "IS NULL stands behind the name of a property")
	}
	p.next = after
	return node{true, func(m Message) any {
		v, ok := m.Value(name)
		return (ok && v != nil) == not
	}}, err
}

func (p *parser) compare(left node, op token) (node, error) {
	right, err := p.sum()
	if err != nil {
		return node{}, err
	}
	if right.predicate {
		return node{}, p.fault(op, "behind %s a value is expected, and not a comparison", op)
	}
	return node{true, func(m Message) any { return compare(op.text, left.eval(m), right.eval(m)) }}, nil
}

func (p *parser) in(left node) (node, error) {
	if err := p.expect("("); err != nil {
		return node{}, err
	}
	var list []node
	for len(list) == 0 || p.take(",") {
		n, err := p.value()
		if err != nil {
			return node{}, err
		}
		list = append(list, n)
	}
	return node{true, func(m Message) any {
		v, result := left.eval(m), any(false)
		for _, n := range list {
			result = disjunction(result, compare("=", v, n.eval(m)))
		}
		return result
	}}, p.expect(")")
}

func (p *parser) like(left node) (node, error) {
	pattern, err := p.value()
	if err != nil {
		return node{}, err
	}
	escape := node{eval: func(Message) any { return "" }}
	if p.take("escape") {
		if escape, err = p.value(); err != nil {
			return node{}, err
		}
	}
	return node{true, func(m Message) any {
		s, ok1 := left.eval(m).(string)
		pat, ok2 := pattern.eval(m).(string)
		esc, ok3 := escape.eval(m).(string)
		if !ok1 || !ok2 || !ok3 || len([]rune(esc)) > 1 {
			return unknown{}
		}
		return matches([]rune(s), wildcards(pat, esc))
	}}, nil
}
