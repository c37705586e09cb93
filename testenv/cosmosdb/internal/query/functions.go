package query

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/orderworker/orderworker/testenv/cosmosdb/internal/jsondoc"
)

// function is a built-in function with the least and the most arguments that it takes.
type function struct {
	least, most int
	eval        func(args []any) any
}

// functions are the built-in functions that are implemented, by name in capitals. FULLTEXTCONTAINS looks for whole words
// without regard to case; it does not know stems, stop words and languages. COUNT is only known as SELECT VALUE COUNT(x),
// and here returns its argument.
var functions = map[string]function{
	"IS_DEFINED":       {1, 1, func(a []any) any { return rank(a[0]) != 0 }},
	"IS_NULL":          {1, 1, func(a []any) any { return rank(a[0]) == 1 }},
	"IS_BOOL":          {1, 1, func(a []any) any { return rank(a[0]) == 2 }},
	"IS_NUMBER":        {1, 1, func(a []any) any { return rank(a[0]) == 3 }},
	"IS_STRING":        {1, 1, func(a []any) any { return rank(a[0]) == 4 }},
	"IS_ARRAY":         {1, 1, func(a []any) any { return rank(a[0]) == 5 }},
	"IS_OBJECT":        {1, 1, func(a []any) any { return rank(a[0]) == 6 }},
	"STARTSWITH":       {2, 3, onTexts(strings.HasPrefix)},
	"ENDSWITH":         {2, 3, onTexts(strings.HasSuffix)},
	"CONTAINS":         {2, 3, onTexts(strings.Contains)},
	"LOWER":            {1, 1, onText(func(s string) any { return strings.ToLower(s) })},
	"UPPER":            {1, 1, onText(func(s string) any { return strings.ToUpper(s) })},
	"LENGTH":           {1, 1, onText(func(s string) any { return float64(utf8.RuneCountInString(s)) })},
	"ARRAY_LENGTH":     {1, 1, arrayLength},
	"ARRAY_CONTAINS":   {2, 2, arrayContains},
	"FULLTEXTCONTAINS": {2, 2, onTexts(containsWord)},
	"COUNT":            {1, 1, func(a []any) any { return a[0] }},
}

// onTexts makes a function of two strings, and an optional third argument that is true to ignore case.
func onTexts(f func(a, b string) bool) func([]any) any {
	return func(args []any) any {
		a, ok := args[0].(string)
		b, ok2 := args[1].(string)
		if !ok || !ok2 {
			return undefined{}
		}
		if len(args) == 3 && args[2] == true {
			a, b = strings.ToLower(a), strings.ToLower(b)
		}
		return f(a, b)
	}
}

func onText(f func(string) any) func([]any) any {
	return func(args []any) any {
		s, ok := args[0].(string)
		if !ok {
			return undefined{}
		}
		return f(s)
	}
}

func arrayLength(args []any) any {
	list, ok := args[0].([]any)
	if !ok {
		return undefined{}
	}
	return float64(len(list))
}

func arrayContains(args []any) any {
	list, ok := args[0].([]any)
	if !ok {
		return undefined{}
	}
	for _, e := range list {
		if jsondoc.Equal(e, args[1]) {
			return true
		}
	}
	return false
}

func containsWord(text, word string) bool {
	words := strings.FieldsFunc(strings.ToLower(text), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	phrase := strings.FieldsFunc(strings.ToLower(word), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	for i := range words {
		if len(phrase) > 0 && i+len(phrase) <= len(words) && strings.Join(words[i:i+len(phrase)], " ") == strings.Join(phrase, " ") {
			return true
		}
	}
	return false
}
