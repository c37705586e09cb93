package deadletter

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/Azure/go-amqp"

	"github.com/orderworker/orderworker/internal/body"
	"github.com/orderworker/orderworker/internal/wire"
)

// A Body is what can be shown of a body: text where it is text, and otherwise a dump of its first bytes.
type Body struct {
	// Kind says what the body is made of: "data", "3 data sections", "value (string)".
	Kind string
	// Bytes is its size; for a value that carries no bytes it is zero.
	Bytes int
	// Text is at most as long as asked for, safe to show, and may have several lines.
	Text string
	// Cut tells that Text is not all.
	Cut bool
	// Binary tells that Text is a dump.
	Binary bool
}

// BodyOf returns what can be shown of a message's body in at most limit bytes.
func BodyOf(m *amqp.Message, limit int) Body {
	switch v := m.Value.(type) {
	case string:
		return shown("value (string)", limit, []byte(v))
	case []byte:
		return shown("value (binary)", limit, v)
	}
	switch {
	case len(m.Data) == 1:
		return shown("data", limit, m.Data[0])
	case len(m.Data) > 1:
		return shown(fmt.Sprintf("%d data sections", len(m.Data)), limit, bytes.Join(m.Data, nil))
	case m.Sequence != nil:
		return textBody("sequence", Value(m.Sequence), limit)
	case m.Value == nil:
		return Body{Kind: "none"}
	}
	return textBody("value ("+body.TypeName(m.Value)+")", Value(m.Value), limit)
}

// shown bounds the work as well as the result: a body may have a hundred megabytes.
func shown(kind string, limit int, content []byte) Body {
	limit = max(limit, 0)
	b := Body{Kind: kind, Bytes: len(content), Cut: len(content) > limit}
	head := bytes.TrimPrefix(content[:min(len(content), limit)], []byte("\ufeff"))
	if last := backToRune(string(head), max(0, len(head)-1)); b.Cut && !utf8.FullRune(head[last:]) {
		head = head[:last] // the cut was within a character
	}
	if utf8.Valid(head) && bytes.IndexByte(head, 0) < 0 {
		b.Text = visibleLines(string(head))
		return b
	}
	limit = min(limit, maxDump)
	b.Binary, b.Cut = true, len(content) > limit
	b.Text = dump(content[:min(len(content), limit)])
	return b
}

// maxDump is how many bytes of a body are dumped.
const maxDump = 512

// dump shows eight bytes a line, so that it fits a phone.
func dump(head []byte) string {
	var lines []string
	for at := 0; at < len(head); at += 8 {
		row := head[at:min(at+8, len(head))]
		text := slices.Clone(row)
		for i, c := range text {
			if c < ' ' || c > '~' {
				text[i] = '.'
			}
		}
		lines = append(lines, fmt.Sprintf("%04x  %-23s  %s", at, fmt.Sprintf("% x", row), text))
	}
	return strings.Join(lines, "\n")
}

func textBody(kind, text string, limit int) Body {
	return Body{Kind: kind, Text: Clip(text, limit), Cut: utf8.RuneCountInString(text) > limit}
}

// Indented returns a JSON text with one member a line, and other text as it is.
func Indented(text []byte) string {
	var out bytes.Buffer
	if err := json.Indent(&out, bytes.TrimSpace(text), "", "  "); err != nil {
		return visibleLines(string(text))
	}
	return visibleLines(out.String())
}

// Value shows a value of any AMQP type with the name of a type that people could mistake for another.
func Value(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return Visible(v)
	case bool, int64, float64:
		return fmt.Sprint(v)
	case []byte:
		return "binary(" + hex.EncodeToString(v[:min(len(v), 64)]) + ")"
	case amqp.UUID:
		return "uuid(" + v.String() + ")"
	case amqp.Symbol:
		return "symbol(" + Visible(string(v)) + ")"
	}
	if v, ok := v.(wire.Foreign); ok {
		return v.String()
	}
	name := body.TypeName(v)
	if name == "map" || name == "list" || name == "array" {
		return Visible(fmt.Sprint(v))
	}
	return Visible(fmt.Sprintf("%s(%v)", name, v))
}
