package fingerprint_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker/fingerprint"
)

func problemOf(t *testing.T, err error) *fingerprint.Problem {
	t.Helper()
	p, ok := errors.AsType[*fingerprint.Problem](err)
	require.True(t, ok, "%v is no problem of a body", err)
	require.NotEmpty(t, p.Error())
	return p
}

func TestCheckNamesTheProblemAndItsPlace(t *testing.T) {
	open := strings.Repeat(`{"a":`, 127)
	tests := []struct {
		name, body string
		kind       fingerprint.ProblemKind
		offset     int64
		path       string
	}{
		{"NaN", `{"w":NaN}`, fingerprint.NotJSON, 5, "/w"},
		{"minus Infinity", `{"w":-Infinity}`, fingerprint.NotJSON, 6, "/w"},
		{"single quotes", `{'a':1}`, fingerprint.NotJSON, 1, ""},
		{"two values", `{"a":1} {"b":2}`, fingerprint.NotJSON, 7, ""},
		{"a value and rubbish", `{"a":1}x`, fingerprint.NotJSON, 7, ""},
		{"XML", `<order/>`, fingerprint.NotJSON, 0, ""},
		{"no value", ` `, fingerprint.NotJSON, 0, ""},
		{"a cut value", `{"a":[1`, fingerprint.NotJSON, 7, "/a"},
		{"a comma too many", `[1,]`, fingerprint.NotJSON, 2, ""},
		{"a comma too many in an object", `{"a":1,}`, fingerprint.NotJSON, 6, ""},
		{"a leading zero", `[01]`, fingerprint.NotJSON, 2, ""},
		{"a plus sign", `[+1]`, fingerprint.NotJSON, 1, "/0"},
		{"a bare control character", "[\"\t\"]", fingerprint.NotJSON, 2, "/0"},
		{"a comment", "/* */{}", fingerprint.NotJSON, 0, ""},
		{"a byte order mark", "\ufeff{}", fingerprint.NotJSON, 0, ""},
		{"a name that is a number", `{1:2}`, fingerprint.NotJSON, 1, ""},
		{"invalid UTF-8 in a string", "{\"name\":\"Andr\xe9\"}", fingerprint.InvalidUTF8, 13, ""},
		{"a lone high surrogate", `{"name":"\ud800"}`, fingerprint.InvalidUTF8, 9, "/name"},
		{"a lone low surrogate", `{"name":"x\uDFFF"}`, fingerprint.InvalidUTF8, 10, "/name"},
		{"a lone surrogate in a name", `{"\ud83d":1}`, fingerprint.InvalidUTF8, 2, ""},
		{"a name twice", `{"a":1,"a":1}`, fingerprint.DuplicateName, 10, "/a"},
		{"a name twice, apart", `{"b":{"z":1,"y":2,"z":3}}`, fingerprint.DuplicateName, 24, "/b/z"},
		{"a name twice in two spellings", `{"a":1,"\u0061":1}`, fingerprint.DuplicateName, 15, "/a"},
		{"the empty name twice", `{"":1,"":1}`, fingerprint.DuplicateName, 8, "/"},
		{"one level too deep", open + `{}` + strings.Repeat("}", 127), fingerprint.TooDeep, 634, ""},
		{"arrays without end", strings.Repeat("[", 200_000), fingerprint.TooDeep, 127, ""},
		{"a number beyond every double", `{"w":1e400}`, fingerprint.NumberOutOfRange, 5, "/w"},
		{"a long number beyond every double", "[" + strings.Repeat("9", 310) + "]", fingerprint.NumberOutOfRange, 1, "/0"},
		{"an exponent without end", `[1e99999999999999999999999999]`, fingerprint.NumberOutOfRange, 1, "/0"},
		{"a negative exponent without end", `[1e-99999999999999999999999999]`, fingerprint.NumberOutOfRange, 1, "/0"},
		{"too many bytes", `"` + strings.Repeat("x", 300_000) + `"`, fingerprint.TooLarge, -1, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := problemOf(t, fingerprint.Check([]byte(tt.body), fingerprint.Limits{MaxBytes: 300_000, MaxDepth: 127}))
			require.Equal(t, tt.kind, p.Kind, "%v", p)
			require.Equal(t, tt.offset, p.Offset, "%v", p)
			require.Equal(t, tt.path, p.Path, "%v", p)
		})
	}
}

