package infra_test

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// kqlRow is one row. A value is nil, string, int64, bool, time.Time, time.Duration or kqlDynamic.
type kqlRow map[string]any

// kqlExpression is computed for one row at a time. Its columns must exist, also where there is no row.
type kqlExpression struct {
	columns []string
	value   func(r kqlRow, now time.Time) (any, error)
}

func constant(v any) kqlExpression {
	return kqlExpression{value: func(kqlRow, time.Time) (any, error) { return v, nil }}
}

// combined computes an expression from the values of others.
func combined(of []kqlExpression, f func(values []any, now time.Time) (any, error)) kqlExpression {
	var columns []string
	for _, e := range of {
		columns = append(columns, e.columns...)
	}
	return kqlExpression{columns: columns, value: func(r kqlRow, now time.Time) (any, error) {
		values := make([]any, len(of))
		for i, e := range of {
			v, err := e.value(r, now)
			if err != nil {
				return nil, err
			}
			values[i] = v
		}
		return f(values, now)
	}}
}

// expression reads or, and, comparison, operand: from loose to tight.
func (p *kqlParser) expression() kqlExpression {
	return p.junction("or", func() kqlExpression { return p.junction("and", p.comparison) })
}

// junction reads operands between a word. Null counts as false, as it does in where.
func (p *kqlParser) junction(word string, operand func() kqlExpression) kqlExpression {
	all := []kqlExpression{operand()}
	for p.accept(word) {
		all = append(all, operand())
	}
	if len(all) == 1 {
		return all[0]
	}
	return combined(all, func(values []any, _ time.Time) (any, error) {
		truths := make([]bool, len(values))
		for i, v := range values {
			b, ok := v.(bool)
			if !ok && v != nil {
				return nil, fmt.Errorf("kql: %s of %T", word, v)
			}
			truths[i] = b
		}
		if word == "or" {
			return slices.Contains(truths, true), nil
		}
		return !slices.Contains(truths, false), nil
	})
}

func (p *kqlParser) comparison() kqlExpression {
	left := p.operand()
	if p.accept("in") {
		p.expect("(")
		list := append([]kqlExpression{left}, p.list()...)
		return combined(list, func(values []any, _ time.Time) (any, error) {
			for _, v := range values[1:] {
				if c, known, err := compareKQL(values[0], v); err != nil || known && c == 0 {
					return err == nil, err
				}
			}
			return false, nil
		})
	}
	holds, ok := map[string]func(c int) bool{
		"==": func(c int) bool { return c == 0 }, "!=": func(c int) bool { return c != 0 },
		"<": func(c int) bool { return c < 0 }, "<=": func(c int) bool { return c <= 0 },
		">": func(c int) bool { return c > 0 }, ">=": func(c int) bool { return c >= 0 },
	}[p.peek().text]
	if !ok || p.peek().kind != "sign" {
		return left
	}
	p.next()
	return combined([]kqlExpression{left, p.operand()}, func(values []any, _ time.Time) (any, error) {
		c, known, err := compareKQL(values[0], values[1])
		if err != nil || !known {
			return nil, err
		}
		return holds(c), nil
	})
}

// list reads expressions up to a closing parenthesis.
func (p *kqlParser) list() []kqlExpression {
	var all []kqlExpression
	for p.err == nil && !p.accept(")") {
		if len(all) > 0 {
			p.expect(",")
		}
		all = append(all, p.expression())
	}
	return all
}

func (p *kqlParser) operand() kqlExpression {
	if p.accept("(") {
		e := p.expression()
		p.expect(")")
		return e
	}
	t := p.next()
	switch t.kind {
	case "text":
		return constant(t.text)
	case "number":
		n, err := strconv.ParseInt(t.text, 10, 64)
		if err != nil {
			p.fail("%v", err)
		}
		return constant(n)
	case "span":
		return constant(p.span(t.text))
	case "name":
		if p.accept("(") {
			return p.call(t.text, p.list())
		}
		return p.members(kqlExpression{columns: []string{t.text}, value: func(r kqlRow, _ time.Time) (any, error) { return r[t.text], nil }})
	}
	p.fail("%q where a value belongs", t.text)
	return constant(nil)
}

// span reads a length of time. Kusto has days, Go has not.
func (p *kqlParser) span(text string) time.Duration {
	if n, isDays := cutSuffixNumber(text, "d"); isDays {
		return time.Duration(n) * 24 * time.Hour
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		p.fail("%v", err)
	}
	return d
}

func cutSuffixNumber(text, suffix string) (int, bool) {
	last := len(text) - len(suffix)
	n, err := strconv.Atoi(text[:last])
	return n, err == nil && text[last:] == suffix
}

// members reads .name after a value of type dynamic.
func (p *kqlParser) members(of kqlExpression) kqlExpression {
	for p.accept(".") {
		name := p.name()
		of = combined([]kqlExpression{of}, func(values []any, _ time.Time) (any, error) {
			return memberOf(values[0], name)
		})
	}
	return of
}
