package deadletter

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Visible returns text from a message so that a terminal or a page shows it and nothing else happens: control characters,
// characters without a form or that turn the direction of text, and bytes that are no UTF-8 are written as escapes. The
// result is a single line.
func Visible(text string) string {
	if !strings.ContainsFunc(text, hidden) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case hidden(r):
			b.WriteString(escapeRune(r))
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

// visibleLines is [Visible] for text of several lines: line feeds and tabs stay.
func visibleLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		parts := strings.Split(strings.TrimSuffix(line, "\r"), "\t")
		for j, p := range parts {
			parts[j] = Visible(p)
		}
		lines[i] = strings.Join(parts, "\t")
	}
	return strings.Join(lines, "\n")
}

// VisibleJSON writes what [Visible] would escape as escapes of JSON, so that the text says the same to a program and does
// nothing to a terminal. JSON itself asks only for some of that. Line feeds between the values stay.
func VisibleJSON(text []byte) []byte {
	risky := func(r rune) bool { return r >= ' ' && hidden(r) }
	if bytes.IndexFunc(text, risky) < 0 {
		return text
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		if !risky(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.Bytes()
}

func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs)
}

func escapeRune(r rune) string {
	switch r {
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	if r < 0x100 {
		return fmt.Sprintf(`\x%02x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// Cell returns text as a cell of a table that a spreadsheet may open: what it would take for a formula is quoted.
func Cell(text string) string {
	text = Visible(text)
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}

// Clip cuts text to at most limit characters and marks the cut.
func Clip(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	runes := []rune(text)
	return string(runes[:max(limit-1, 0)]) + "…"
}
