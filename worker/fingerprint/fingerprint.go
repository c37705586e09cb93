package fingerprint

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Fingerprint is the hash of a body and the parameters that made it.
type Fingerprint struct {
	// Hash is in lower-case hexadecimal.
	Hash       string     `json:"hash"`
	Parameters Parameters `json:"parameters"`
}

// Equal reports whether both hashes and both parameters are equal. Hashes of different parameters say nothing about each other.
func (f Fingerprint) Equal(o Fingerprint) bool {
	return f.Hash == o.Hash && f.Parameters.Equal(o.Parameters)
}

// ValidHash reports whether a stored text is a SHA-256 hash as this package writes it: 64 digits of lower-case hexadecimal.
// Anything else, such as upper case or a prefix "sha256:", is a damaged record, and says nothing of the content.
func ValidHash(hash string) bool {
	if len(hash) != hex.EncodedLen(sha256.Size) {
		return false
	}
	for _, c := range []byte(hash) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// Compute returns the fingerprint of a body by parameters, usually a stored one. The error is an [UnknownParametersError], which
// is [ErrUnknownParameters], or a [Problem] of the body.
func Compute(body []byte, r Parameters) (Fingerprint, error) {
	h, err := NewHasher(r)
	if err != nil {
		return Fingerprint{}, err
	}
	return h.Compute(body, Limits{})
}

// Check reports the first problem of a body that must be one JSON value, as a [*Problem]: its size, its encoding, its syntax,
// duplicate names, depth and numbers.
func Check(body []byte, limits Limits) error {
	return newCanonicaliser(body, limits, true).check(limits, nil)
}

// A Hasher makes fingerprints by the same parameters. It is safe for concurrent use.
type Hasher struct {
	parameters Parameters
	sel        *selection
}

// NewHasher prepares parameters, and fails with an [UnknownParametersError] for those that this version of the product cannot make.
func NewHasher(r Parameters) (*Hasher, error) {
	if r.known() != nil || r.Validate() != nil {
		return nil, &UnknownParametersError{Parameters: r}
	}
	sel, err := newSelection(r)
	if err != nil {
		return nil, &UnknownParametersError{Parameters: r}
	}
	return &Hasher{parameters: r, sel: sel}, nil
}

// Compute checks a body like [Check] and hashes it, in one pass. With the form "bytes" only the size is checked.
func (h *Hasher) Compute(body []byte, limits Limits) (Fingerprint, error) {
	text := body
	if h.parameters.Form == FormJSON {
		var err error
		if text, err = h.canonical(body, limits); err != nil {
			return Fingerprint{}, err
		}
	} else if err := checkSize(body, limits); err != nil {
		return Fingerprint{}, err
	}
	sum := sha256.Sum256(text)
	return Fingerprint{Hash: hex.EncodeToString(sum[:]), Parameters: h.parameters}, nil
}

// Canonical returns the text that the parameters hash, for people who want to see why two bodies differ. It holds the body's
// content.
func Canonical(body []byte, r Parameters) ([]byte, error) {
	h, err := NewHasher(r)
	if err != nil {
		return nil, err
	}
	if r.Form == FormBytes {
		return slices.Clone(body), nil
	}
	return h.canonical(body, Limits{})
}

// maxBody keeps every offset of the canonical text within 31 bits. The largest message of Service Bus has 100 MB.
const maxBody = 1 << 30

func checkSize(body []byte, l Limits) error {
	limit := maxBody
	if l.MaxBytes > 0 {
		limit = min(limit, l.MaxBytes)
	}
	if len(body) > limit {
		return &Problem{Kind: TooLarge, Offset: -1, Limit: limit, Cause: "the body is larger than the limit"}
	}
	return nil
}

func checkUTF8(body []byte) error {
	if utf8.Valid(body) {
		return nil
	}
	offset := 0
	for offset < len(body) {
		r, size := utf8.DecodeRune(body[offset:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		offset += size
	}
	return &Problem{Kind: InvalidUTF8, Offset: int64(offset), Cause: "the body is not UTF-8"}
}

// check reads the body within its limits.
func (c *canonicaliser) check(l Limits, sel *selection) error {
	if err := checkSize(c.body, l); err != nil {
		return err
	}
	if err := checkUTF8(c.body); err != nil {
		return err
	}
	return c.run(sel)
}

// canonical returns the text that the parameters hash, of a body that it checks.
func (h *Hasher) canonical(body []byte, l Limits) ([]byte, error) {
	c := newCanonicaliser(body, l, len(h.parameters.Only) > 0)
	if err := c.check(l, h.sel); err != nil {
		return nil, err
	}
	if c.leaves == 0 && (c.hasOnly || c.ignored) {
		return nil, &Problem{Kind: NothingSelected, Offset: -1, Cause: "the parameters leave nothing of this body to compare"}
	}
	if c.hasOnly {
		return c.picked(), nil
	}
	return c.out, nil
}

// sortedPicks returns the selected values in the order of their pointers.
func (c *canonicaliser) sortedPicks() []pick {
	slices.SortFunc(c.picks, func(a, b pick) int { return strings.Compare(a.pointer, b.pointer) })
	return c.picks
}

// picked writes the selected values as one object.
func (c *canonicaliser) picked() []byte {
	out := []byte{'{'}
	for i, p := range c.sortedPicks() {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendQuoted(out, []byte(p.pointer)), ':')
		out = append(out, p.text...)
	}
	return append(out, '}')
}
