package identity_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker/identity"
)

func TestAKeyIsValidInItsOneFormOnly(t *testing.T) {
	for _, tt := range []struct {
		name string
		key  identity.Key
		want string
	}{
		{"text", identity.Text("1042 "), ""},
		{"no text", identity.Text(""), "empty"},
		{"blank text", identity.Text(" \u200b"), "no visible character"},
		{"text that is no UTF-8", identity.Text("\xff"), "not UTF-8"},
		{"a source that does not belong", identity.Key{Kind: identity.String, Source: "s", Value: "1"}, "only a cloudevent has a source"},
		{"an unknown kind", identity.Key{Kind: "x", Value: "1"}, "no kind of key"},
		{"an unsigned long", identity.Key{Kind: identity.Ulong, Value: "18446744073709551615"}, ""},
		{"an unsigned long that is too large", identity.Key{Kind: identity.Ulong, Value: "18446744073709551616"}, "standard text of a ulong"},
		{"an unsigned long with a zero in front", identity.Key{Kind: identity.Ulong, Value: "042"}, "standard text of a ulong"},
		{"a uuid", identity.Key{Kind: identity.UUID, Value: "3f2504e0-4f89-41d3-9a0c-0305e82c3301"}, ""},
		{"a uuid in upper case", identity.Key{Kind: identity.UUID, Value: "3F2504E0-4F89-41D3-9A0C-0305E82C3301"}, "standard text of a uuid"},
		{"a uuid in other groups", identity.Key{Kind: identity.UUID, Value: "3f2504e04-f89-41d3-9a0c-0305e82c3301"}, "standard text of a uuid"},
		{"binary", identity.Key{Kind: identity.Binary, Value: "00ff"}, ""},
		{"half a byte", identity.Key{Kind: identity.Binary, Value: "00f"}, "standard text of a binary"},
		{"a number", identity.Key{Kind: identity.Number, Value: "-17"}, ""},
		{"zero", identity.Key{Kind: identity.Number, Value: "0"}, ""},
		{"minus zero", identity.Key{Kind: identity.Number, Value: "-0"}, "standard text of a number"},
		{"a number with a fraction", identity.Key{Kind: identity.Number, Value: "17.0"}, "standard text of a number"},
		{"an event", identity.Key{Kind: identity.CloudEvent, Source: "/s", Value: "1"}, ""},
		{"an event without source", identity.Key{Kind: identity.CloudEvent, Value: "1"}, "the source of a cloudevent is empty"},
		{"an event without id", identity.Key{Kind: identity.CloudEvent, Source: "/s"}, "the id of a cloudevent is empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.key.Validate()
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func FuzzPartIDsComeApartAsTheyWerePutTogether(f *testing.F) {
	f.Add("1042", "line-1")
	f.Add("~part.x", "~part.y")
	f.Add(strings.Repeat("x", 300), "a.b")
	f.Fuzz(func(t *testing.T, value, part string) {
		guard := identity.Text(value).DocumentID()
		documentID, name, err := identity.ParsePartDocumentID(identity.PartDocumentID(guard, part))
		if err != nil {
			require.ErrorIs(t, err, identity.ErrDigest)
			return
		}
		require.Equal(t, [2]string{guard, part}, [2]string{documentID, name})
		_, _, err = identity.ParsePartDocumentID(guard)
		require.Error(t, err, "the id of a key names no part")
	})
}
