package identity_test

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker/identity"
)

func TestDocumentIDOfEveryKindOfKey(t *testing.T) {
	tests := []struct {
		name string
		key  identity.Key
		want string
	}{
		{"an ordinary id is unchanged", identity.Text("1042"), "1042"},
		{"a GUID is unchanged", identity.Text("7c1e2f64-2f8e-4a40-9a0c-0305e82c3301"), "7c1e2f64-2f8e-4a40-9a0c-0305e82c3301"},
		{"an id of 128 letters is unchanged", identity.Text(strings.Repeat("A", 128)), strings.Repeat("A", 128)},
		{"harmless punctuation is unchanged", identity.Text("urn:order-17_a.b+c=d&e$f@g"), "urn:order-17_a.b+c=d&e$f@g"},
		{"case is kept", identity.Text("aBc"), "aBc"},
		{"a slash is escaped", identity.Text("PO/2024/0017"), "PO~2F2024~2F0017"},
		{"a backslash is escaped", identity.Text(`a\b`), "a~5Cb"},
		{"hash and question mark are escaped", identity.Text("order#1?x=2"), "order~231~3Fx=2"},
		{"a percent sign is escaped", identity.Text("a%20b"), "a~2520b"},
		{"a quote is escaped", identity.Text(`victim","x":"y`), "victim~22~2C~22x~22:~22y"},
		{"a trailing blank is escaped", identity.Text("12345 "), "12345~20"},
		{"a line end is escaped", identity.Text("12345\r\n"), "12345~0D~0A"},
		{"a no-break space is escaped", identity.Text("12345\u00a0"), "12345~C2~A0"},
		{"a tilde is escaped", identity.Text("~2F"), "~7E2F"},
		{"text that looks like a form is escaped", identity.Text("~ulong.42"), "~7Eulong.42"},
		{"a dot is escaped", identity.Text("."), "~2E"},
		{"two dots are escaped", identity.Text(".."), "~2E~2E"},
		{"three dots are harmless", identity.Text("..."), "..."},
		{"an accented letter is escaped", identity.Text("\u00e9"), "~C3~A9"},
		{"the same letter in two code points is another id", identity.Text("e\u0301"), "e~CC~81"},
		{"invalid UTF-8 stays distinct from its replacement", identity.Text("\xff"), "~FF"},
		{"the replacement character has its own bytes", identity.Text("\ufffd"), "~EF~BF~BD"},
		{"an AMQP number has its own form", identity.Key{Kind: identity.Ulong, Value: "42"}, "~ulong.42"},
		{"an AMQP uuid has its own form", identity.Key{Kind: identity.UUID, Value: "3f2504e0-4f89-41d3-9a0c-0305e82c3301"},
			"~uuid.3f2504e0-4f89-41d3-9a0c-0305e82c3301"},
		{"AMQP binary has its own form", identity.Key{Kind: identity.Binary, Value: "00ff10"}, "~binary.00ff10"},
		{"a JSON number has its own form", identity.Key{Kind: identity.Number, Value: "42"}, "~number.42"},
		{"a CloudEvent has its source before its id", identity.Key{Kind: identity.CloudEvent, Source: "/shop.a", Value: "e.1"},
			"~event.~2Fshop~2Ea.e.1"},
		{"a consumer comes first", identity.Key{Consumer: "bill.ing", Kind: identity.String, Value: "1.2"}, "~for.bill~2Eing.1.2"},
		{"a consumer comes first of a typed id", identity.Key{Consumer: "b", Kind: identity.Ulong, Value: "1"}, "~for.b.~ulong.1"},
		{"an empty value does not address the feed", identity.Text(""), "~odd..string.."},
		{"an unknown kind has a form too", identity.Key{Kind: "x", Value: "1"}, "~odd..x..1"},
		{"a source that does not belong has a form too", identity.Key{Kind: identity.String, Source: "s", Value: "1"}, "~odd..string.s.1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, tt.key.DocumentID())
			requireKeyOf(t, tt.key)
		})
	}
}