func TestTheCauseOfBadJSONIsToldByItsBytes(t *testing.T) {
	for _, tt := range []struct{ name, body, says string }{
		{"JSON in base64", "eyJvcmRlcklkIjoxfQ==", "in base64"},
		{"an array in base64, indented", "\nWwogIHsiYSI6MX0KXQ==", "in base64"},
		{"gzip in base64", "H4sIAAAAAAAA/6tWyi9KSS3yTFGyqgUA", "in base64"},
		{"a word that is no base64 of JSON", "hello", "a word without quotes"},
		{"a name without quotes", `{a:1}`, "a word without quotes"},
		{"what Python writes", `{"a": None}`, "a word without quotes"},
		{"what JavaScript writes for an object", `[object Object]`, "a word without quotes"},
		{"a word cut short", `{"a":tru}`, "no JSON from here on"},
		{"a number in another base", `{"a":0x10}`, "no JSON from here on"},
		{"a comma at the end of an object", `{"a":1, }`, "a comma before the end"},
		{"a comma at the end of an array", `[1,]`, "a comma before the end"},
		{"a comment before the value", `/* */{}`, "a comment"},
		{"a comment in it", "{// x\n}", "a comment"},
		{"a line for each value", "{}\n{}\n", "a message of its own"},
		{"values with a comma between", "{},{}", "something follows"},
		{"the end of a C string", "{}\x00", "NUL characters follow"},
		{"a comment behind the value", `{} // x`, "something follows"},
		{"nothing", "", "too early"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := problemOf(t, fingerprint.Check([]byte(tt.body), fingerprint.Limits{}))
			require.Equal(t, fingerprint.NotJSON, p.Kind)
			require.Contains(t, p.Cause, tt.says)
		})
	}
}

func TestCheckAcceptsWhatIsOne(t *testing.T) {
	for _, body := range []string{
		`{}`, ` {"w":-0.0} `, `[1e308,-1e308,1e-400,0e999999999999999999999999]`, `"\ud83d\ude00"`, `{"a":1,"A":1,"á":1,"a\u0301":1}`,
		`{"a":{"x":1},"b":{"x":1}}`, strings.Repeat(`{"a":`, 127) + "1" + strings.Repeat("}", 127), `{"prototype":1,"__proto__":2}`,
	} {
		require.NoError(t, fingerprint.Check([]byte(body), fingerprint.Limits{MaxDepth: 127}), "%s", body)
	}
}

func TestPathsOfProblemsAreBounded(t *testing.T) {
	name := strings.Repeat("é", 500)
	p := problemOf(t, fingerprint.Check([]byte(fmt.Sprintf(`{"%s":NaN}`, name)), fingerprint.Limits{}))
	require.Equal(t, "/"+strings.Repeat("é", 99)+"…", p.Path, "cut at a character")
}

func TestParametersAreRefusedWithAllFaults(t *testing.T) {
	_, err := fingerprint.NewParameters("text", []string{"", "a", "/~2"}, []string{"x"})
	for _, fault := range []string{`form "text"`, `ignore ""`, `ignore "a"`, `ignore "/~2"`, `only "x"`} {
		require.ErrorContains(t, err, fault)
	}
	_, err = fingerprint.NewParameters("bytes", []string{"/a"}, nil)
	require.ErrorContains(t, err, "bytes")
	_, err = fingerprint.NewParameters("", []string{"/data"}, []string{"/data/id"})
	require.ErrorContains(t, err, "never count")
	_, err = fingerprint.NewParameters("", []string{"/data"}, []string{"/data2", "/datab/c"})
	require.NoError(t, err, "a longer name is not within a shorter one")
}

