package query

import "github.com/orderworker/orderworker/testenv/cosmosdb/internal/jsondoc"

type (
	arrayOf  []expression
	objectOf []item
)

// arrayOf reads the rest of [a, b].
func (p *parser) arrayOf() (expression, error) {
	var list arrayOf
	for !p.accept("]") {
		if len(list) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// objectOf reads the rest of {"name": a, other: b}.
func (p *parser) objectOf() (expression, error) {
	var members objectOf
	for !p.accept("}") {
		if len(members) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}
		name := p.take()
		if name.kind != textToken && name.kind != wordToken {
			return nil, p.unexpected(name)
		}
		if err := p.expect(":"); err != nil {
			return nil, err
		}
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		members = append(members, item{name: name.text, expr: e})
	}
	return members, nil
}

// eval leaves out elements that are undefined.
func (a arrayOf) eval(e environment) any {
	list := []any{}
	for _, element := range a {
		if v := element.eval(e); v != (undefined{}) {
			list = append(list, v)
		}
	}
	return list
}

// eval leaves out members that are undefined.
func (o objectOf) eval(e environment) any {
	object := jsondoc.NewObject()
	for _, m := range o {
		if v := m.expr.eval(e); v != (undefined{}) {
			object.Set(m.name, v)
		}
	}
	return object
}
