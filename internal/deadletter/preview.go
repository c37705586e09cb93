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
	switch {
	case len(m.Data) == 1:
		return shown("data", limit, m.Data[0])
	case len(m.Data) > 1:
		return shown(fmt.Sprintf("%d data sections", len(m.Data)), limit, m.Data...)
	case m.Sequence != nil:
		return textBody("sequence", Value(m.Sequence), limit)
	}
	switch v := m.Value.(type) {
	case nil:
		return Body{Kind: "none"}
	case string:
		return shown("value (string)", limit, []byte(v))
	case []byte:
		return shown("value (binary)", limit, v)
	default:
		return textBody("value ("+body.TypeName(v)+")", Value(v), limit)
	}
}

// shown bounds the work as well as the result: a body may have a hundred megabytes.
func shown(kind string, limit int, sections ...[]byte) Body {
	limit = max(limit, 0)
	var head []byte
	for _, s := range sections {
		head = append(head, s[:min(len(s), limit+utf8.UTFMax-len(head))]...)
		if len(head) >= limit+utf8.UTFMax {
			break
		}
	}
	b := Body{Kind: kind, Bytes: sizeOf(sections), Cut: sizeOf(sections) > limit}
	if text, ok := asText(head, limit, b.Cut); ok {
		b.Text = visibleLines(text)
		return b
	}
	b.Binary = true
	b.Text = dump(head[:min(len(head), limit, 512)])
	b.Cut = b.Bytes > min(limit, 512)
	return b
}

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

func sizeOf(sections [][]byte) int {
	n := 0
	for _, s := range sections {
		n += len(s)
	}
	return n
}

// asText returns the head as text, cut at a character.
func asText(head []byte, limit int, cut bool) (string, bool) {
	head = bytes.TrimPrefix(head, []byte("\ufeff"))
	if cut {
		end := min(limit, len(head))
		for end > 0 && end < len(head) && !utf8.RuneStart(head[end]) {
			end--
		}
		head = head[:end]
	}
	if !utf8.Valid(head) || bytes.IndexByte(head, 0) >= 0 {
		return "", false
	}
	return string(head), true
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
