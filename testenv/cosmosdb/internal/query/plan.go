package query

import (
	"strconv"
	"strings"

	"github.com/orderworker/orderworker/testenv/cosmosdb/internal/jsondoc"
)

// orderFilter is where a client puts the condition by which it goes on after a page.
const orderFilter = "{documentdb-formattableorderbyquery-filter}"

// Plan says how a client runs a query over several partitions: the query for each partition, and how to join the results.
type Plan struct {
	// OrderBy is Ascending or Descending, or empty; OrderByPath is the path.
	OrderBy, OrderByPath string
	// Counts tells that the counts of the partitions are to be added.
	Counts bool
	// Value tells that the results are those of SELECT VALUE.
	Value bool
	// Top, Offset and Limit are -1 where the query has none.
	Top, Offset, Limit int
	// Rewritten is the query for one partition, or "" for the query as it is.
	Rewritten string
}

// Plan returns the plan of the query.
func (q *Query) Plan() Plan {
	p := Plan{Counts: q.count, Value: q.value, Top: -1, Offset: -1, Limit: -1}
	switch {
	case q.top:
		p.Top = q.Limit
	case q.Limit >= 0:
		p.Offset, p.Limit = q.Skip, q.Limit
	}
	if q.order != nil {
		p.OrderBy, p.OrderByPath = "Ascending", q.text.order
		if q.desc {
			p.OrderBy = "Descending"
		}
	}
	if q.count || q.order != nil || p.Limit >= 0 {
		p.Rewritten = q.rewritten()
	}
	return p
}

// rewritten is the query for one partition. Ordered results carry what they are ordered by beside their payload.
func (q *Query) rewritten() string {
	var b strings.Builder
	b.WriteString("SELECT ")
	if q.top {
		b.WriteString("TOP " + strconv.Itoa(q.Limit) + " ")
	}
	where := q.text.where
	switch {
	case q.count:
		b.WriteString(`VALUE [{"item": ` + q.text.selected + `}]`)
	case q.order != nil:
		b.WriteString(q.text.alias + `._rid, [{"item": ` + q.text.order + `}] AS orderByItems, ` + q.payload() + ` AS payload`)
		where = conjunction(where)
	default:
		b.WriteString(q.selection())
	}
	b.WriteString(" FROM " + q.text.alias)
	if where != "" {
		b.WriteString(" WHERE " + where)
	}
	if q.order != nil {
		b.WriteString(" ORDER BY " + q.text.order)
		if q.desc {
			b.WriteString(" DESC")
		}
	}
	if !q.top && q.Limit >= 0 {
		b.WriteString(" OFFSET 0 LIMIT " + strconv.Itoa(q.Skip+q.Limit))
	}
	return b.String()
}

func conjunction(where string) string {
	if where == "" {
		return "(" + orderFilter + ")"
	}
	return "((" + where + ") AND (" + orderFilter + "))"
}

// selection is the SELECT clause as it was.
func (q *Query) selection() string {
	switch {
	case q.star:
		return "*"
	case q.value:
		return "VALUE " + q.text.selected
	}
	return q.text.selected
}

// payload is what the SELECT clause makes of a document, as one expression.
func (q *Query) payload() string {
	switch {
	case q.star:
		return q.text.alias
	case q.value:
		return q.text.selected
	}
	members := make([]string, len(q.items))
	for i, it := range q.items {
		members[i] = jsondoc.String(it.name) + ": " + it.text
	}
	return "{" + strings.Join(members, ", ") + "}"
}

// Counted is the result of a count.
func (q *Query) Counted(n int) any {
	if !q.partial {
		return float64(n)
	}
	o := jsondoc.NewObject()
	o.Set("item", float64(n))
	return []any{o}
}
