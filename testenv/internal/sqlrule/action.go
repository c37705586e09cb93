package sqlrule

// An Action is a parsed action: statements that are carried out one after the other.
type Action struct{ statements []statement }

// A statement sets a property to a value, or removes it when there is none.
type statement struct {
	name  Name
	value func(Message) any // nil: remove
}

// Editable is a message that an action changes.
type Editable interface {
	Message
	// Set gives a property a value of one of the types of [Message.Value].
	Set(n Name, value any)
	// Remove takes a property away. It may not exist.
	Remove(n Name)
}

// ParseAction parses an action. Its parameters and errors are those of [ParseFilter].
func ParseAction(s string, parameters map[string]any) (Action, error) {
	p, err := parse(s, parameters)
	if err != nil {
		return Action{}, err
	}
	var a Action
	for p.peek().kind != end {
		st, err := p.statement()
		if err != nil {
			return Action{}, err
		}
		a.statements = append(a.statements, st)
		for p.take(";") {
		}
	}
	if len(a.statements) == 0 {
		return Action{}, p.fault(p.peek(), "SET or REMOVE is expected, not the end")
	}
	return a, nil
}

func (p *parser) statement() (statement, error) {
	t := p.peek()
	remove := p.take("remove")
	if !remove && !p.take("set") {
		return statement{}, p.fault(t, "SET or REMOVE is expected, not %s", t)
	}
	name, err := p.property()
	if err != nil || remove {
		return statement{name: name}, err
	}
	if err := p.expect("="); err != nil {
		return statement{}, err
	}
	n, err := p.value()
	return statement{name, n.eval}, err
}

// Apply carries out the action. A property that is set to something unknown is left as it is.
func (a Action) Apply(m Editable) {
	for _, st := range a.statements {
		if st.value == nil {
			m.Remove(st.name)
			continue
		}
		if v := st.value(m); v != (unknown{}) {
			m.Set(st.name, v)
		}
	}
}
