package query

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind int

const (
	endToken tokenKind = iota
	wordToken
	textToken
	numberToken
	parameterToken
	markToken
)

// token is a piece of a query. text is a word as written, the value of a string, or the mark; it stands between two
// offsets of the query.
type token struct {
	kind       tokenKind
	text       string
	number     float64
	start, end int
}

// is reports whether the token is a keyword, in any case, or a mark.
func (t token) is(text string) bool {
	return (t.kind == wordToken || t.kind == markToken) && strings.EqualFold(t.text, text)
}

// scan cuts a query into tokens, an end token last.
func scan(s string) ([]token, error) {
	var list []token
	size := len(s)
	for {
		s = strings.TrimLeftFunc(s, unicode.IsSpace)
		if s == "" {
			return append(list, token{kind: endToken, text: "the end", start: size, end: size}), nil
		}
		t, rest, err := next(s)
		if err != nil {
			return nil, err
		}
		t.start, t.end = size-len(s), size-len(rest)
		list, s = append(list, t), rest
	}
}

func next(s string) (token, string, error) {
	c, size := utf8.DecodeRuneInString(s)
	switch {
	case c == '\'' || c == '"':
		return scanText(s)
	case c >= '0' && c <= '9':
		return scanNumber(s)
	case c == '@':
		n := size + wordLength(s[size:])
		if n == size {
			return token{}, "", &SyntaxError{Near: s}
		}
		return token{kind: parameterToken, text: s[:n]}, s[n:], nil
	case isWord(c):
		n := wordLength(s)
		return token{kind: wordToken, text: s[:n]}, s[n:], nil
	}
	for _, m := range []string{"<=", ">=", "!=", "<>", "||"} {
		if strings.HasPrefix(s, m) {
			return token{kind: markToken, text: m}, s[len(m):], nil
		}
	}
	return token{kind: markToken, text: s[:size]}, s[size:], nil
}

func isWord(c rune) bool { return c == '_' || c == '$' || unicode.IsLetter(c) || unicode.IsDigit(c) }

func wordLength(s string) int {
	if n := strings.IndexFunc(s, func(c rune) bool { return !isWord(c) }); n >= 0 {
		return n
	}
	return len(s)
}

// scanText reads a string in either kind of quotes, with backslash escapes.
func scanText(s string) (token, string, error) {
	quote := s[0]
	var b strings.Builder
	for rest := s[1:]; rest != ""; {
		if rest[0] == quote {
			return token{kind: textToken, text: b.String()}, rest[1:], nil
		}
		c, _, tail, err := strconv.UnquoteChar(rest, quote)
		if err != nil {
			break
		}
		b.WriteRune(c)
		rest = tail
	}
	return token{}, "", &SyntaxError{Near: s}
}

func scanNumber(s string) (token, string, error) {
	n := strings.IndexFunc(s, func(c rune) bool { return c != '.' && c != '+' && c != '-' && !isWord(c) })
	if n < 0 {
		n = len(s)
	}
	// A sign belongs to the number only after an exponent letter.
	for i := 1; i < n; i++ {
		if (s[i] == '+' || s[i] == '-') && s[i-1] != 'e' && s[i-1] != 'E' {
			n = i
		}
	}
	f, err := strconv.ParseFloat(s[:n], 64)
	if err != nil {
		return token{}, "", &SyntaxError{Near: s}
	}
	return token{kind: numberToken, text: s[:n], number: f}, s[n:], nil
}
