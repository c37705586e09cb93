package app

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/orderworker/orderworker/worker/admission"
	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/identity"
)

// keyFlags are a key as people write it: its value is an argument.
type keyFlags struct{ kind, source string }

func (k *keyFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&k.kind, "kind", string(identity.String), "kind of the key: "+kinds())
	flags.StringVar(&k.source, "source", "", "source of the event, for a cloudevent")
}

func kinds() string {
	var words []string
	for _, k := range identity.Kinds() {
		words = append(words, string(k))
	}
	return strings.Join(words, ", ")
}

// documentID returns the id of the document of a key, or why no message has such a key. The value is brought into the form in
// which the worker keeps it: 17.0 and 1.7e1 are the number 17, and a uuid is written in lower case.
func (k keyFlags) documentID(consumer, value string) (string, error) {
	kind := identity.Kind(k.kind)
	if !slices.Contains(identity.Kinds(), kind) {
		return "", fmt.Errorf("--kind %q: there is no such kind; the kinds are %s", kind, kinds())
	}
	key := identity.Key{Kind: kind, Source: k.source, Consumer: consumer, Value: normalValue(kind, value)}
	if err := key.Validate(); err != nil {
		return "", fmt.Errorf("no message has this key: %w%s", err, keyFix(key))
	}
	if size := len(key.Value) + len(key.Source); size > admission.DefaultMaxKeyBytes {
		return "", fmt.Errorf("no message has this key: it has %d bytes, and at most %d are allowed", size, admission.DefaultMaxKeyBytes)
	}
	if faults := named(admission.Config{Consumer: consumer}.Validate()); len(faults) > 0 {
		return "", fmt.Errorf("--consumer: %s", faults[0].text)
	}
	return key.DocumentID(), nil
}

// keyFix says what to give instead.
func keyFix(k identity.Key) string {
	switch {
	case k.Kind == identity.CloudEvent && k.Source == "":
		return ". Give it with --source"
	case k.Kind != identity.CloudEvent && k.Source != "":
		return ". Leave --source out, or give --kind cloudevent"
	}
	return map[identity.Kind]string{
		identity.Ulong:  ". Give a whole number from 0 to 18446744073709551615",
		identity.UUID:   ". Give 32 hexadecimal digits, such as 3f2504e0-4f89-41d3-9a0c-0305e82c3301",
		identity.Binary: ". Give pairs of hexadecimal digits, such as 00ff10",
		identity.Number: ". Give a whole number as JSON writes it, such as 17 or 1.7e1",
	}[k.Kind]
}

// normalValue returns a typed value in the form in which admission keeps it, and any other text as it is.
func normalValue(kind identity.Kind, value string) string {
	switch kind {
	case identity.Number:
		if n, ok := fingerprint.WholeNumber([]byte(value)); ok {
			return n
		}
	case identity.Ulong:
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			return strconv.FormatUint(n, 10)
		}
	case identity.Binary:
		return strings.ToLower(value)
	case identity.UUID:
		v := strings.ToLower(value)
		if len(v) == 32 && !strings.Contains(v, "-") {
			v = strings.Join([]string{v[:8], v[8:12], v[12:16], v[16:20], v[20:]}, "-")
		}
		return v
	}
	return value
}
