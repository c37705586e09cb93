package infra_test

import (
	"maps"
	"slices"
	"time"
)

func where(condition kqlExpression) kqlOperator {
	return func(in kqlTable, _ map[string]kqlTable, now time.Time) (kqlTable, error) {
		out := kqlTable{columns: in.columns}
		if err := in.known(condition.columns); err != nil {
			return out, err
		}
		for _, r := range in.rows {
			v, err := condition.value(r, now)
			if err != nil {
				return out, err
			}
			if v == true {
				out.rows = append(out.rows, r)
			}
		}
		return out, nil
	}
}

func extend(named []kqlNamed) kqlOperator {
	return func(in kqlTable, tables map[string]kqlTable, now time.Time) (kqlTable, error) {
		all := make([]kqlNamed, 0, len(in.columns)+len(named))
		for _, c := range in.columns {
			if !slices.ContainsFunc(named, func(n kqlNamed) bool { return n.name == c }) {
				all = append(all, kqlNamed{c, kqlExpression{value: func(r kqlRow, _ time.Time) (any, error) { return r[c], nil }}})
			}
		}
		return project(append(all, named...))(in, tables, now)
	}
}

func project(named []kqlNamed) kqlOperator {
	return func(in kqlTable, _ map[string]kqlTable, now time.Time) (kqlTable, error) {
		var out kqlTable
		for _, n := range named {
			if err := in.known(n.columns); err != nil {
				return out, err
			}
			out.columns = append(out.columns, n.name)
		}
		for _, r := range in.rows {
			made := kqlRow{}
			for _, n := range named {
				v, err := n.value(r, now)
				if err != nil {
					return out, err
				}
				made[n.name] = v
			}
			out.rows = append(out.rows, made)
		}
		return out, nil
	}
}

// order reads columns; the default of Kusto is descending.
func (p *kqlParser) order() kqlOperator {
	column := p.name()
	sign := -1
	if p.accept("asc") {
		sign = 1
	} else {
		p.accept("desc")
	}
	return func(in kqlTable, _ map[string]kqlTable, _ time.Time) (kqlTable, error) {
		if err := in.known([]string{column}); err != nil {
			return in, err
		}
		var failed error
		rows := slices.Clone(in.rows)
		slices.SortStableFunc(rows, func(a, b kqlRow) int {
			c, _, err := compareKQL(a[column], b[column])
			if err != nil {
				failed = err
			}
			return sign * c
		})
		return kqlTable{in.columns, rows}, failed
	}
}

// join reads kind=leftouter source on column. The column comes from the left side; a row without a partner has nulls.
func (p *kqlParser) join() kqlOperator {
	for _, word := range []string{"kind", "=", "leftouter"} {
		p.expect(word)
	}
	right := p.source()
	p.expect("on")
	column := p.name()
	return func(in kqlTable, tables map[string]kqlTable, now time.Time) (kqlTable, error) {
		out := kqlTable{columns: slices.Clone(in.columns)}
		partners, err := right(tables, now)
		if err == nil {
			err = partners.known([]string{column})
		}
		if err == nil {
			err = in.known([]string{column})
		}
		for _, c := range partners.columns {
			if slices.Contains(out.columns, c) {
				c += "1" // as Kusto names the second of two
			}
			out.columns = append(out.columns, c)
		}
		for _, r := range in.rows {
			out.rows = append(out.rows, joined(r, in.columns, partners, column)...)
		}
		return out, err
	}
}

func joined(r kqlRow, columns []string, partners kqlTable, column string) []kqlRow {
	var out []kqlRow
	for _, partner := range partners.rows {
		if partner[column] != r[column] {
			continue
		}
		made := maps.Clone(r)
		for c, v := range partner {
			if slices.Contains(columns, c) {
				c += "1"
			}
			made[c] = v
		}
		out = append(out, made)
	}
	if out == nil {
		out = []kqlRow{r}
	}
	return out
}
