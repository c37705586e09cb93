package query_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/cosmosdb/internal/jsondoc"
	"github.com/orderworker/orderworker/testenv/cosmosdb/internal/query"
)

func object(t testing.TB, text string) *jsondoc.Object {
	t.Helper()
	o, err := jsondoc.ParseObject([]byte(text))
	require.NoError(t, err)
	return o
}

func TestWhereLetsThroughOnlyWhatIsTrue(t *testing.T) {
	doc := object(t, `{"id":"a","n":3,"s":"Hello World","t":true,"nil":null,"list":[1,"x",{"y":2}],"o":{"in":{"x":"deep"}},"odd name":1}`)
	params := map[string]any{"@n": 3.0, "@s": "Hello World", "@null": nil}
	tests := []struct {
		where string
		want  bool
	}{
		{"c.n = 3", true}, {"c.n = 3.0", true}, {"c.n != 3", false}, {"c.n <> 4", true}, {"c.n < 4 and c.n > 2", true},
		{"c.n <= 3 AND c.n >= 3", true}, {"c.n = '3'", false}, {"c.n != '3'", false}, {"NOT (c.n = '3')", false},
		{"c.missing = 1", false}, {"NOT (c.missing = 1)", false}, {"c.missing = 1 OR c.n = 3", true}, {"c.n = 3 OR c.missing = 1", true},
		{"c.missing = 1 AND false", false}, {"NOT (c.missing = 1 AND false)", true}, {"c.t", true}, {"NOT c.t", false}, {"c.n", false},
		{"c.n IN (1, 2, 3)", true}, {"c.n NOT IN (1, 2)", true}, {"c.n IN (1)", false}, {"c.n BETWEEN 1 AND 3", true}, {"c.n NOT BETWEEN 1 AND 3", false},
		{"c.n = @n AND c.s = @s", true}, {"c.n = @other", false}, {"c.nil = null", true}, {"c.nil = @null", true}, {"IS_NULL(c.nil)", true},
		{"IS_NULL(c.missing)", false}, {"IS_DEFINED(c.nil)", true}, {"IS_DEFINED(c.missing)", false}, {"NOT IS_DEFINED(c.missing)", true},
		{"STARTSWITH(c.s, 'Hello')", true}, {"STARTSWITH(c.s, 'hello')", false}, {"STARTSWITH(c.s, 'hello', true)", true},
		{"ENDSWITH(c.s, 'World')", true}, {"CONTAINS(c.s, 'lo W')", true}, {"contains(c.n, 'x')", false},
		{"LOWER(c.s) = 'hello world'", true}, {"UPPER(c.s) = 'HELLO WORLD'", true}, {"LENGTH(c.s) = 11", true},
		{"ARRAY_LENGTH(c.list) = 3", true}, {"ARRAY_CONTAINS(c.list, 'x')", true}, {"ARRAY_CONTAINS(c.list, 'z')", false},
		{"c.list[1] = 'x'", true}, {"c.list[9] = 'x'", false}, {"c.list[2].y = 2", true}, {"c.o['in'].x = 'deep'", true}, {`c["odd name"] = 1`, true},
		{"IS_STRING(c.s) AND IS_NUMBER(c.n) AND IS_BOOL(c.t) AND IS_ARRAY(c.list) AND IS_OBJECT(c.o)", true},
		{"FullTextContains(c.s, 'world')", true}, {"FullTextContains(c.s, 'wor')", false}, {"FullTextContains(c.s, 'hello world')", true},
		{`c.id = "a"`, true}, {`c.id = 'it\'s'`, false}, {"c.n = -3", false}, {"c.n > 1e-3", true}, {"c.t > false", true}, {"c.list = c.list", true},
		{"c.list < c.list", false}, {"(((c.n)) = (3))", true}, {"c.n = undefined", false}, {"root.n = 3", true},
	}
	for _, tt := range tests {
		t.Run(tt.where, func(t *testing.T) {
			q, err := query.Parse("SELECT * FROM c WHERE " + tt.where)
			require.NoError(t, err)
			require.Equal(t, tt.want, q.Matches(doc, params))
		})
	}
}