func TestTheOrderOfSelectionsDoesNotMatter(t *testing.T) {
	a, err := fingerprint.NewParameters("json", []string{"/b", "/a", "/b"}, nil)
	require.NoError(t, err)
	b, err := fingerprint.NewParameters("", []string{"/a", "/b"}, nil)
	require.NoError(t, err)
	require.Equal(t, a, b)
	require.True(t, fingerprint.Parameters{Version: 1, Ignore: []string{"/b", "/a"}}.Equal(fingerprint.Parameters{Version: 1, Ignore: []string{"/a", "/b"}}))
	for _, other := range []fingerprint.Parameters{
		{Version: 2}, {Version: 1, Algorithm: "x"}, {Version: 1, Form: "x"}, {Version: 1, Ignore: []string{"/a"}}, {Version: 1, Only: []string{"/a"}},
		{Version: 1, Part: "data"}, {Version: 1, Unwrap: true},
	} {
		require.False(t, fingerprint.Parameters{Version: 1}.Equal(other), "%+v", other)
	}
}

func TestUnknownParametersAreNeitherEqualNorDifferent(t *testing.T) {
	for _, r := range []fingerprint.Parameters{
		{}, {Version: 2, Algorithm: "sha256", Form: "json"}, {Version: 1, Algorithm: "sha512", Form: "json"}, {Version: 1, Algorithm: "sha256", Form: "xml"},
		{Version: 1, Algorithm: "sha256", Form: "json", Ignore: []string{"no pointer"}}, {Version: 1, Algorithm: "sha256", Form: "json", Part: "other"},
	} {
		_, err := fingerprint.Compute([]byte(`{}`), r)
		require.ErrorIs(t, err, fingerprint.ErrUnknownParameters)
		unknown, ok := errors.AsType[*fingerprint.UnknownParametersError](err)
		require.True(t, ok)
		require.Equal(t, r, unknown.Parameters)
	}
}

func TestOnlySixtyFourLowerCaseHexDigitsAreAHash(t *testing.T) {
	whole := hash(t, []byte(`{}`))
	require.True(t, fingerprint.ValidHash(whole))
	for _, damaged := range []string{
		"", whole[:63], whole + "0", strings.ToUpper(whole), "sha256:" + whole, "sha256:" + whole[7:], whole[:63] + "g", whole[:62] + "é", " " + whole[1:],
	} {
		require.False(t, fingerprint.ValidHash(damaged), "%q", damaged)
	}
}

func TestABodyWithoutAnySelectedValueHasNoFingerprint(t *testing.T) {
	for _, tt := range []struct {
		body         string
		ignore, only []string
	}{
		{`{"a":1}`, nil, []string{"/b", "/c/d"}},
		{`{"c":{}}`, nil, []string{"/c/d"}},
		{`[1]`, nil, []string{"/1", "/00"}},
		{`{"a":1}`, []string{"/a"}, nil},
		{`{"a":{"b":1}}`, []string{"/a/b"}, nil},
		{`{"a":{"b":1},"c":2}`, []string{"/a/b"}, []string{"/a"}},
	} {
		r, err := fingerprint.NewParameters("", tt.ignore, tt.only)
		require.NoError(t, err)
		_, err = fingerprint.Compute([]byte(tt.body), r)
		require.Equal(t, fingerprint.NothingSelected, problemOf(t, err).Kind, "%s", tt.body)
	}
	r, err := fingerprint.NewParameters("", []string{"/a"}, nil)
	require.NoError(t, err)
	for _, body := range []string{`{}`, `{"b":{}}`, `{"a":1,"b":[]}`, `5`} {
		_, err := fingerprint.Compute([]byte(body), r)
		require.NoError(t, err, "%s has something to compare", body)
	}
}

