package cosmosdb

import "github.com/orderworker/orderworker/testenv/cosmosdb/internal/jsondoc"

// planOf is the plan of a query in the form that the clients read (PartitionedQueryExecutionInfo). All keys are in the one
// range that a container has.
func planOf(s ask) *jsondoc.Object {
	p := s.query.Plan()
	info := jsondoc.NewObject()
	info.Set("distinctType", "None")
	for _, n := range []struct {
		name  string
		value int
	}{{"top", p.Top}, {"offset", p.Offset}, {"limit", p.Limit}} {
		info.Set(n.name, nil)
		if n.value >= 0 {
			info.Set(n.name, float64(n.value))
		}
	}
	info.Set("orderBy", listOf(p.OrderBy))
	info.Set("orderByExpressions", listOf(p.OrderByPath))
	info.Set("groupByExpressions", []any{})
	info.Set("groupByAliases", []any{})
	info.Set("aggregates", []any{})
	if p.Counts {
		info.Set("aggregates", listOf("Count"))
	}
	info.Set("groupByAliasToAggregateType", jsondoc.NewObject())
	info.Set("rewrittenQuery", p.Rewritten)
	info.Set("hasSelectValue", p.Value)
	info.Set("dCountInfo", nil)
	info.Set("hasNonStreamingOrderBy", false)
	all := jsondoc.NewObject()
	all.Set("min", "")
	all.Set("max", "FF")
	all.Set("isMinInclusive", true)
	all.Set("isMaxInclusive", false)
	plan := jsondoc.NewObject()
	plan.Set("partitionedQueryExecutionInfoVersion", 2.0)
	plan.Set("queryInfo", info)
	plan.Set("queryRanges", []any{all})
	return plan
}

// listOf is a list of one text, or an empty one.
func listOf(text string) []any {
	if text == "" {
		return []any{}
	}
	return []any{text}
}