func TestProjections(t *testing.T) {
	doc := object(t, `{"id":"a","n":3,"o":{"x":1}}`)
	for text, want := range map[string]string{
		"SELECT * FROM c":                             `{"id":"a","n":3,"o":{"x":1}}`,
		"select * from docs c":                        `{"id":"a","n":3,"o":{"x":1}}`,
		"SELECT * FROM root AS r WHERE r.id = 'a'":    `{"id":"a","n":3,"o":{"x":1}}`,
		"SELECT VALUE c.o.x FROM c":                   `1`,
		"SELECT VALUE c FROM c":                       `{"id":"a","n":3,"o":{"x":1}}`,
		"SELECT c.id, c.n AS count, c.none, 7 FROM c": `{"id":"a","count":3,"$4":7}`,
		"SELECT VALUE c.none FROM c":                  ``,
		"SELECT VALUE {'a': c.n, b: c.none} FROM c":   `{"a":3}`,
		"SELECT VALUE [c.n, c.none, [], {}] FROM c":   `[3,[],{}]`,
		"SELECT VALUE COUNT(1) FROM c":                `1`,
		"SELECT VALUE COUNT(c.none) FROM c":           ``,
	} {
		t.Run(text, func(t *testing.T) {
			q, err := query.Parse(text)
			require.NoError(t, err)
			require.True(t, q.Matches(doc, nil))
			v, ok := q.Project(doc, nil)
			got := ""
			if ok {
				got = jsondoc.String(v)
			}
			require.Equal(t, want, got)
		})
	}
}

func TestOrderRanksTypes(t *testing.T) {
	docs := []*jsondoc.Object{
		object(t, `{"id":"string","v":"a"}`), object(t, `{"id":"two","v":2}`), object(t, `{"id":"object","v":{}}`), object(t, `{"id":"true","v":true}`),
		object(t, `{"id":"none"}`), object(t, `{"id":"null","v":null}`), object(t, `{"id":"false","v":false}`), object(t, `{"id":"list","v":[]}`), object(t, `{"id":"one","v":1}`),
	}
	ids := func(text string) []string {
		q, err := query.Parse(text)
		require.NoError(t, err)
		require.True(t, q.Ordered())
		sorted := slices.Clone(docs)
		slices.SortStableFunc(sorted, q.Compare)
		var list []string
		for _, d := range sorted {
			id, _ := d.Text("id")
			list = append(list, id)
		}
		return list
	}
	up := []string{"none", "null", "false", "true", "one", "two", "string", "list", "object"}
	require.Equal(t, up, ids("SELECT * FROM c ORDER BY c.v"))
	require.Equal(t, up, ids("SELECT * FROM c ORDER BY c.v ASC"))
	slices.Reverse(up)
	require.Equal(t, up, ids("SELECT * FROM c ORDER BY c.v DESC"))
}

func TestWindows(t *testing.T) {
	q, err := query.Parse("SELECT * FROM c ORDER BY c.x OFFSET 3 LIMIT 4")
	require.NoError(t, err)
	require.Equal(t, []int{3, 4}, []int{q.Skip, q.Limit})
	q, err = query.Parse("SELECT TOP 5 * FROM c")
	require.NoError(t, err)
	require.Equal(t, []int{0, 5}, []int{q.Skip, q.Limit})
	require.True(t, q.Windowed())
	q, err = query.Parse("SELECT * FROM c")
	require.NoError(t, err)
	require.False(t, q.Windowed())
}

func TestAQueryMayPinItsPartition(t *testing.T) {
	paths := [][]string{{"a"}, {"b", "x"}}
	params := map[string]any{"@b": 2.0}
	for text, want := range map[string][]any{
		"c.a = 'x' AND c.b.x = @b":             {"x", 2.0},
		"c.n > 3 AND (c.b.x = @b AND c.a = 1)": {1.0, 2.0},
		"c.a = 'x'":                            nil,
		"c.a = 'x' OR c.b.x = @b":              nil,
		"c.a = 'x' AND c.b.x > @b":             nil,
		"c.a = 'x' AND c.b.x = c.other":        nil,
	} {
		q, err := query.Parse("SELECT * FROM c WHERE " + text)
		require.NoError(t, err)
		got, ok := q.Pinned(paths, params)
		require.Equal(t, want != nil, ok, text)
		require.Equal(t, want, got, text)
	}
}

