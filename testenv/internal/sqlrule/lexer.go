package sqlrule

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

type kind int

const (
	end    kind = iota
	word        // a name or a keyword
	quoted      // a name in brackets or double quotes, which is no keyword
	text        // a text in single quotes
	number
	parameter // with its @
	symbol
)

// A token is one word of an expression. Its text is without quotes.
type token struct {
	kind kind
	text string
	at   int // where it begins, in bytes from 0
}

func (t token) is(s string) bool {
	return (t.kind == word || t.kind == symbol) && strings.EqualFold(t.text, s)
}

func (t token) String() string {
	if t.kind == end {
		return "the end"
	}
	return fmt.Sprintf("%q", t.text)
}

// tokens splits an expression.
func tokens(s string) ([]token, error) {
	var all []token
	for at := 0; ; {
		at += len(s[at:]) - len(strings.TrimLeftFunc(s[at:], unicode.IsSpace))
		t, n, err := next(s, at)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
		if t.kind == end {
			return all, nil
		}
		at += n
	}
}

// next reads the token that begins at a place, and returns how many bytes it has.
func next(s string, at int) (token, int, error) {
	rest := s[at:]
	if rest == "" {
		return token{kind: end, at: at}, 0, nil
	}
	r, _ := utf8.DecodeRuneInString(rest)
	switch {
	case r == '\'':
		return delimited(rest, at, text, '\'')
	case r == '"':
		return delimited(rest, at, quoted, '"')
	case r == '[':
		return delimited(rest, at, quoted, ']')
	case unicode.IsLetter(r) || r == '_':
		n := span(rest, inName)
		return token{word, rest[:n], at}, n, nil
	case '0' <= r && r <= '9':
		n := numberLength(rest)
		return token{number, rest[:n], at}, n, nil
	case r == '@':
		n := 1 + span(rest[1:], inName)
		return token{parameter, rest[:n], at}, n, nil
	}
	for _, sym := range []string{"<>", "!=", ">=", "<=", "=", ">", "<", "+", "-", "*", "/", "%", "(", ")", ",", ".", ";"} {
		if strings.HasPrefix(rest, sym) {
			return token{symbol, sym, at}, len(sym), nil
		}
	}
	return token{}, 0, fmt.Errorf("at %d: the character %q is not expected", at+1, r)
}

// delimited reads what ends with a character that is doubled where it does not end it.
func delimited(s string, at int, k kind, last byte) (token, int, error) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != last {
			b.WriteByte(s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == last {
			b.WriteByte(last)
			i++
			continue
		}
		return token{k, b.String(), at}, i + 1, nil
	}
	return token{}, 0, fmt.Errorf("at %d: %c is missing", at+1, last)
}

func inName(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func span(s string, f func(rune) bool) int {
	if i := strings.IndexFunc(s, func(r rune) bool { return !f(r) }); i >= 0 {
		return i
	}
	return len(s)
}

// numberLength is the length of the number with which s begins: digits, a fraction, an exponent.
func numberLength(s string) int {
	digit := func(r rune) bool { return '0' <= r && r <= '9' }
	n := span(s, digit)
	if n < len(s) && s[n] == '.' {
		n += 1 + span(s[n+1:], digit)
	}
	if n == len(s) || s[n] != 'e' && s[n] != 'E' {
		return n
	}
	exponent := n + 1
	if exponent < len(s) && (s[exponent] == '+' || s[exponent] == '-') {
		exponent++
	}
	if digits := span(s[exponent:], digit); digits > 0 {
		return exponent + digits
	}
	return n
}
