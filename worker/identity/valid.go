package identity

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kinds returns the kinds of keys that messages can have.
func Kinds() []Kind { return []Kind{String, Ulong, UUID, Binary, Number, CloudEvent} }

// Validate returns why no message can have the key, or nil. It knows the forms of the kinds; how long a key may be is for the
// configuration to say.
func (k Key) Validate() error {
	if k.Kind == CloudEvent {
		if err := visible("the source of a cloudevent", k.Source); err != nil {
			return err
		}
		return visible("the id of a cloudevent", k.Value)
	}
	if k.Source != "" {
		return fmt.Errorf("only a cloudevent has a source, and this key is a %s", k.Kind)
	}
	if err := visible("the key", k.Value); err != nil {
		return err
	}
	switch k.Kind {
	case String:
		return nil
	case Ulong, UUID, Binary, Number:
		if !k.wellFormed() {
			return fmt.Errorf("%q is not the standard text of a %s", k.Value, k.Kind)
		}
		return nil
	}
	return fmt.Errorf("%q is no kind of key", k.Kind)
}

// wellFormed reports whether the value of a typed key has the one form in which its kind is kept.
func (k Key) wellFormed() bool {
	switch v := k.Value; k.Kind {
	case Ulong:
		n, err := strconv.ParseUint(v, 10, 64)
		return err == nil && strconv.FormatUint(n, 10) == v
	case UUID:
		return uuidForm(v)
	case Binary:
		return len(v)%2 == 0 && strings.Trim(v, lowerHex) == ""
	case Number:
		digits := strings.TrimPrefix(v, "-")
		return v == "0" || digits != "" && digits[0] != '0' && strings.Trim(digits, "0123456789") == ""
	}
	return false
}

func uuidForm(v string) bool {
	groups := strings.Split(v, "-")
	if len(groups) != 5 {
		return false
	}
	for i, size := range [...]int{8, 4, 4, 4, 12} {
		if len(groups[i]) != size || strings.Trim(groups[i], lowerHex) != "" {
			return false
		}
	}
	return true
}

const lowerHex = "0123456789abcdef"

// visible refuses text that no message can be told by.
func visible(what, text string) error {
	switch {
	case text == "":
		return errors.New(what + " is empty")
	case !utf8.ValidString(text):
		return errors.New(what + " is not UTF-8 text")
	case !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsSpace(r) && !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r)
	}):
		return errors.New(what + " has no visible character")
	}
	return nil
}