func TestLongKeysBecomeDigests(t *testing.T) {
	slashes := identity.Text(strings.Repeat("/", 128))
	sum := sha256.Sum256([]byte(strings.Repeat("~2F", 128)))
	require.Equal(t, "~sha256."+hex.EncodeToString(sum[:]), slashes.DocumentID())
	_, err := identity.ParseDocumentID(slashes.DocumentID())
	require.ErrorIs(t, err, identity.ErrDigest)

	ids := map[string]bool{}
	for _, k := range []identity.Key{
		slashes, identity.Text(strings.Repeat("\u8acb", 128)), identity.Text(strings.Repeat("/", 127) + "#"),
		identity.Text(strings.Repeat("A", 201)), identity.Text(strings.Repeat("A", 200) + "B"),
		{Consumer: "c", Kind: identity.String, Value: strings.Repeat("/", 128)}, identity.Text(slashes.DocumentID()),
	} {
		requireKeyOf(t, k)
		ids[k.DocumentID()] = true
	}
	require.Len(t, ids, 7)
	require.Equal(t, strings.Repeat("A", 200), identity.Text(strings.Repeat("A", 200)).DocumentID(), "the bound itself is no digest")
}

func TestParseRefusesWhatIsNoDocumentID(t *testing.T) {
	for _, id := range []string{
		"", ".", "..", "a/b", "a b", "~", "~2", "~2f", "~41", "a~2Eb", "~ulong", "~for.x", "~for..1", "~event.x", "~odd.a.b.c", "~odd..string..1",
		"~sha256.00", "~sha256." + strings.Repeat("G", 64), "1042~part.line-1", "~part-sha256." + strings.Repeat("0", 64), "é", "~lower.1",
		strings.Repeat("A", 201),
	} {
		_, err := identity.ParseDocumentID(id)
		require.ErrorIs(t, err, identity.ErrNotKeyID, "id %q", id)
	}
}

func TestPartIDs(t *testing.T) {
	require.Equal(t, "1042~part.line-1", identity.PartDocumentID("1042", "line-1"))
	require.Equal(t, "1042~part.a~2Eb~2Fc", identity.PartDocumentID("1042", "a.b/c"))

	guard := identity.Text(strings.Repeat("A", identity.MaxDocumentID)).DocumentID()
	require.Len(t, identity.PartDocumentID(guard, "line-1"), identity.MaxDocumentID+len("~part.line-1"))
	seen := map[string]bool{}
	for _, part := range []string{"", "line-1", "line-2", strings.Repeat("x", 60), strings.Repeat("x", 61)} {
		id := identity.PartDocumentID(guard, part)
		require.LessOrEqual(t, len(id), identity.MaxPartID)
		require.Equal(t, id, url.PathEscape(id))
		require.False(t, seen[id], "part %q", part)
		seen[id] = true
		_, err := identity.ParseDocumentID(id)
		require.ErrorIs(t, err, identity.ErrNotKeyID, "a part is no key")
	}
	require.NotEqual(t, identity.PartDocumentID("1", "a"), identity.PartDocumentID("1~part.a", ""))
}

func TestTheTextOfAKeyShowsWhatTheEyeWouldMiss(t *testing.T) {
	for want, key := range map[string]identity.Key{
		"1042":                          identity.Text("1042"),
		"PO/2024/0017":                  identity.Text("PO/2024/0017"),
		`"12345 "`:                      identity.Text("12345 "),
		`"12345\t"`:                     identity.Text("12345\t"),
		`"12345\u00a0"`:                 identity.Text("12345\u00a0"),
		`"e\u0301"`:                     identity.Text("e\u0301"),
		`"\u00e9"`:                      identity.Text("\u00e9"),
		`""`:                            identity.Text(""),
		`"ulong(42)"`:                   identity.Text("ulong(42)"),
		"ulong(42)":                     {Kind: identity.Ulong, Value: "42"},
		"cloudevent(/shop e1)":          {Kind: identity.CloudEvent, Source: "/shop", Value: "e1"},
		`"1 for billing"`:               identity.Text("1 for billing"),
		"1 for billing":                 {Consumer: "billing", Kind: identity.String, Value: "1"},
		`cloudevent(/shop "e1 ") for b`: {Consumer: "b", Kind: identity.CloudEvent, Source: "/shop", Value: "e1 "},
	} {
		require.Equal(t, want, key.String())
	}
}

