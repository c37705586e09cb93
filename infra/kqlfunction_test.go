package infra_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// kqlDynamic is a decoded JSON value.
type kqlDynamic struct{ value any }

type kqlFunction struct {
	arguments int
	result    func(values []any, now time.Time) (any, error)
}

// kqlFunctions are those that the queries use. Each follows https://learn.microsoft.com/kusto/query.
func kqlFunctions() map[string]kqlFunction {
	return map[string]kqlFunction{
		"now":        {0, func(_ []any, now time.Time) (any, error) { return now, nil }},
		"ago":        {1, func(v []any, now time.Time) (any, error) { return ago(v[0], now) }},
		"bin":        {2, func(v []any, _ time.Time) (any, error) { return bin(v[0], v[1]) }},
		"parse_json": {1, func(v []any, _ time.Time) (any, error) { return parseJSON(v[0]) }},
		"tostring":   {1, func(v []any, _ time.Time) (any, error) { return toString(v[0]) }},
		"tolong":     {1, func(v []any, _ time.Time) (any, error) { return toLong(v[0]) }},
		"isnull":     {1, func(v []any, _ time.Time) (any, error) { return v[0] == nil || v[0] == kqlDynamic{}, nil }},
		"isempty":    {1, func(v []any, _ time.Time) (any, error) { return v[0] == nil || v[0] == "", nil }},
	}
}

func (p *kqlParser) call(name string, arguments []kqlExpression) kqlExpression {
	f, ok := kqlFunctions()[name]
	if !ok || f.arguments != len(arguments) {
		p.fail("function %s with %d arguments is unknown", name, len(arguments))
		return constant(nil)
	}
	return p.members(combined(arguments, f.result))
}

func ago(v any, now time.Time) (any, error) {
	d, ok := v.(time.Duration)
	if !ok {
		return nil, fmt.Errorf("kql: ago of %T", v)
	}
	return now.Add(-d), nil
}

func bin(v, width any) (any, error) {
	at, isTime := v.(time.Time)
	d, isSpan := width.(time.Duration)
	if !isTime || !isSpan {
		return nil, fmt.Errorf("kql: bin of %T by %T", v, width)
	}
	return at.Truncate(d), nil
}

// parseJSON takes what is no JSON for a string, as Kusto does.
func parseJSON(v any) (any, error) {
	text, ok := v.(string)
	if !ok {
		return nil, fmt.Errorf("kql: parse_json of %T", v)
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil || d.More() {
		value = text
	}
	return kqlDynamic{value}, nil
}

// memberOf is null where there is no such member, or no object.
func memberOf(v any, name string) (any, error) {
	d, ok := v.(kqlDynamic)
	if !ok {
		return nil, fmt.Errorf("kql: .%s of %T", name, v)
	}
	object, _ := d.value.(map[string]any)
	return kqlDynamic{object[name]}, nil
}

func toString(v any) (any, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case kqlDynamic:
		switch inner := v.value.(type) {
		case nil:
			return "", nil
		case string:
			return inner, nil
		case json.Number:
			return inner.String(), nil
		}
	}
	return nil, fmt.Errorf("kql: tostring of %#v", v)
}

// toLong is null where there is no whole number.
func toLong(v any) (any, error) {
	d, ok := v.(kqlDynamic)
	if !ok {
		return nil, fmt.Errorf("kql: tolong of %T", v)
	}
	number, _ := d.value.(json.Number)
	n, err := number.Int64()
	if err != nil {
		return nil, nil //nolint:nilnil,nilerr // null is the result
	}
	return n, nil
}

// compareKQL compares two values of one type. The result is unknown when one is null. A dynamic value must be converted
// first, since Kusto compares those by rules of their own.
func compareKQL(a, b any) (order int, known bool, err error) {
	if a == nil || b == nil {
		return 0, false, nil
	}
	switch a := a.(type) {
	case string:
		if b, ok := b.(string); ok {
			return strings.Compare(a, b), true, nil
		}
	case int64:
		if b, ok := b.(int64); ok {
			return cmp.Compare(a, b), true, nil
		}
	case time.Time:
		if b, ok := b.(time.Time); ok {
			return a.Compare(b), true, nil
		}
	}
	return 0, false, fmt.Errorf("kql: %T compared with %T", a, b)
}
