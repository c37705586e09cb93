package app

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/orderworker/orderworker/worker/admission"
	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/identity"
)

func newKey(sys system) *cobra.Command {
	key := group("key", "Translate between message keys and document ids")
	key.AddCommand(newKeyEncode(sys), newKeyDecode(sys))
	return key
}

// keyFlags are a key as people write it: its value is an argument.
type keyFlags struct{ kind, source string }

func (k *keyFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&k.kind, "kind", string(identity.String), "kind of the key: "+kinds())
	flags.StringVar(&k.source, "source", "", "source of the event, for a cloudevent")
}

// documentID returns the id of the document of a key, or why no message has such a key.
func (k keyFlags) documentID(consumer, value string) (string, error) {
	id, err := encodeKey(identity.Key{Kind: identity.Kind(k.kind), Source: k.source, Consumer: consumer, Value: value})
	return id, withCode(exitUsage, err)
}

func newKeyEncode(sys system) *cobra.Command {
	var k keyFlags
	var consumer string
	c := &cobra.Command{
		Use: "encode KEY", Short: "Print the id of the document of a key", Args: needArgs("KEY"),
		Long: `Print the id of the document of a key.

The value is brought into the form in which the worker keeps it: 17.0 and 1.7e1 are the number 17, and a uuid is written in
lower case. A key that no message can have is refused. Where the worker has a WORKER_CONSUMER, give it as --consumer.`,
		Example: sys.named(`  {program} key encode 1042
  {program} key encode --kind number 17.0
  {program} key encode --kind cloudevent --source /shop e-1`),
		RunE: func(_ *cobra.Command, args []string) error {
			id, err := k.documentID(consumer, args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(sys.stdout, id)
			return err
		},
	}
	c.Flags().StringVar(&consumer, "consumer", "", "name of the consumer, when it is part of the key")
	k.bind(c.Flags())
	return c
}

// encodeKey returns the id of the document of a key, or why no message has such a key.
func encodeKey(k identity.Key) (string, error) {
	if !slices.Contains(identity.Kinds(), k.Kind) {
		return "", fmt.Errorf("--kind %q: there is no such kind; the kinds are %s", k.Kind, kinds())
	}
	k.Value = normalValue(k.Kind, k.Value)
	if err := k.Validate(); err != nil {
		return "", fmt.Errorf("no message has this key: %w%s", err, keyFix(k))
	}
	if size := len(k.Value) + len(k.Source); size > admission.DefaultMaxKeyBytes {
		return "", fmt.Errorf("no message has this key: it has %d bytes, and at most %d are allowed", size, admission.DefaultMaxKeyBytes)
	}
	if faults := named(admission.Config{Consumer: k.Consumer}.Validate()); len(faults) > 0 {
		return "", settingFault{env: "--consumer", text: faults[0].text}
	}
	return k.DocumentID(), nil
}

// keyFix says what to give instead.
func keyFix(k identity.Key) string {
	switch {
	case k.Kind == identity.CloudEvent && k.Source == "":
		return ". Give it with --source"
	case k.Kind != identity.CloudEvent && k.Source != "":
		return ". Leave --source out, or give --kind cloudevent"
	case k.Kind == identity.Ulong:
		return ". Give a whole number from 0 to 18446744073709551615"
	case k.Kind == identity.UUID:
		return ". Give 32 hexadecimal digits, such as 3f2504e0-4f89-41d3-9a0c-0305e82c3301"
	case k.Kind == identity.Binary:
		return ". Give pairs of hexadecimal digits, such as 00ff10"
	case k.Kind == identity.Number:
		return ". Give a whole number as JSON writes it, such as 17 or 1.7e1"
	}
	return ""
}

func kinds() string {
	var words []string
	for _, k := range identity.Kinds() {
		words = append(words, string(k))
	}
	return strings.Join(words, ", ")
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

func newKeyDecode(sys system) *cobra.Command {
	return &cobra.Command{
		Use: "decode ID", Short: "Print the key of a document id", Args: needArgs("ID"),
		Long: `Print the key of a document id, and for a further document of a message, such as a line, also its part.

Exit code 4 when the id is a digest: the key is then stored in the document itself, as request.key.`,
		RunE: func(_ *cobra.Command, args []string) error {
			lines, err := decodeKey(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(sys.stdout, strings.Join(lines, "\n"))
			return err
		},
	}
}

// decodeKey returns the key of an id and, when there is one, the part.
func decodeKey(id string) ([]string, error) {
	documentID, part, err := identity.ParsePartDocumentID(id)
	isPart := err == nil
	switch {
	case errors.Is(err, identity.ErrDigest):
		return nil, withCode(exitAbsent, errors.New("this id is the digest of a long key and a part. The key itself is stored in the first document of the message as request.key"))
	case !isPart:
		documentID = id
	}
	k, err := identity.ParseDocumentID(documentID)
	switch {
	case errors.Is(err, identity.ErrDigest) && isPart:
		return nil, withCode(exitAbsent, fmt.Errorf("this is the part %q of a message with a long key. The key itself is stored in the document %s as request.key", part, documentID))
	case errors.Is(err, identity.ErrDigest):
		return nil, withCode(exitAbsent, errors.New("this id is the digest of a long key. The key itself is stored in the document as request.key"))
	case err != nil:
		return nil, withCode(exitUsage, errors.New(strings.TrimPrefix(err.Error(), "identity: ")))
	case isPart:
		return []string{k.String(), "part " + strconv.QuoteToASCII(part)}, nil
	}
	return []string{k.String()}, nil
}