// TestNoTwoKeysShareAnID draws keys from an alphabet in which every character has a meaning somewhere in the encoding.
func TestNoTwoKeysShareAnID(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 2))
	ids, texts := map[string]identity.Key{}, map[string]identity.Key{}
	for range 50_000 {
		k := randomKey(random)
		id, text := k.DocumentID(), k.String()
		if other, ok := ids[id]; ok {
			require.Equal(t, other, k, "both have the id %q", id)
		}
		if other, ok := texts[text]; ok {
			require.Equal(t, other, k, "both have the text %q", text)
		}
		ids[id], texts[text] = k, k
		requireKeyOf(t, k)
	}
	require.Greater(t, len(ids), 10_000, "the keys must differ for the test to mean something")
}

// FuzzDocumentID looks for a key that is lost on the way to its id and back, and for two keys that meet.
func FuzzDocumentID(f *testing.F) {
	f.Add("", "string", "1042", "", "", "string", "1042 ", "")
	f.Add("", "string", "~ulong.42", "", "", "ulong", "42", "")
	f.Add("a", "string", "b.c", "", "a.b", "string", "c", "")
	f.Add("", "cloudevent", "e1", "/shop", "", "cloudevent", "/e1", "shop")
	f.Add("", "string", "..", "", "", "", "", "")
	f.Add("", "string", "~for.a.b", "", "a", "string", "b", "")
	f.Add("", "binary", "00ff10", "", "", "uuid", "3f2504e0-4f89-41d3-9a0c-0305e82c3301", "")
	f.Add("", "string", "\xff", "", "", "string", "\ufffd", "")
	f.Fuzz(func(t *testing.T, c1, k1, v1, s1, c2, k2, v2, s2 string) {
		a := identity.Key{Consumer: c1, Kind: identity.Kind(k1), Value: v1, Source: s1}
		b := identity.Key{Consumer: c2, Kind: identity.Kind(k2), Value: v2, Source: s2}
		requireKeyOf(t, a)
		requireKeyOf(t, b)
		require.Equal(t, a == b, a.DocumentID() == b.DocumentID())
		require.Equal(t, a == b, a.String() == b.String())
		if key, err := identity.ParseDocumentID(v1); err == nil {
			require.Equal(t, v1, key.DocumentID())
		}
		part := identity.PartDocumentID(a.DocumentID(), v2)
		require.LessOrEqual(t, len(part), identity.MaxPartID)
		require.NotEqual(t, part, b.DocumentID())
	})
}

// requireKeyOf holds an id to all that is promised of it.
func requireKeyOf(t *testing.T, k identity.Key) {
	t.Helper()
	id := k.DocumentID()
	require.NotEmpty(t, id)
	require.LessOrEqual(t, len(id), identity.MaxDocumentID)
	require.Equal(t, id, url.PathEscape(id), "a URL must not have to escape the id")
	require.Equal(t, "/docs/"+id, path.Join("/docs", id), "the id must not address another resource")
	require.NotContains(t, id, "~part")
	back, err := identity.ParseDocumentID(id)
	if strings.HasPrefix(id, "~sha256.") {
		require.ErrorIs(t, err, identity.ErrDigest)
		return
	}
	require.NoError(t, err)
	require.Equal(t, k, back)
}

func randomKey(r *rand.Rand) identity.Key {
	kinds := []identity.Kind{identity.String, identity.String, identity.Ulong, identity.UUID, identity.Binary, identity.Number, identity.CloudEvent, "", "for"}
	k := identity.Key{Kind: kinds[r.IntN(len(kinds))], Value: randomText(r), Consumer: randomText(r)}
	if r.IntN(2) == 0 {
		k.Consumer = ""
	}
	if k.Kind == identity.CloudEvent || r.IntN(8) == 0 {
		k.Source = randomText(r)
	}
	return k
}

func randomText(r *rand.Rand) string {
	pieces := []string{"~", ".", "2", "E", "e", "~2E", "/", " ", "\x00", "\xff", "é", "for", "~for.", "ulong", "~ulong.", "~part.", "(", ")", `"`, `\`, "event", "/////////////////////////////////////////"}
	var b strings.Builder
	for range r.IntN(5) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}