func TestCompareNamesPathsAndKinds(t *testing.T) {
	type list = []fingerprint.Difference
	parameters := func(ignore, only []string) fingerprint.Parameters {
		r, err := fingerprint.NewParameters("", ignore, only)
		require.NoError(t, err)
		return r
	}
	tests := []struct {
		name, stored, arrived string
		parameters            fingerprint.Parameters
		want                  list
	}{
		{"equal", `{"a":1,"b":2}`, `{"b":2.0,"a":1}`, plain, nil},
		{"a changed value", `{"due":"2018-07-26T19:45:36-07:00"}`, `{"due":"07/26/2018 19:45:36"}`, plain, list{{"/due", "changed"}}},
		{"null and absent", `{"orderId":1,"coupon":null}`, `{"orderId":1}`, plain, list{{"/coupon", "removed"}}},
		{"absent and an empty list", `{}`, `{"lines":[]}`, plain, list{{"/lines", "added"}}},
		{"empty and null", `{"note":""}`, `{"note":null}`, plain, list{{"/note", "changed"}}},
		{"the text 1 and the number 1", `{"a":"1"}`, `{"a":1}`, plain, list{{"/a", "changed"}}},
		{"true and the text true", `{"a":true}`, `{"a":"true"}`, plain, list{{"/a", "changed"}}},
		{"array order", `{"lines":[1,2,3]}`, `{"lines":[2,1]}`, plain, list{{"/lines/0", "changed"}, {"/lines/1", "changed"}, {"/lines/2", "removed"}}},
		{"names with slashes and tildes", `{"a/b":1,"c~d":1}`, `{"a/b":2,"c~d":2}`, plain, list{{"/a~1b", "changed"}, {"/c~0d", "changed"}}},
		{"other kinds as a whole", `{}`, `[]`, plain, list{{"", "changed"}}},
		{"big integers that a double confuses", `[12345678901234567890]`, `[12345678901234567891]`, plain, list{{"/0", "changed"}}},
		{"ignored values", `{"sentAt":1,"a":1}`, `{"sentAt":2,"a":2}`, parameters([]string{"/sentAt"}, nil), list{{"/a", "changed"}}},
		{"only some values", `{"id":1,"data":{"a":1}}`, `{"id":2,"data":{"a":2},"x":1}`, parameters(nil, []string{"/data", "/x/y"}), list{{"/data/a", "changed"}}},
		{"a selected value that is gone", `{"data":1,"x":1}`, `{"x":1}`, parameters(nil, []string{"/data", "/x"}), list{{"/data", "removed"}}},
		{"not JSON", `{}`, `no`, plain, list{{"", "changed"}}},
		{"bytes", `{}`, `{ }`, fingerprint.Parameters{Version: 1, Algorithm: "sha256", Form: "bytes"}, list{{"", "changed"}}},
		{"equal bytes", `{}`, `{}`, fingerprint.Parameters{Version: 1, Algorithm: "sha256", Form: "bytes"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, fingerprint.Compare([]byte(tt.stored), []byte(tt.arrived), tt.parameters, 10))
		})
	}
}

func TestCompareIsBounded(t *testing.T) {
	many := func(v int) []byte {
		var b strings.Builder
		for i := range 1_000 {
			fmt.Fprintf(&b, `,"%0300d":%d`, i, v)
		}
		return []byte("{" + b.String()[1:] + "}")
	}
	found := fingerprint.Compare(many(1), many(2), plain, 5)
	require.Len(t, found, 5)
	for _, d := range found {
		require.LessOrEqual(t, len(d.Path), fingerprint.MaxPath+len("…"))
	}
	require.Empty(t, fingerprint.Compare(many(1), many(2), plain, 0))
}

