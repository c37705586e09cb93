package jsondoc_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/cosmosdb/internal/jsondoc"
)

func TestATextReadsBackAsTheServiceWouldReturnIt(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"members keep their order", `{"b":1, "a":[true,null,"x"]}`, `{"b":1,"a":[true,null,"x"]}`},
		{"a big integer is rounded to a double", `12345678901234567890`, `12345678901234567000`},
		{"the largest exact integer stays", `9007199254740992`, `9007199254740992`},
		{"one above it is rounded", `9007199254740993`, `9007199254740992`},
		{"trailing zeros go", `[40.0,4e1,0.10]`, `[40,40,0.1]`},
		{"large and small numbers use exponents", `[1e21,1e-7]`, `[1e+21,1e-07]`},
		{"the last of two equal names counts", `{"a":1,"b":2,"a":3}`, `{"a":3,"b":2}`},
		{"control characters are escaped", `"a\u0001\n\"\\"`, `"a\u0001\n\"\\"`},
		{"other characters are not", `"\u9c40\ud83d\ude00<&>"`, `"鱀😀<&>"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, err := jsondoc.Parse([]byte(tt.text))
			require.NoError(t, err)
			require.Equal(t, tt.want, jsondoc.String(v))
		})
	}
}

func TestTextsThatAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":         ``,
		"two values":      `1 2`,
		"an open object":  `{"a":1`,
		"a huge number":   `1e400`,
		"not UTF-8":       "\"\xff\"",
		"many open lists": strings.Repeat("[", 200000),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := jsondoc.Parse([]byte(text))
			require.Error(t, err)
		})
	}
}

func TestDepthIsBounded(t *testing.T) {
	nested := func(n int) []byte { return []byte(strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n)) }
	_, err := jsondoc.Parse(nested(jsondoc.MaxDepth))
	require.NoError(t, err)
	_, err = jsondoc.Parse(nested(jsondoc.MaxDepth + 1))
	require.ErrorIs(t, err, jsondoc.ErrTooDeep)
}

func TestEqualLooksAtValuesOnly(t *testing.T) {
	parse := func(s string) any {
		v, err := jsondoc.Parse([]byte(s))
		require.NoError(t, err)
		return v
	}
	require.True(t, jsondoc.Equal(parse(`{"a":[1,{"x":null}],"b":2}`), parse(`{"b":2.0,"a":[1,{"x":null}]}`)))
	require.False(t, jsondoc.Equal(parse(`{"a":1}`), parse(`{"a":1,"b":null}`)))
	require.False(t, jsondoc.Equal(parse(`[1]`), parse(`1`)))
	require.False(t, jsondoc.Equal(parse(`1`), parse(`[1]`)))
	require.False(t, jsondoc.Equal(parse(`"1"`), parse(`1`)))
}

func TestACloneSharesNothing(t *testing.T) {
	o, err := jsondoc.ParseObject([]byte(`{"a":{"b":[1]}}`))
	require.NoError(t, err)
	c := o.Clone()
	inner, _ := c.Get("a")
	inner.(*jsondoc.Object).Set("b", "changed")
	require.Equal(t, `{"a":{"b":[1]}}`, jsondoc.String(o))
	require.True(t, c.Delete("a"))
	require.False(t, c.Delete("a"))
	require.Equal(t, 1, o.Len())
}

func TestManyMembersAreFoundLikeFew(t *testing.T) {
	for _, n := range []int{1, 16, 17, 300} {
		o := jsondoc.NewObject()
		for i := range n {
			o.Set(strconv.Itoa(i), float64(i))
		}
		o.Set("0", "again")
		require.Equal(t, n, o.Len())
		require.True(t, o.Delete("0"))
		c := o.Clone()
		require.True(t, jsondoc.Equal(o, c))
		for i := range n {
			v, ok := c.Get(strconv.Itoa(i))
			require.Equal(t, i > 0, ok)
			if ok {
				require.InDelta(t, i, v, 0)
			}
		}
		c.Set("new", nil)
		require.Equal(t, "new", c.Names()[n-1])
		require.False(t, jsondoc.Equal(o, c))
	}
}

func TestPaths(t *testing.T) {
	require.Equal(t, []string{"a", "b c", "d"}, jsondoc.SplitPath(`/a/"b c"/d`))
	require.Empty(t, jsondoc.SplitPath(`/`))
	o, err := jsondoc.ParseObject([]byte(`{"a":{"b":null},"l":[1]}`))
	require.NoError(t, err)
	v, ok := jsondoc.At(o, []string{"a", "b"})
	require.True(t, ok)
	require.Nil(t, v)
	_, ok = jsondoc.At(o, []string{"l", "0"})
	require.False(t, ok)
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e3,"x\u0000"]}`, `[[[]]]`, `"\ud800"`, `-0`, `{"a":1,"a":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := jsondoc.Parse(text)
		if err != nil {
			return
		}
		out := jsondoc.Encode(v)
		require.True(t, json.Valid(out), "encoded %q", out)
		again, err := jsondoc.Parse(out)
		require.NoError(t, err)
		require.True(t, jsondoc.Equal(v, again))
		require.Equal(t, string(out), jsondoc.String(again))
	})
}
