package infra_test

import (
	"fmt"
	"slices"
	"time"
)

// kqlAggregate computes columns from the rows of one group.
type kqlAggregate struct {
	names  []string
	needs  []string
	values func(rows []kqlRow, now time.Time) ([]any, error)
}

// summarize reads aggregates, by, columns.
func (p *kqlParser) summarize() kqlOperator {
	aggregates := []kqlAggregate{p.aggregate()}
	for p.accept(",") {
		aggregates = append(aggregates, p.aggregate())
	}
	p.expect("by")
	by := p.named(false)
	return func(in kqlTable, _ map[string]kqlTable, now time.Time) (kqlTable, error) {
		var out kqlTable
		for _, n := range by {
			out.columns = append(out.columns, n.name)
			if err := in.known(n.columns); err != nil {
				return out, err
			}
		}
		for _, a := range aggregates {
			out.columns = append(out.columns, a.names...)
			if err := in.known(a.needs); err != nil {
				return out, err
			}
		}
		groups, err := grouped(in.rows, by, now)
		for _, g := range groups {
			for _, a := range aggregates {
				values, failed := a.values(g.rows, now)
				if failed != nil {
					return out, failed
				}
				for i, name := range a.names {
					g.key[name] = values[i]
				}
			}
			out.rows = append(out.rows, g.key)
		}
		return out, err
	}
}

type kqlGroup struct {
	key  kqlRow
	rows []kqlRow
}

// grouped returns the groups in the order of their first rows.
func grouped(rows []kqlRow, by []kqlNamed, now time.Time) ([]*kqlGroup, error) {
	var all []*kqlGroup
	for _, r := range rows {
		key := kqlRow{}
		for _, n := range by {
			v, err := n.value(r, now)
			if err != nil {
				return nil, err
			}
			key[n.name] = v
		}
		i := slices.IndexFunc(all, func(g *kqlGroup) bool {
			return !slices.ContainsFunc(by, func(n kqlNamed) bool { return g.key[n.name] != key[n.name] })
		})
		if i < 0 {
			i, all = len(all), append(all, &kqlGroup{key: key})
		}
		all[i].rows = append(all[i].rows, r)
	}
	return all, nil
}

// aggregate reads one of count, min, max, take_any and arg_max. All but arg_max must be named.
func (p *kqlParser) aggregate() kqlAggregate {
	name := p.name()
	if name == "arg_max" {
		return p.argMax()
	}
	p.expect("=")
	function := p.name()
	p.expect("(")
	arguments := p.list()
	if function == "count" && len(arguments) == 0 {
		return kqlAggregate{names: []string{name}, values: func(rows []kqlRow, _ time.Time) ([]any, error) {
			return []any{int64(len(rows))}, nil
		}}
	}
	better, ok := map[string]int{"min": -1, "max": 1, "take_any": 0}[function]
	if !ok || len(arguments) != 1 {
		p.fail("aggregate %s with %d arguments is unknown", function, len(arguments))
		return kqlAggregate{}
	}
	of := arguments[0]
	return kqlAggregate{names: []string{name}, needs: of.columns, values: func(rows []kqlRow, now time.Time) ([]any, error) {
		best, err := bestOf(rows, of, better, now)
		if err != nil {
			return nil, err
		}
		v, err := of.value(best, now)
		return []any{v}, err
	}}
}

// argMax reads the columns of the row in which the first of them is greatest.
func (p *kqlParser) argMax() kqlAggregate {
	p.expect("(")
	columns := []string{p.name()}
	for p.accept(",") {
		columns = append(columns, p.name())
	}
	p.expect(")")
	of := kqlExpression{value: func(r kqlRow, _ time.Time) (any, error) { return r[columns[0]], nil }}
	return kqlAggregate{names: columns, needs: columns, values: func(rows []kqlRow, now time.Time) ([]any, error) {
		best, err := bestOf(rows, of, 1, now)
		values := make([]any, len(columns))
		for i, c := range columns {
			values[i] = best[c]
		}
		return values, err
	}}
}

// bestOf returns the first row whose value no other row surpasses in the wanted direction, 0 being none.
func bestOf(rows []kqlRow, of kqlExpression, direction int, now time.Time) (kqlRow, error) {
	best := rows[0]
	for _, r := range rows[1:] {
		a, err := of.value(best, now)
		if err != nil {
			return nil, err
		}
		b, err := of.value(r, now)
		if err != nil {
			return nil, err
		}
		c, known, err := compareKQL(b, a)
		if err != nil {
			return nil, fmt.Errorf("%w in an aggregate", err)
		}
		if known && direction != 0 && c*direction > 0 || a == nil {
			best = r
		}
	}
	return best, nil
}
