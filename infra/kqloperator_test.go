package infra_test

import (
	"fmt"
	"slices"
	"time"
)

// kqlTable is the input and the output of an operator.
type kqlTable struct {
	columns []string
	rows    []kqlRow
}

// kqlPipeline computes a table from the tables of the workspace.
type kqlPipeline func(tables map[string]kqlTable, now time.Time) (kqlTable, error)

// kqlOperator computes a table from the one before it.
type kqlOperator func(in kqlTable, tables map[string]kqlTable, now time.Time) (kqlTable, error)

// kqlNamed is name = expression.
type kqlNamed struct {
	name string
	kqlExpression
}

// runKQL computes a query over the tables of a workspace, or refuses what it does not know.
func runKQL(query string, tables map[string]kqlTable, now time.Time) (kqlTable, error) {
	tokens, err := kqlTokens(query)
	if err != nil {
		return kqlTable{}, err
	}
	p := &kqlParser{tokens: tokens, lets: map[string]kqlPipeline{}}
	for p.accept("let") {
		name := p.name()
		p.expect("=")
		p.lets[name] = p.pipeline()
		p.expect(";")
	}
	run := p.pipeline()
	if p.peek() != (kqlToken{}) {
		p.fail("%q after the end", p.peek().text)
	}
	if p.err != nil {
		return kqlTable{}, p.err
	}
	return run(tables, now)
}

// pipeline reads a source and the operators after it.
func (p *kqlParser) pipeline() kqlPipeline {
	source := p.source()
	var operators []kqlOperator
	for p.accept("|") {
		operators = append(operators, p.operator())
	}
	return func(tables map[string]kqlTable, now time.Time) (kqlTable, error) {
		t, err := source(tables, now)
		for _, o := range operators {
			if err != nil {
				break
			}
			t, err = o(t, tables, now)
		}
		return t, err
	}
}

func (p *kqlParser) source() kqlPipeline {
	if p.accept("(") {
		inner := p.pipeline()
		p.expect(")")
		return inner
	}
	name := p.name()
	if name == "union" {
		return p.union()
	}
	if inner, ok := p.lets[name]; ok {
		return inner
	}
	return func(tables map[string]kqlTable, _ time.Time) (kqlTable, error) {
		t, ok := tables[name]
		if !ok {
			return t, fmt.Errorf("kql: there is no table %s", name)
		}
		return t, nil
	}
}

// union reads sources that must have the same columns.
func (p *kqlParser) union() kqlPipeline {
	sources := []kqlPipeline{p.source()}
	for p.accept(",") {
		sources = append(sources, p.source())
	}
	return func(tables map[string]kqlTable, now time.Time) (kqlTable, error) {
		var all kqlTable
		for i, s := range sources {
			t, err := s(tables, now)
			if err != nil {
				return t, err
			}
			if i > 0 && !slices.Equal(all.columns, t.columns) {
				return t, fmt.Errorf("kql: union of %v and %v", all.columns, t.columns)
			}
			all.columns, all.rows = t.columns, append(slices.Clip(all.rows), t.rows...)
		}
		return all, nil
	}
}

func (p *kqlParser) operator() kqlOperator {
	switch name := p.name(); name {
	case "where":
		return where(p.expression())
	case "extend":
		return extend(p.named(true))
	case "project":
		return project(p.named(false))
	case "summarize":
		return p.summarize()
	case "join":
		return p.join()
	case "order":
		p.expect("by")
		return p.order()
	default:
		p.fail("operator %s is unknown", name)
		return nil
	}
}

// named reads name = expression, ...; a column may stand for itself unless names must be given.
func (p *kqlParser) named(must bool) []kqlNamed {
	var all []kqlNamed
	for {
		name := p.name()
		e := kqlExpression{columns: []string{name}, value: func(r kqlRow, _ time.Time) (any, error) { return r[name], nil }}
		if p.accept("=") {
			e = p.expression()
		} else if must {
			p.fail("%s has no expression", name)
		}
		all = append(all, kqlNamed{name, e})
		if !p.accept(",") {
			return all
		}
	}
}

// known refuses columns that the table lacks.
func (t kqlTable) known(columns []string) error {
	for _, c := range columns {
		if !slices.Contains(t.columns, c) {
			return fmt.Errorf("kql: there is no column %s among %v", c, t.columns)
		}
	}
	return nil
}
