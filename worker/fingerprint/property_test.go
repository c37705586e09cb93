package fingerprint_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker/fingerprint"
)

var plain = fingerprint.Parameters{Version: 1, Algorithm: "sha256", Form: "json"}

// TestSpellingDoesNotCount writes random values in two random spellings and asks for one hash, then changes one value and
// asks for another.
func TestSpellingDoesNotCount(t *testing.T) {
	random := rand.New(rand.NewPCG(38, 43))
	for range 3_000 {
		v := randomValue(random, 4)
		a, b := spell(random, v), spell(random, v)
		require.Equal(t, hash(t, a), hash(t, b), "%s\n%s", a, b)
		require.Empty(t, fingerprint.Compare(a, b, plain, 1), "%s\n%s", a, b)
		other := spell(random, change(random, v))
		require.NotEqual(t, hash(t, a), hash(t, other), "%s\n%s", a, other)
		require.NotEmpty(t, fingerprint.Compare(a, other, plain, 1), "%s\n%s", a, other)
	}
}

func TestTheCanonicalFormIsItsOwn(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 1_000 {
		body := spell(random, randomValue(random, 4))
		once, err := fingerprint.Canonical(body, plain)
		require.NoError(t, err)
		twice, err := fingerprint.Canonical(once, plain)
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
		require.Equal(t, exactValue(t, body), exactValue(t, once), "the canonical form has the same value")
	}
}

// TestNumbersComeBackFromAStoreOfDoubles rounds every number like a store, and restores them from the list kept beside.
func TestNumbersComeBackFromAStoreOfDoubles(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 3))
	restored := 0
	for range 1_000 {
		body := spell(random, randomValue(random, 4))
		exact, err := fingerprint.Inexact(body, fingerprint.Limits{})
		require.NoError(t, err)
		var v any
		require.NoError(t, json.Unmarshal(body, &v))
		rounded, err := json.Marshal(v)
		require.NoError(t, err)
		back, err := fingerprint.Restore(rounded, exact)
		require.NoError(t, err)
		require.Equal(t, hash(t, body), hash(t, back), "%s\n%s", body, back)
		restored += len(exact)
		if len(exact) == 0 {
			require.Equal(t, hash(t, body), hash(t, rounded))
		}
	}
	require.Positive(t, restored)
}

// FuzzCheck holds Check and the canonical form against encoding/json: what is refused as bad JSON is bad JSON, and what is
// accepted keeps its exact value.
func FuzzCheck(f *testing.F) {
	for _, g := range goldens(f) {
		f.Add(g.bytes())
	}
	for _, s := range []string{`{"a":1,"a":1}`, `{"b":1,"a":1,"b":1}`, `"\ud800"`, `[NaN]`, `[1e400]`, `[1,]`, `{"a":1}{}`, "\xff", `[0e999999999999999999999]`, `[[[`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		err := fingerprint.Check(body, fingerprint.Limits{})
		if err != nil {
			p := problemOf(t, err)
			require.LessOrEqual(t, p.Offset, int64(len(body)))
			switch p.Kind {
			case fingerprint.NotJSON:
				require.False(t, json.Valid(body))
			case fingerprint.InvalidUTF8:
				require.True(t, !utf8.Valid(body) || bytes.Contains(bytes.ToLower(body), []byte(`\ud`)))
			default:
				require.Contains(t, []fingerprint.ProblemKind{fingerprint.DuplicateName, fingerprint.TooDeep, fingerprint.NumberOutOfRange}, p.Kind)
			}
			return
		}
		require.True(t, json.Valid(body))
		text, err := fingerprint.Canonical(body, plain)
		require.NoError(t, err)
		require.LessOrEqual(t, len(text), 3*len(body)+8)
		again, err := fingerprint.Canonical(text, plain)
		require.NoError(t, err)
		require.Equal(t, string(text), string(again))
		if len(body) < 4096 && !bytes.ContainsAny(body, "eE") {
			require.Equal(t, exactValue(t, body), exactValue(t, text))
		}
	})
}

// FuzzCompare asks for a difference exactly when the hashes differ.
func FuzzCompare(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":[1,2]}`), []byte(`{"b":[1,2],"a":1.0}`), "", "")
	f.Add([]byte(`{"t":1,"b":[1,2]}`), []byte(`{"b":[1,3],"t":2}`), "/t", "")
	f.Add([]byte(`{"t":1,"b":[1,2]}`), []byte(`{"b":[1,3],"t":2}`), "", "/b/0")
	f.Add([]byte(`{"b":[1,2]}`), []byte(`{"b":[]}`), "/b/1", "/b")
	f.Add([]byte(`{"b":{"t":1}}`), []byte(`{"b":{}}`), "/b/t", "")
	f.Fuzz(func(t *testing.T, a, b []byte, ignore, only string) {
		r := plain
		if ignore != "" {
			r.Ignore = []string{ignore}
		}
		if only != "" {
			r.Only = []string{only}
		}
		x, errX := fingerprint.Compute(a, r)
		y, errY := fingerprint.Compute(b, r)
		differences := fingerprint.Compare(a, b, r, 3)
		require.LessOrEqual(t, len(differences), 3)
		if errX != nil || errY != nil {
			return
		}
		require.Equal(t, x.Hash == y.Hash, len(differences) == 0, "%s\n%s\n%v", a, b, differences)
	})
}

