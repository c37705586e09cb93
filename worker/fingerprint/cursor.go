package fingerprint

import "bytes"

// cursor reads a canonical text, which is valid and has no blanks. Each byte is read a fixed number of times.
type cursor struct {
	text  []byte
	at    int
	named bool   // the name at the cursor has been read, and at is behind its colon
	name  []byte // its value
}

// next returns the first byte of the next token, and of the name that was read a quote.
func (c *cursor) next() byte {
	if c.named {
		return '"'
	}
	return c.text[c.at]
}

// peekName reads the name at the cursor, once, and reports false at the end of the object.
func (c *cursor) peekName() ([]byte, bool) {
	if !c.named && c.text[c.at] == '}' {
		return nil, false
	}
	if !c.named {
		start := c.at
		c.at = endOfString(c.text, start)
		c.name = appendUnquoted(c.name[:0], c.text[start:c.at])
		c.at++
		c.named = true
	}
	return c.name, true
}

// takeName goes on to the value of the name that was read. The name is valid until the next one is read.
func (c *cursor) takeName() []byte {
	c.named = false
	return c.name
}

// compareNames compares the next names of two objects. The end of an object comes after all names.
func compareNames(a, b *cursor) int {
	x, okX := a.peekName()
	y, okY := b.peekName()
	switch {
	case !okX && !okY:
		return 0
	case !okX:
		return 1
	case !okY:
		return -1
	}
	return bytes.Compare(x, y)
}

// skip returns the value at the cursor, and goes behind it and the comma after it.
func (c *cursor) skip() []byte {
	start, depth := c.at, 0
	for c.at < len(c.text) {
		switch c.text[c.at] {
		case '"':
			c.at = endOfString(c.text, c.at)
		case '{', '[':
			depth++
			c.at++
		case '}', ']':
			depth--
			c.at++
		case ',', ':':
			c.at++
			continue
		default:
			c.at = endOfLiteral(c.text, c.at)
		}
		if depth == 0 {
			break
		}
	}
	value := c.text[start:c.at]
	c.comma()
	return value
}

// end goes behind the end of an object or array, and the comma after it.
func (c *cursor) end() {
	c.at++
	c.comma()
}

func (c *cursor) comma() {
	if c.at < len(c.text) && c.text[c.at] == ',' {
		c.at++
	}
}

// endOfString returns the position behind the string that begins at start.
func endOfString(text []byte, start int) int {
	at := start + 1
	for text[at] != '"' {
		if text[at] == '\\' {
			at++
		}
		at++
	}
	return at + 1
}

// endOfLiteral returns the position behind a number, true, false or null.
func endOfLiteral(text []byte, start int) int {
	if n := bytes.IndexAny(text[start:], ",]}"); n >= 0 {
		return start + n
	}
	return len(text)
}