func TestQueriesThatAreNotImplementedSaySo(t *testing.T) {
	for _, text := range []string{
		"SELECT DISTINCT c.x FROM c", "SELECT * FROM c JOIN d IN c.d", "SELECT * FROM c IN c.lines", "SELECT * FROM c.lines", "SELECT VALUE SUM(c.x) FROM c",
		"SELECT COUNT(1) FROM c", "SELECT * FROM c WHERE COUNT(1) = 1", "SELECT * FROM c GROUP BY c.x", "SELECT * FROM c WHERE c.x LIKE 'a%'", "SELECT * FROM c WHERE c.x + 1 = 2",
		"SELECT * FROM c WHERE udf.f(c)", "SELECT * FROM c WHERE EXISTS(SELECT * FROM d)", "SELECT * FROM c WHERE (SELECT 1) = 1", "SELECT * FROM c ORDER BY c.a, c.b",
		"SELECT * FROM c ORDER BY LOWER(c.a)", "SELECT * FROM c OFFSET @a LIMIT 1", "SELECT 1",
		"SELECT * FROM c WHERE " + strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300), "SELECT * FROM c WHERE " + strings.Repeat("NOT ", 10000) + "c.x",
	} {
		_, err := query.Parse(text)
		_, ok := errors.AsType[*query.Unsupported](err)
		require.True(t, ok, "%.80s: %v", text, err)
	}
}

func TestTextsThatAreNoQueries(t *testing.T) {
	for _, text := range []string{
		"", "SELECT", "SELECT * FROM", "FROM c", "SELECT * FROM c WHERE", "SELECT * FROM c WHERE c.", "SELECT * FROM c WHERE c.x =", "SELECT * FROM c WHERE d.x = 1",
		"SELECT * FROM c WHERE c.x = 'open", "SELECT * FROM c WHERE (c.x = 1", "SELECT * FROM c WHERE c.x IN ()", "SELECT * FROM c WHERE c.x IN (1", "SELECT * FROM c WHERE c.x NOT 1",
		"SELECT * FROM c extra stuff", "SELECT * FROM c ORDER c.x", "SELECT * FROM c OFFSET 1", "SELECT TOP x * FROM c", "SELECT * FROM c WHERE @ = 1", "SELECT * FROM c WHERE 1.2.3 = 1",
		"SELECT VALUE c.x AS y FROM c", "SELECT * FROM c WHERE c[c.x] = 1", "SELECT * FROM c WHERE c['x' = 1", "SELECT * FROM c WHERE IS_NULL()", "SELECT * FROM c WHERE c.x BETWEEN 1 OR 2", "SELECT * FROM 'c'",
	} {
		_, err := query.Parse(text)
		_, ok := errors.AsType[*query.SyntaxError](err)
		require.True(t, ok, "%s: %v", text, err)
	}
}

func TestConditionsOfPatches(t *testing.T) {
	c, err := query.ParseCondition("from c where c.state = 'open'")
	require.NoError(t, err)
	require.True(t, c.Matches(object(t, `{"state":"open"}`), nil))
	require.False(t, c.Matches(object(t, `{}`), nil))
	_, err = query.ParseCondition("where c.x = 1")
	require.Error(t, err)
}

func TestALongListDoesNotNestDeeply(t *testing.T) {
	q, err := query.Parse("SELECT * FROM c WHERE c.n IN (" + strings.Repeat("0,", 10000) + "1)")
	require.NoError(t, err)
	require.True(t, q.Matches(object(t, `{"n":1}`), nil))
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"SELECT * FROM c", "SELECT c.a, c.b AS x FROM c WHERE c.x = 'y' AND NOT (c.n < 1e3 OR c[\"z\"][0] IN (@a, null)) ORDER BY c.id DESC OFFSET 1 LIMIT 2",
		"SELECT VALUE COUNT(1) FROM root r WHERE STARTSWITH(r.a, \"\\u0041\")", "SELECT TOP 1 * FROM c WHERE c.a BETWEEN -1 AND 2",
	} {
		f.Add(s)
	}
	doc := object(f, `{"id":"a","a":[1,{"b":null}],"n":1.5}`)
	f.Fuzz(func(t *testing.T, text string) {
		q, err := query.Parse(text)
		if err != nil {
			_, unsupported := errors.AsType[*query.Unsupported](err)
			_, syntax := errors.AsType[*query.SyntaxError](err)
			require.True(t, unsupported || syntax, "%v", err)
			return
		}
		q.Matches(doc, map[string]any{"@a": "x"})
		q.Project(doc, nil)
		if q.Ordered() {
			require.Zero(t, q.Compare(doc, doc))
		}
	})
}