func hash(t *testing.T, body []byte) string {
	t.Helper()
	f, err := fingerprint.Compute(body, plain)
	require.NoError(t, err, "%s", body)
	return f.Hash
}

// number and object keep what the spelling may vary.
type number struct{ coefficient, exponent int64 }
type object map[string]any

func randomValue(r *rand.Rand, depth int) any {
	switch n := r.IntN(8); {
	case n < 2 && depth > 0:
		o := object{}
		for range r.IntN(5) {
			o[randomString(r)] = randomValue(r, depth-1)
		}
		return o
	case n < 3 && depth > 0:
		list := make([]any, r.IntN(4))
		for i := range list {
			list[i] = randomValue(r, depth-1)
		}
		return list
	case n < 5:
		return randomString(r)
	case n < 7:
		return number{r.Int64() >> r.IntN(64), int64(r.IntN(40) - 20)}
	}
	return []any{nil, true, false}[r.IntN(3)]
}

func randomString(r *rand.Rand) string {
	pieces := []string{"a", "b", "é", "e\u0301", "😀", "\ufb33", "/", "~", `"`, `\`, "\n", "\x00", " ", "2024-05-01"}
	var b strings.Builder
	for range r.IntN(4) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

// spell writes a value as JSON in one of its spellings.
func spell(r *rand.Rand, v any) []byte {
	var b bytes.Buffer
	spellInto(r, &b, v)
	return b.Bytes()
}

func spellInto(r *rand.Rand, b *bytes.Buffer, v any) {
	space := func() { b.WriteString([]string{"", "", " ", "\n\t"}[r.IntN(4)]) }
	space()
	switch v := v.(type) {
	case object:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		b.WriteByte('{')
		for i, name := range names {
			if i > 0 {
				b.WriteByte(',')
			}
			space()
			spellString(r, b, name)
			space()
			b.WriteByte(':')
			spellInto(r, b, v[name])
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			spellInto(r, b, e)
		}
		b.WriteByte(']')
	case string:
		spellString(r, b, v)
	case number:
		spellNumber(r, b, v)
	default:
		fmt.Fprint(b, map[any]string{nil: "null", true: "true", false: "false"}[v])
	}
	space()
}

func spellString(r *rand.Rand, b *bytes.Buffer, s string) {
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c > 0xFFFF && r.IntN(2) == 0:
			c -= 0x10000
			fmt.Fprintf(b, `\u%04x\u%04X`, 0xD800+c>>10, 0xDC00+c&0x3FF)
		case c == '/' && r.IntN(2) == 0:
			b.WriteString(`\/`)
		case c < ' ' || c <= 0xFFFF && r.IntN(3) == 0:
			fmt.Fprintf(b, `\u%04x`, c)
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
}

func spellNumber(r *rand.Rand, b *bytes.Buffer, n number) {
	digits := strconv.FormatInt(n.coefficient, 10)
	switch r.IntN(3) {
	case 0:
		fmt.Fprintf(b, "%se%d", digits, n.exponent)
	case 1:
		zeros := strings.Repeat("0", r.IntN(3)+1)
		fmt.Fprintf(b, "%s.%sE%+03d", digits, zeros, n.exponent)
	default:
		if n.coefficient != 0 {
			digits += "00"
		}
		fmt.Fprintf(b, "%se%d", digits, n.exponent-2)
	}
}

// change returns the value with one difference.
func change(r *rand.Rand, v any) any {
	switch v := v.(type) {
	case object:
		out, changed := object{}, r.IntN(len(v)+1)
		for name, inner := range v {
			if changed == 0 {
				inner = change(r, inner)
			}
			changed--
			out[name] = inner
		}
		if changed >= 0 {
			out["added"] = nil
		}
		return out
	case []any:
		return append([]any{"first"}, v...)
	case string:
		return v + "."
	case number:
		return number{v.coefficient/2 + 1, v.exponent + 30}
	}
	return object{}
}

// exactValue decodes JSON with its numbers as rationals.
func exactValue(t *testing.T, body []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	require.NoError(t, dec.Decode(&v))
	return rational(t, v)
}

func rational(t *testing.T, v any) any {
	switch v := v.(type) {
	case json.Number:
		n, ok := new(big.Rat).SetString(string(v))
		require.True(t, ok, "%s", v)
		return n.String()
	case []any:
		for i := range v {
			v[i] = rational(t, v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = rational(t, v[name])
		}
	}
	return v
}
