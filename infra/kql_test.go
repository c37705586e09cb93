package infra_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// birds is a small table with a null, an empty text and JSON.
func birds() map[string]kqlTable {
	noon := time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC)
	return map[string]kqlTable{
		"Birds": {columns: []string{"At", "Name", "N", "J"}, rows: []kqlRow{
			{"At": noon, "Name": "wren", "N": int64(1), "J": `{"a":{"b":"x"},"n":7}`},
			{"At": noon.Add(time.Minute), "Name": "wren", "N": int64(3), "J": `[]`},
			{"At": noon.Add(2 * time.Minute), "Name": "", "N": nil, "J": `no JSON`},
		}},
		"Colours": {columns: []string{"Name", "N"}, rows: []kqlRow{{"Name": "wren", "N": int64(9)}}},
	}
}

func TestKQLOfTheQueriesIsComputedAsKustoDoes(t *testing.T) {
	now := time.Date(2000, 1, 1, 12, 3, 0, 0, time.UTC)
	tests := []struct {
		name, query string
		want        []kqlRow
	}{
		{"null is neither equal nor unequal", `Birds | where N != 1 | project N`, []kqlRow{{"N": int64(3)}}},
		{"null is found by isnull", `Birds | where isnull(N) | project Name`, []kqlRow{{"Name": ""}}},
		{"or goes on after null", `Birds | where N == 3 or isempty(Name) | project N`, []kqlRow{{"N": int64(3)}, {"N": nil}}},
		{"and is tighter than or", `Birds | where N == 1 or N == 3 and Name == 'x' | project N`, []kqlRow{{"N": int64(1)}}},
		{"ago and spans", `Birds | where At > ago(2m) | project N`, []kqlRow{{"N": nil}}},
		{"members of JSON", `Birds | extend j = parse_json(J) | where tostring(j.a.b) == 'x' | project n = tolong(j.n)`, []kqlRow{{"n": int64(7)}}},
		{"what is no JSON has no members", `Birds | where isempty(tostring(parse_json(J).a.b)) | project N`, []kqlRow{{"N": int64(3)}, {"N": nil}}},
		{"one of a list", `Birds | where Name in ('robin', '') | project Name`, []kqlRow{{"Name": ""}}},
		{"groups", `Birds | summarize C = count(), M = max(N), F = min(At) by Name | project Name, C, M`,
			[]kqlRow{{"Name": "wren", "C": int64(2), "M": int64(3)}, {"Name": "", "C": int64(1), "M": nil}}},
		{"the row of the greatest", `Birds | summarize arg_max(At, N) by Name | where Name == 'wren' | project N`, []kqlRow{{"N": int64(3)}}},
		{"time in bins", `Birds | summarize C = count() by At = bin(At, 2m) | project C`, []kqlRow{{"C": int64(2)}, {"C": int64(1)}}},
		{"a left row without a partner stays", `Birds | join kind=leftouter Colours on Name | project N, N1`,
			[]kqlRow{{"N": int64(1), "N1": int64(9)}, {"N": int64(3), "N1": int64(9)}, {"N": nil, "N1": nil}}},
		{"let, union and order", "let w = Birds | where Name == 'wren' | project N; // a remark\nunion w, (Colours | project N) | order by N",
			[]kqlRow{{"N": int64(9)}, {"N": int64(3)}, {"N": int64(1)}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := runKQL(tt.query, birds(), now)
			require.NoError(t, err)
			require.Equal(t, tt.want, got.rows)
		})
	}
}

func TestKQLThatIsNotKnownIsRefused(t *testing.T) {
	for name, query := range map[string]string{
		"operator":              `Birds | sample 1`,
		"function":              `Birds | where strlen(Name) == 1`,
		"number of arguments":   `Birds | where ago(1m, 2m) == At`,
		"aggregate":             `Birds | summarize S = stdev(N) by Name`,
		"kind of join":          `Birds | join kind=inner Colours on Name`,
		"comparison":            `Birds | where Name contains 'w'`,
		"regular expression":    `Birds | where Name =~ 'w'`,
		"arithmetic":            `Birds | where N + 1 == 2`,
		"escape in a text":      `Birds | where Name == 'a\'b'`,
		"table":                 `Fish`,
		"column without rows":   `Birds | where N == 100 | where Wing == 1`,
		"column of an extend":   `Birds | where N == 100 | extend x = Wing`,
		"dynamic, unconverted":  `Birds | where parse_json(J).n == 7`,
		"members of a text":     `Birds | where isempty(Name.a)`,
		"types that differ":     `Birds | where Name == 1`,
		"more after the end":    `Birds Birds`,
		"union of other tables": `union Birds, Colours`,
		"condition of no truth": `Birds | where N == 1 or Name`,
		"text without an end":   `Birds | where Name == 'w`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := runKQL(query, birds(), time.Time{})
			require.ErrorContains(t, err, "kql: ")
		})
	}
}
