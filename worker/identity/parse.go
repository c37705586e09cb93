package identity

import (
	"errors"
	"fmt"
	"strings"
)

// ErrDigest is returned by [ParseDocumentID] for an id that was shortened to a digest: the key cannot be computed from it,
// and is stored in the document.
var ErrDigest = errors.New("identity: the id is a digest; its key is stored in the document")

// ErrNotKeyID is returned by [ParseDocumentID] for a text that is not the document id of any key, such as the id of a
// further document of a message.
var ErrNotKeyID = errors.New("identity: not the document id of a key")

// ParseDocumentID returns the key whose document id is id. It accepts exactly the results of [Key.DocumentID].
func ParseDocumentID(id string) (Key, error) {
	if hexDigits, ok := strings.CutPrefix(id, tagDigest); ok {
		if len(hexDigits) == 64 && strings.Trim(hexDigits, "0123456789abcdef") == "" {
			return Key{}, ErrDigest
		}
		return Key{}, fmt.Errorf("%w: a digest has 64 lower-case hexadecimal digits", ErrNotKeyID)
	}
	k, err := parseID(id)
	if err != nil {
		return Key{}, fmt.Errorf("%w: %w", ErrNotKeyID, err)
	}
	// An id that parses but is written otherwise (an escaped letter, an odd form without need) is not the id of the key.
	if k.DocumentID() != id {
		return Key{}, fmt.Errorf("%w: the key %s has the id %q", ErrNotKeyID, k, k.DocumentID())
	}
	return k, nil
}

func parseID(id string) (Key, error) {
	if odd, ok := strings.CutPrefix(id, tagOdd); ok {
		f, err := fields(odd, 4)
		if err != nil {
			return Key{}, err
		}
		return Key{Consumer: f[0], Kind: Kind(f[1]), Source: f[2], Value: f[3]}, nil
	}
	consumer := ""
	if rest, ok := strings.CutPrefix(id, tagConsumer); ok {
		name, tail, ok := strings.Cut(rest, ".")
		if !ok {
			return Key{}, errors.New("the consumer is not ended by a dot")
		}
		var err error
		if consumer, err = unescape(name); err != nil {
			return Key{}, err
		}
		id = tail
	}
	k, err := parseRest(id)
	k.Consumer = consumer
	return k, err
}

func parseRest(id string) (Key, error) {
	if event, ok := strings.CutPrefix(id, tagEvent); ok {
		f, err := fields(event, 2)
		if err != nil {
			return Key{}, err
		}
		return Key{Kind: CloudEvent, Source: f[0], Value: f[1]}, nil
	}
	kind, value := String, id
	for _, t := range typed {
		if rest, ok := strings.CutPrefix(id, "~"+string(t)+"."); ok {
			kind, value = t, rest
		}
	}
	value, err := unescape(value)
	return Key{Kind: kind, Value: value}, err
}

// fields splits at the first n-1 dots, since only the last field may hold dots of its own.
func fields(s string, n int) ([]string, error) {
	parts := strings.SplitN(s, ".", n)
	if len(parts) != n {
		return nil, fmt.Errorf("the form has %d fields, not %d", n, len(parts))
	}
	for i, p := range parts {
		var err error
		if parts[i], err = unescape(p); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

func unescape(s string) (string, error) {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '~' {
			out = append(out, s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", errors.New("a tilde is not followed by two digits")
		}
		hi, lo := upperHex(s[i+1]), upperHex(s[i+2])
		if hi < 0 || lo < 0 {
			return "", errors.New("a tilde is not followed by two upper-case hexadecimal digits")
		}
		out = append(out, byte(hi<<4|lo))
		i += 2
	}
	return string(out), nil
}

func upperHex(c byte) int { return strings.IndexByte("0123456789ABCDEF", c) }