func TestInexactFindsWhatADoubleRounds(t *testing.T) {
	found, err := fingerprint.Inexact([]byte(`{"id":12345678901234567890,"a":[0.1,1e22,9007199254740993,{"b/c":0.12345678901234567891}],`+
		`"small":1e-400,"max":1.7976931348623157e308,"zero":-0.0,"n":1.50,"k":9007199254740992,"text":"12345678901234567890","d":0.10000000000000000}`), fingerprint.Limits{})
	require.NoError(t, err)
	require.Equal(t, []fingerprint.Exact{
		{Path: "/id", Text: "12345678901234567890"}, {Path: "/a/2", Text: "9007199254740993"}, {Path: "/a/3/b~1c", Text: "0.12345678901234567891"},
		{Path: "/small", Text: "1e-400"},
	}, found)
	_, err = fingerprint.Inexact([]byte(`{"a":1,`), fingerprint.Limits{})
	require.Equal(t, fingerprint.NotJSON, problemOf(t, err).Kind)
	_, err = fingerprint.Inexact([]byte(`{"a":{"a":12345678901234567890}}`), fingerprint.Limits{MaxDepth: 1})
	require.Equal(t, fingerprint.TooDeep, problemOf(t, err).Kind)
}

func TestRestoreLeavesWhatWasChangedSince(t *testing.T) {
	exact := []fingerprint.Exact{{Path: "/id", Text: "12345678901234567890"}, {Path: "/gone", Text: "9007199254740993"}}
	back, err := fingerprint.Restore([]byte(`{ "id":12345678901234567000, "x":1}`), exact)
	require.NoError(t, err)
	require.Equal(t, `{ "id":12345678901234567890, "x":1}`, string(back))
	back, err = fingerprint.Restore([]byte(`{"id":7,"gone":"text"}`), exact)
	require.NoError(t, err)
	require.Equal(t, `{"id":7,"gone":"text"}`, string(back))
}

func TestRestoreFindsItsPlaceAmongAlikePaths(t *testing.T) {
	const original, rounded = "12345678901234567890", "12345678901234567000"
	var exact []fingerprint.Exact
	for _, path := range []string{"/a", "/a!/b", "/a/b", "/a~1b", "/a~0", "/l/1", "/l/10", "/l/2/", "/", "//x", "x", "", "/gone/x"} {
		exact = append(exact, fingerprint.Exact{Path: path, Text: original})
	}
	body := `{"a!":{"b":#,"c":1},"a":{"b":#,"b!":R,"":R},"a/b":#,"a~":#,"l":[R,#,{"":#},R,R,R,R,R,R,R,#,R],"":{"x":#,"":R},"x":R}`
	fill := func(at string) string {
		return strings.NewReplacer("#", at, "R", rounded).Replace(body)
	}
	back, err := fingerprint.Restore([]byte(fill(rounded)), exact)
	require.NoError(t, err)
	require.Equal(t, fill(original), string(back))
	back, err = fingerprint.Restore([]byte(rounded), exact)
	require.NoError(t, err)
	require.Equal(t, original, string(back), "the whole body")
}

func TestRestorePutsNothingButANumberIntoABody(t *testing.T) {
	for _, damaged := range []string{"0x10", "+16", "16.", "016", "1_6", "inf", "", "16 ,1", `"16"`, " 16"} {
		back, err := fingerprint.Restore([]byte(`{"a":16}`), []fingerprint.Exact{{Path: "/a", Text: damaged}})
		require.NoError(t, err)
		require.Equal(t, `{"a":16}`, string(back), "%q", damaged)
	}
}

func TestExtract(t *testing.T) {
	body := []byte(` {"a":{"b/c":[10, {"~": "x"} ]},"":{"":null}} `)
	for pointer, want := range map[string]string{
		"/a/b~1c/0": "10", "/a/b~1c/1": `{"~": "x"}`, "/a/b~1c/1/~0": `"x"`, "//": "null", "/": `{"":null}`, "": `{"a":{"b/c":[10, {"~": "x"} ]},"":{"":null}}`,
	} {
		got, ok := fingerprint.Extract(body, pointer)
		require.True(t, ok, pointer)
		require.Equal(t, want, string(got), pointer)
	}
	for _, pointer := range []string{"/b", "/a/b~1c/2", "/a/b~1c/-", "/a/b~1c/00", "/a/b~1c/0/x", "/a/b~1c/-1", "a", "/a/x/y"} {
		_, ok := fingerprint.Extract(body, pointer)
		require.False(t, ok, pointer)
	}
}

