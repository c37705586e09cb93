package query

import (
	"slices"
	"strings"
)

// Query is a query that has been read.
type Query struct {
	star  bool
	value bool
	count bool
	// partial is a count as a query plan asks for it, whose result clients add to those of other partitions.
	partial bool
	items   []item
	where   expression
	order   expression
	desc    bool
	top     bool // Limit is TOP
	text    clauses

	// Skip and Limit are OFFSET and LIMIT, or TOP. Limit is -1 where there is none.
	Skip, Limit int
}

// clauses are the texts of the parts of a query, without their keywords.
type clauses struct{ selected, alias, where, order string }

// item is one projected value.
type item struct {
	name string
	expr expression
	text string // of the expression
}

// Condition is a condition alone, as in a conditional patch.
type Condition struct{ where expression }

// Parse reads a query.
func Parse(text string) (*Query, error) {
	tokens, err := scan(text)
	if err != nil {
		return nil, err
	}
	p := &parser{source: text, tokens: tokens}
	q := &Query{Limit: -1}
	for _, step := range []func(*Query) error{p.selectClause, p.fromClause, p.whereClause, p.orderClause, p.limitClause} {
		if err := step(q); err != nil {
			return nil, err
		}
	}
	if t := p.peek(); t.kind != endToken {
		return nil, p.unexpected(t)
	}
	q.text.alias = p.alias
	if err := p.bind(q); err != nil {
		return nil, err
	}
	return q, nil
}

// ParseCondition reads "FROM c WHERE ...".
func ParseCondition(text string) (Condition, error) {
	q, err := Parse("SELECT * " + text)
	if err != nil {
		return Condition{}, err
	}
	return Condition{where: q.where}, nil
}

type parser struct {
	source string
	tokens []token
	at     int
	alias  string
	paths  []*pathExpression
	depth  int
	// counting lets the next call be COUNT.
	counting bool
}

// maxNesting bounds how deep expressions may be nested.
const maxNesting = 200

func (p *parser) peek() token { return p.tokens[p.at] }

// since is the text from a token up to the one that was taken last.
func (p *parser) since(t token) string {
	if end := p.tokens[max(0, p.at-1)].end; end > t.start {
		return p.source[t.start:end]
	}
	return ""
}

func (p *parser) take() token {
	t := p.tokens[p.at]
	if t.kind != endToken {
		p.at++
	}
	return t
}

// accept takes the next token when it is the keyword or mark.
func (p *parser) accept(text string) bool {
	if p.peek().is(text) {
		p.at++
		return true
	}
	return false
}

func (p *parser) expect(text string) error {
	if !p.accept(text) {
		return p.unexpected(p.peek())
	}
	return nil
}

var unsupportedWords = []string{"JOIN", "GROUP", "DISTINCT", "LIKE", "EXISTS", "ARRAY", "ESCAPE", "HAVING", "RANK"}

func (p *parser) unexpected(t token) error {
	if t.kind == wordToken && slices.Contains(unsupportedWords, strings.ToUpper(t.text)) {
		return &Unsupported{Feature: strings.ToUpper(t.text)}
	}
	if t.kind == markToken && strings.Contains("+-*/%&|^~||?:{", t.text) {
		return &Unsupported{Feature: "the operator " + t.text}
	}
	return &SyntaxError{Near: t.text}
}

func (p *parser) selectClause(q *Query) error {
	if err := p.expect("SELECT"); err != nil {
		return err
	}
	if p.accept("TOP") {
		n, err := p.natural()
		if err != nil {
			return err
		}
		q.Limit, q.top = n, true
	}
	if p.accept("*") {
		q.star = true
		return nil
	}
	q.value = p.accept("VALUE")
	first := p.peek()
	defer func() { q.text.selected = p.since(first) }()
	switch {
	case q.value && first.is("COUNT"):
		q.count, p.counting = true, true
	case q.value && p.partialCount():
		return p.partial(q)
	}
	return p.selectItems(q)
}

// partialCount reports whether [{"item": COUNT follows.
func (p *parser) partialCount() bool {
	rest := p.tokens[p.at:]
	return len(rest) > 4 && rest[0].is("[") && rest[1].is("{") && rest[2].text == "item" && rest[3].is(":") && rest[4].is("COUNT")
}

