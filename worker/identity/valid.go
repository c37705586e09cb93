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

// Blank reports whether text has no visible character: only spaces, controls, format characters, and the letters and marks
// that Unicode itself calls ignorable (fillers such as U+3164, variation selectors), and the empty Braille pattern U+2800.
// Such an id is a default that somebody forgot to fill in, and it would make one message of all that carry it.
func Blank(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return r != '\u2800' && !unicode.IsSpace(r) && !unicode.IsControl(r) &&
			!unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
	})
}

// LooksAssigned reports whether an id looks as if the broker had made it. Azure Service Bus gives a message that was sent
// without a MessageId one of 32 lower-case hexadecimal digits, and a new one each time the message is sent, so that a repeat
// is not recognised. A sender may choose such ids too (a .NET Guid in the format N), so this is a reason to ask, not to refuse.
func LooksAssigned(id string) bool { return len(id) == 32 && strings.Trim(id, lowerHex) == "" }

// visible refuses text that no message can be told by.
func visible(what, text string) error {
	switch {
	case text == "":
		return errors.New(what + " is empty")
	case !utf8.ValidString(text):
		return errors.New(what + " is not UTF-8 text")
	case Blank(text):
		return errors.New(what + " has no visible character")
	}
	return nil
}
