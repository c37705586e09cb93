package sqlrule

import (
	"cmp"
	"math"
)

// compare compares two values. A whole number and another number are compared as floating point numbers, as C# does.
func compare(op string, a, b any) any {
	var order int
	var ok bool
	switch x := a.(type) {
	case string:
		y, same := b.(string)
		order, ok = cmp.Compare(x, y), same
	case bool:
		y, same := b.(bool)
		if order = 0; x != y {
			order = 1
		}
		ok = same && (op == "=" || op == "<>" || op == "!=")
	case int64, float64:
		order, ok = compareNumbers(a, b)
	}
	if !ok {
		return unknown{}
	}
	switch op {
	case "=":
		return order == 0
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	}
	return order != 0
}

func compareNumbers(a, b any) (int, bool) {
	x, isInt := a.(int64)
	y, areInts := b.(int64)
	if isInt && areInts {
		return cmp.Compare(x, y), true
	}
	f, ok1 := float(a)
	g, ok2 := float(b)
	return cmp.Compare(f, g), ok1 && ok2 && !math.IsNaN(f) && !math.IsNaN(g)
}

func float(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// calculate joins two values. Whole numbers stay whole, and plus joins texts.
func calculate(op string, a, b any) any {
	x, isInt := a.(int64)
	y, areInts := b.(int64)
	f, ok1 := float(a)
	g, ok2 := float(b)
	switch {
	case isInt && areInts:
		return wholeNumbers(op, x, y)
	case ok1 && ok2:
		return floats(op, f, g)
	}
	s, isText := a.(string)
	t, areTexts := b.(string)
	if op == "+" && isText && areTexts {
		return s + t
	}
	return unknown{}
}

func wholeNumbers(op string, x, y int64) any {
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	}
	if y == 0 {
		return unknown{}
	}
	if op == "/" {
		return x / y
	}
	return x % y
}

func floats(op string, f, g float64) any {
	switch op {
	case "+":
		return f + g
	case "-":
		return f - g
	case "*":
		return f * g
	case "/":
		return f / g
	}
	return math.Mod(f, g)
}
