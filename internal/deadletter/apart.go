package deadletter

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/orderworker/orderworker/worker/fingerprint"
)

// apart returns the JSON texts of two different values so that a person can tell them apart: safe to show, of long ones the
// part in which they differ, and what looks like something else written as escapes where they differ.
func apart(stored, arrived []byte) (string, string) {
	a, b := string(stored), string(arrived)
	if max(len(a), len(b)) > maxChangeText {
		a, b = spelling(stored), spelling(arrived)
	}
	start := commonPrefix(a, b)
	end := commonSuffix(a[start:], b[start:])
	midA, midB := a[start:len(a)-end], b[start:len(b)-end]
	odd := oddCharacter(midA, midB) || oddCharacter(midB, midA)
	show := func(text, mid string) string {
		from := start
		if len(text) <= maxChangeText {
			from = 0
		} else {
			from = backToRune(text, max(0, from-maxChangeText/4))
		}
		shown := text[from:start] + marked(mid, odd) + text[len(text)-end:]
		if from > 0 {
			shown = "…" + shown
		}
		return Clip(Visible(shown[:min(len(shown), 4*maxChangeText)]), maxChangeText)
	}
	return show(a, midA), show(b, midB)
}

// spelling returns a string in the one spelling that all strings of its value have, since a difference of escapes is none.
func spelling(text []byte) string {
	if _, ok := fingerprint.Unquote(text); ok {
		if r, err := fingerprint.NewParameters(fingerprint.FormJSON, nil, nil); err == nil {
			if canonical, err := fingerprint.Canonical(text, r); err == nil {
				return string(canonical)
			}
		}
	}
	return string(text)
}

// marked writes characters that are taken for others as escapes: those that join the one before, so that é and e with an
// accent look the same, and blanks of other widths; and all beyond ASCII when told.
func marked(text string, all bool) string {
	var b strings.Builder
	for _, r := range text {
		if joins(r) || unicode.Is(unicode.Zs, r) && r != ' ' || all && r >= utf8.RuneSelf {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// joins reports whether a character is shown as a part of the one before it, and there may be one character for both:
// accents, the parts of Hangul syllables and the voicing marks of Kana.
func joins(r rune) bool {
	return r >= 0x300 && r <= 0x36f || r >= 0x1100 && r <= 0x11ff || r == 0x3099 || r == 0x309a
}

// oddCharacter reports whether the only difference is one ASCII character against one that may have its form, such as a
// Cyrillic а or a dash. Accented Latin letters look like themselves.
func oddCharacter(plain, other string) bool {
	if len(plain) != 1 || plain[0] >= utf8.RuneSelf {
		return false
	}
	r, size := utf8.DecodeRuneInString(other)
	return size == len(other) && r > unicode.MaxLatin1
}

func commonPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	for n > 0 && (n < len(a) && !utf8.RuneStart(a[n]) || n < len(b) && !utf8.RuneStart(b[n])) {
		n--
	}
	return n
}

func commonSuffix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	for n > 0 && !utf8.RuneStart(a[len(a)-n]) {
		n--
	}
	return n
}

func backToRune(text string, at int) int {
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}