func TestUnquoteAndWholeNumber(t *testing.T) {
	text, ok := fingerprint.Unquote([]byte(` "{\"a\":1}" `))
	require.True(t, ok)
	require.Equal(t, `{"a":1}`, string(text))
	for _, not := range []string{``, `"`, `1`, `{"a":1}`, `"a" "b"`, `"\ud800"`, `"a`} {
		_, ok := fingerprint.Unquote([]byte(not))
		require.False(t, ok, not)
	}
	for text, want := range map[string]string{"42": "42", "42.0": "42", "4.2e1": "42", "-0": "0", "-7": "-7", "1e3": "1000", "12345678901234567890": "12345678901234567890"} {
		n, ok := fingerprint.WholeNumber([]byte(text))
		require.True(t, ok, text)
		require.Equal(t, want, n)
	}
	for _, not := range []string{"1.5", "1e-1", "1e400", `"1"`, "", "null", "1 2"} {
		_, ok := fingerprint.WholeNumber([]byte(not))
		require.False(t, ok, not)
	}
}

// TestMemoryStaysWithinAMultipleOfTheBody counts what is allocated in all, kept or not, for bodies made to cost the most.
func TestMemoryStaysWithinAMultipleOfTheBody(t *testing.T) {
	const size, multiple = 1 << 20, 16
	var reversed, nested strings.Builder
	for i := size / 9; i > 0; i-- {
		fmt.Fprintf(&reversed, `,"%x":0`, i)
	}
	for i := range size / (5 * 100) {
		fmt.Fprintf(&nested, `,"%x":%s1%s`, i, strings.Repeat(`{"":`, 100), strings.Repeat("}", 100))
	}
	for name, body := range map[string]string{
		"numbers":                    "[1" + strings.Repeat(",1", size/2) + "]",
		"fractions":                  "[1.5" + strings.Repeat(",1.5", size/4) + "]",
		"objects":                    "[{}" + strings.Repeat(",{}", size/3) + "]",
		"members in the wrong order": "{" + reversed.String()[1:] + "}",
		"short names in wrong order": shortNames(size),
		"deep objects":               "{" + nested.String()[1:] + "}",
		"a long number":              strings.Repeat("9", 300) + "." + strings.Repeat("1", size),
		"a string of escapes":        `"` + strings.Repeat(`\u0001`, size/6) + `"`,
		"a string of quotes":         `"` + strings.Repeat(`\"`, size/2) + `"`,
		"names of escapes":           `{"` + strings.Repeat(`\u0001`, size/6) + `":1}`,
		"a huge exponent":            `[1e-` + strings.Repeat("9", size) + "]",
		"brackets without end":       strings.Repeat("[", size),
		"one name again and again":   `{"a":1` + strings.Repeat(`,"a":1`, size/6) + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := fingerprint.Check([]byte(body), fingerprint.Limits{MaxDepth: 127})
			runtime.ReadMemStats(&after)
			if err != nil {
				problemOf(t, err)
			}
			allocated := after.TotalAlloc - before.TotalAlloc
			t.Logf("%.1f bytes for each byte of the body", float64(allocated)/float64(len(body)))
			require.Less(t, allocated, uint64(multiple*len(body)))
		})
	}
}

// shortNames lists members whose names are three characters, in an order that fits none.
func shortNames(size int) string {
	const digits = "zyxwvutsrqponmlkjihgfedcbaZYXWVUTSRQPONMLKJIHGFEDCBA9876543210+*)(&%$#!"
	var b strings.Builder
	for i := range min(size/8, len(digits)*len(digits)*len(digits)) {
		fmt.Fprintf(&b, `,"%c%c%c":0`, digits[i%len(digits)], digits[i/len(digits)%len(digits)], digits[i/len(digits)/len(digits)])
	}
	return "{" + b.String()[1:] + "}"
}
