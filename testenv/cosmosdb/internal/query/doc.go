// Package query reads and evaluates a subset of the Cosmos DB query language over one document at a time.
//
// Does: SELECT *, SELECT VALUE, projections with aliases, arrays and objects of expressions; FROM with one alias; WHERE with = != <> < <= > >=,
// AND, OR, NOT, IN, BETWEEN, parameters and the functions listed in functions.go; ORDER BY one path; TOP, OFFSET and
// LIMIT; SELECT VALUE COUNT(...). Does not: JOIN, IN over arrays, subqueries, arithmetic, GROUP BY, LIKE, other aggregates,
// DISTINCT, user-defined functions. What it does not do is an [Unsupported] error, never a wrong answer; what is no query at all is
// a [SyntaxError].
//
// Evaluation has the three-valued logic of the service: a missing property is undefined, a comparison of values of
// different types is undefined, and only true lets a document through.
package query

// Unsupported is returned for a query that the service would run and this package does not.
type Unsupported struct {
	// Feature is what the query uses.
	Feature string
}

func (e *Unsupported) Error() string {
	return "the query uses " + e.Feature + ", which is not implemented"
}

// SyntaxError is returned for a text that is not a query.
type SyntaxError struct {
	// Near is the text at which reading stopped.
	Near string
}

func (e *SyntaxError) Error() string { return "syntax error in the query near " + e.Near }
