package infra_test

import (
	"fmt"
	"regexp"
	"strings"
)

// kqlToken is one token of a query in the Kusto Query Language. Its text is as written, a string without its quotes.
type kqlToken struct {
	kind string // name, text, number, span, sign; empty at the end
	text string
}

// kqlLexis has one group for each kind of token, in the order of kqlKinds.
var (
	kqlLexis = regexp.MustCompile(`^(?:(\s+|//[^\n]*)|([A-Za-z_]\w*)|'([^'\\\n]*)'|(\d+(?:ms|[smhd])\b)|(\d+\b)|(==|!=|<=|>=|[|(),.;=<>]))`)
	kqlKinds = []string{"", "space", "name", "text", "span", "number", "sign"}
)

func kqlTokens(query string) ([]kqlToken, error) {
	var tokens []kqlToken
	for query != "" {
		m := kqlLexis.FindStringSubmatchIndex(query)
		if m == nil {
			line, _, _ := strings.Cut(query, "\n")
			return nil, fmt.Errorf("kql: unknown text at %q", line)
		}
		for group := 1; group < len(kqlKinds); group++ {
			if from := m[2*group]; from >= 0 && kqlKinds[group] != "space" {
				tokens = append(tokens, kqlToken{kind: kqlKinds[group], text: query[from:m[2*group+1]]})
			}
		}
		query = query[m[1]:]
	}
	return append(tokens, kqlToken{}), nil
}

// kqlParser reads tokens from first to last. The first error stays, and ends the reading.
type kqlParser struct {
	tokens []kqlToken
	err    error
	lets   map[string]kqlPipeline
}

func (p *kqlParser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("kql: "+format, args...)
		p.tokens = []kqlToken{{}}
	}
}

func (p *kqlParser) peek() kqlToken { return p.tokens[0] }

func (p *kqlParser) next() kqlToken {
	t := p.tokens[0]
	if len(p.tokens) > 1 {
		p.tokens = p.tokens[1:]
	}
	return t
}

// accept takes the next token when it is this name or sign.
func (p *kqlParser) accept(text string) bool {
	t := p.peek()
	if t.text != text || (t.kind != "name" && t.kind != "sign") {
		return false
	}
	p.next()
	return true
}

func (p *kqlParser) expect(text string) {
	if !p.accept(text) {
		p.fail("%q where %q belongs", p.peek().text, text)
	}
}

func (p *kqlParser) name() string {
	t := p.next()
	if t.kind != "name" {
		p.fail("%q where a name belongs", t.text)
	}
	return t.text
}
