package fingerprint

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// parsePointer splits a JSON pointer (RFC 6901) into its reference tokens. The empty pointer is the whole body.
func parsePointer(p string) ([]string, error) {
	if p == "" {
		return nil, nil
	}
	if p[0] != '/' {
		return nil, errors.New("a JSON pointer begins with a slash, such as /order/sentAt")
	}
	if !utf8.ValidString(p) {
		return nil, errors.New("a JSON pointer is UTF-8 text")
	}
	tokens := strings.Split(p[1:], "/")
	for i, t := range tokens {
		for j := 0; j < len(t); j++ {
			if t[j] == '~' && (j+1 == len(t) || (t[j+1] != '0' && t[j+1] != '1')) {
				return nil, errors.New("in a JSON pointer a tilde is written ~0 and a slash within a name ~1")
			}
		}
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return tokens, nil
}

// appendToken appends a name to a JSON pointer.
func appendToken(pointer, name string) string {
	return string(appendEscaped([]byte(pointer+"/"), []byte(name)))
}

// appendEscaped appends a name as a reference token, without the slash before it.
func appendEscaped(pointer, name []byte) []byte {
	for _, c := range name {
		switch c {
		case '~':
			pointer = append(pointer, '~', '0')
		case '/':
			pointer = append(pointer, '~', '1')
		default:
			pointer = append(pointer, c)
		}
	}
	return pointer
}

// A selection is a tree of the pointers of parameters, or of numbers. A nil selection has no pointers at or below it.
type selection struct {
	below    map[string]*selection
	ignored  bool
	only     string // the pointer, when selected
	isOnly   bool
	original string // the text of the number
}

func newSelection(r Parameters) (*selection, error) {
	if len(r.Ignore)+len(r.Only) == 0 {
		return nil, nil
	}
	root := &selection{}
	for _, p := range r.Ignore {
		s, err := root.at(p)
		if err != nil {
			return nil, err
		}
		s.ignored = true
	}
	for _, p := range r.Only {
		s, err := root.at(p)
		if err != nil {
			return nil, err
		}
		s.only, s.isOnly = p, true
	}
	return root, nil
}

// at returns the node of a pointer, and makes it.
func (s *selection) at(pointer string) (*selection, error) {
	tokens, err := parsePointer(pointer)
	if err != nil {
		return nil, err
	}
	for _, t := range tokens {
		next := s.below[t]
		if next == nil {
			next = &selection{}
			if s.below == nil {
				s.below = map[string]*selection{}
			}
			s.below[t] = next
		}
		s = next
	}
	return s, nil
}

func (s *selection) member(name []byte) *selection {
	if s == nil {
		return nil
	}
	return s.below[string(name)]
}

func (s *selection) element(i int) *selection {
	if s == nil || len(s.below) == 0 {
		return nil
	}
	return s.below[strconv.Itoa(i)]
}

// ValidatePointer reports what is wrong with a JSON pointer.
func ValidatePointer(pointer string) error {
	_, err := parsePointer(pointer)
	return err
}
