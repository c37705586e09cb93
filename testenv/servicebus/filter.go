package servicebus

import (
	"errors"
	"reflect"

	"github.com/orderworker/orderworker/testenv/internal/amqp"
	"github.com/orderworker/orderworker/testenv/internal/sqlrule"
)

// A Filter says which messages a rule selects: [TrueFilter], [FalseFilter], [SQLFilter] or [CorrelationFilter].
type Filter interface {
	// parse returns what decides on a message.
	parse() (func(*view) bool, error)
}

// TrueFilter selects all messages.
type TrueFilter struct{}

func (TrueFilter) parse() (func(*view) bool, error) {
	return func(*view) bool { return true }, nil
}

// FalseFilter selects none.
type FalseFilter struct{}

func (FalseFilter) parse() (func(*view) bool, error) {
	return func(*view) bool { return false }, nil
}

// SQLFilter selects messages for which an expression is true. What it cannot evaluate makes [New] fail.
type SQLFilter struct {
	Expression string
	// Parameters are the values of names in the expression that begin with @: strings, numbers and bools.
	Parameters map[string]any
}

func (f SQLFilter) parse() (func(*view) bool, error) {
	parsed, err := sqlrule.ParseFilter(f.Expression, plainValues(f.Parameters))
	return func(v *view) bool { return parsed.Matches(v) }, err
}

// CorrelationFilter selects messages that have all the values given. Empty fields are not compared, and text is compared
// exactly.
type CorrelationFilter struct {
	ContentType, CorrelationID, MessageID, ReplyTo, ReplyToSessionID, SessionID, Subject, To string
	// Properties are user properties: strings, numbers and bools.
	Properties map[string]any
}

// system are the system properties that the filter compares.
func (f CorrelationFilter) system() map[string]string {
	all := map[string]string{
		"ContentType": f.ContentType, "CorrelationId": f.CorrelationID, "MessageId": f.MessageID, "ReplyTo": f.ReplyTo,
		"ReplyToSessionId": f.ReplyToSessionID, "SessionId": f.SessionID, "Subject": f.Subject, "To": f.To,
	}
	for name, value := range all {
		if value == "" {
			delete(all, name)
		}
	}
	return all
}

func (f CorrelationFilter) parse() (func(*view) bool, error) {
	wanted := map[sqlrule.Name]any{}
	for name, value := range f.system() {
		wanted[sqlrule.Name{System: true, Text: name}] = value
	}
	for name, value := range f.Properties {
		wanted[sqlrule.Name{Text: name}] = plain(value)
	}
	if len(wanted) == 0 {
		return nil, errors.New("a correlation filter needs at least one property")
	}
	return func(v *view) bool {
		for name, value := range wanted {
			if got, ok := v.Value(name); !ok || !reflect.DeepEqual(got, value) {
				return false
			}
		}
		return true
	}, nil
}

func plainValues(m map[string]any) map[string]any {
	values := make(map[string]any, len(m))
	for k, v := range m {
		values[k] = plain(v)
	}
	return values
}

// plain turns a value of AMQP, JSON or Go into one that expressions compare: every whole number into an int64, every other
// number into a float64, and every text into a string.
func plain(v any) any {
	switch v := v.(type) {
	case amqp.Symbol:
		return string(v)
	case amqp.Char:
		return string(rune(v))
	case amqp.UUID:
		return v.String()
	}
	r := reflect.ValueOf(v)
	switch {
	case r.CanInt():
		return r.Int()
	case r.CanUint() && r.Uint() <= 1<<63-1:
		return int64(r.Uint())
	case r.CanUint():
		return float64(r.Uint())
	case r.CanFloat():
		return r.Float()
	}
	return v
}
