package sqlrule

// wildcard stands for any text, and for any one character, where a character of a pattern could be.
const (
	anyText rune = -1 - iota
	anyOne
)

// wildcards reads a pattern of LIKE. Behind the escape character, which may be missing, every character is itself.
func wildcards(pattern, escape string) []rune {
	special := map[rune]rune{'%': anyText, '_': anyOne}
	var out []rune
	escaped := false
	for _, r := range pattern {
		w, isWildcard := special[r]
		switch {
		case escaped:
			out, escaped = append(out, r), false
		case string(r) == escape:
			escaped = true
		case isWildcard:
			out = append(out, w)
		default:
			out = append(out, r)
		}
	}
	return out
}

// matches reports whether the whole text is one that a pattern describes. Only the last anyText is ever tried again, so that
// it takes at most the product of the lengths.
func matches(s, pattern []rune) bool {
	i, j, star, from := 0, 0, -1, 0
	for i < len(s) {
		switch {
		case j < len(pattern) && pattern[j] == anyText:
			star, from = j, i
			j++
		case j < len(pattern) && (pattern[j] == anyOne || pattern[j] == s[i]):
			i, j = i+1, j+1
		case star >= 0:
			from++
			i, j = from, star+1
		default:
			return false
		}
	}
	for j < len(pattern) && pattern[j] == anyText {
		j++
	}
	return j == len(pattern)
}