// partial reads SELECT VALUE [{"item": COUNT(x)}].
func (p *parser) partial(q *Query) error {
	p.at += 4
	q.count, q.partial, p.counting = true, true, true
	e, err := p.expression()
	q.items = []item{{expr: e}}
	for _, mark := range []string{"}", "]"} {
		if err == nil {
			err = p.expect(mark)
		}
	}
	return err
}

func (p *parser) selectItems(q *Query) error {
	for {
		first := p.peek()
		e, err := p.expression()
		if err != nil {
			return err
		}
		i := item{expr: e, name: p.nameOf(e), text: p.since(first)}
		if p.accept("AS") {
			if i.name = p.take().text; q.value {
				return &SyntaxError{Near: "AS"}
			}
		}
		q.items = append(q.items, i)
		if q.value || !p.accept(",") {
			return nil
		}
	}
}

// nameOf is the member that a projected value gets without an alias; unnamed ones are filled in later.
func (p *parser) nameOf(e expression) string {
	if path, ok := e.(*pathExpression); ok && len(path.steps) > 0 {
		if name, ok := path.steps[len(path.steps)-1].(string); ok {
			return name
		}
	}
	return ""
}

func (p *parser) fromClause(*Query) error {
	if p.peek().kind == endToken {
		return &Unsupported{Feature: "SELECT without FROM"}
	}
	if err := p.expect("FROM"); err != nil {
		return err
	}
	t := p.take()
	if t.kind != wordToken {
		return p.unexpected(t)
	}
	p.alias = t.text
	if p.peek().is(".") || p.peek().is("IN") {
		return &Unsupported{Feature: "FROM over a part of the documents"}
	}
	p.accept("AS")
	if t := p.peek(); t.kind == wordToken && !slices.ContainsFunc([]string{"WHERE", "ORDER", "OFFSET", "JOIN", "GROUP"}, t.is) {
		p.alias = p.take().text
	}
	if p.peek().is("IN") || p.peek().is(",") {
		return &Unsupported{Feature: "FROM over a part of the documents"}
	}
	return nil
}

func (p *parser) whereClause(q *Query) (err error) {
	if p.accept("WHERE") {
		first := p.peek()
		q.where, err = p.expression()
		q.text.where = p.since(first)
	}
	return err
}

func (p *parser) orderClause(q *Query) (err error) {
	if !p.accept("ORDER") {
		return nil
	}
	if err := p.expect("BY"); err != nil {
		return err
	}
	first := p.peek()
	if q.order, err = p.expression(); err != nil {
		return err
	}
	q.text.order = p.since(first)
	if _, ok := q.order.(*pathExpression); !ok {
		return &Unsupported{Feature: "ORDER BY something other than a path"}
	}
	if q.desc = p.accept("DESC"); !q.desc {
		p.accept("ASC")
	}
	if p.peek().is(",") {
		return &Unsupported{Feature: "ORDER BY several paths"}
	}
	return nil
}

func (p *parser) limitClause(q *Query) (err error) {
	if !p.accept("OFFSET") {
		return nil
	}
	if q.Skip, err = p.natural(); err != nil {
		return err
	}
	if err := p.expect("LIMIT"); err != nil {
		return err
	}
	q.Limit, err = p.natural()
	q.top = false
	return err
}

// natural reads a number that is a count.
func (p *parser) natural() (int, error) {
	t := p.take()
	if t.kind == parameterToken {
		return 0, &Unsupported{Feature: "a parameter as a count"}
	}
	if n := int(t.number); t.kind == numberToken && float64(n) == t.number {
		return n, nil
	}
	return 0, p.unexpected(t)
}

// bind checks that every path begins with the alias, which stands after the paths of the SELECT clause.
func (p *parser) bind(q *Query) error {
	for _, path := range p.paths {
		if path.root != p.alias && !strings.EqualFold(path.root, "root") {
			return &SyntaxError{Near: path.root}
		}
	}
	for i, it := range q.items {
		if it.name == "" {
			q.items[i].name = "$" + string(rune('1'+i))
		}
	}
	return nil
}
