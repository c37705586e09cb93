package sqlrule

import (
	"fmt"
	"slices"
	"strings"
)

// systemProperties are the names that follow sys. in an expression. Label and Subject are one.
var systemProperties = []string{
	"ContentType", "CorrelationId", "Label", "MessageId", "ReplyTo", "ReplyToSessionId", "SessionId", "Subject", "To",
}

// A Name is the name of a property.
type Name struct {
	// System tells that it is one of those listed in property.go, as they are spelt there.
	System bool
	Text   string
}

func (n Name) String() string {
	if n.System {
		return "sys." + n.Text
	}
	return n.Text
}

// Message is what an expression is evaluated on.
type Message interface {
	// Value returns the value of a property: nil, bool, int64, float64, string, or another type that nothing can be done with.
	// Without the property it reports false. The name of a user property does not depend on case.
	Value(n Name) (any, bool)
}

// property reads a name with or without its scope.
func (p *parser) property() (Name, error) {
	first, err := p.name()
	if err != nil {
		return Name{}, err
	}
	scope := p.tokens[p.next-1]
	if !p.take(".") {
		return Name{Text: first}, nil
	}
	second, err := p.name()
	switch {
	case err != nil:
		return Name{}, err
	case strings.EqualFold(scope.text, "user"):
		return Name{Text: second}, nil
	case !strings.EqualFold(scope.text, "sys"):
		return Name{}, p.fault(scope, "the scope %s is neither sys nor user", scope)
	}
	i := slices.IndexFunc(systemProperties, func(s string) bool { return strings.EqualFold(s, second) })
	if i < 0 {
		return Name{}, p.fault(scope, "the system property %q is not supported; supported are %s", second, strings.Join(systemProperties, ", "))
	}
	return Name{System: true, Text: systemProperties[i]}, nil
}

// keywords cannot be names without a delimiter.
var keywords = []string{"and", "or", "not", "is", "null", "in", "like", "escape", "exists", "true", "false", "set", "remove"}

func (p *parser) name() (string, error) {
	t := p.peek()
	reserved := t.kind == word && slices.Contains(keywords, strings.ToLower(t.text))
	if t.kind != quoted && t.kind != word || reserved {
		return "", p.fault(t, "the name of a property is expected, not %s", t)
	}
	p.next++
	return t.text, nil
}

func (p *parser) fault(t token, format string, args ...any) error {
	return fmt.Errorf("at %d: %s", t.at+1, fmt.Sprintf(format, args...))
}
