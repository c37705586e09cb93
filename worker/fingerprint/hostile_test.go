package fingerprint_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker/fingerprint"
)

// hostileSize is the largest body that admission takes unless it is told otherwise.
const hostileSize = 1_900_000

// allocated returns the bytes that f allocates in all, kept or not.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func list(element string, size int) string {
	return "[" + strings.Repeat(element+",", max(0, size/(len(element)+1)-1)) + element + "]"
}

// nest puts a value below depth objects, each with one name of this length.
func nest(depth, name int, inner string) string {
	return strings.Repeat(`{"`+strings.Repeat("n", name)+`":`, depth) + inner + strings.Repeat("}", depth)
}

func TestExactNumbersBelowALongNameAreTooLarge(t *testing.T) {
	const number = "12345678901234567"
	for _, size := range []int{300_000, hostileSize} {
		for name, body := range map[string]string{
			"one long name":    nest(1, size/2, list(number, size/2)),
			"many long names":  nest(120, size/240, list(number, size/2)),
			"escapes in names": `{"` + strings.Repeat(`~`, size/2) + `":` + list(number, size/2) + "}",
		} {
			t.Run(fmt.Sprint(name, " ", size), func(t *testing.T) {
				var found []fingerprint.Exact
				var err error
				cost := allocated(func() { found, err = fingerprint.Inexact([]byte(body), fingerprint.Limits{}) })
				p := problemOf(t, err)
				require.Empty(t, found)
				require.Equal(t, fingerprint.TooLarge, p.Kind)
				require.Equal(t, fingerprint.MaxExactBytes, p.Limit)
				require.Contains(t, p.Cause, "beside the document")
				t.Logf("%d bytes allocated: %v", cost, p)
				require.Less(t, cost, uint64(16*len(body)+4*fingerprint.MaxExactBytes))
			})
		}
	}
}

func TestExactNumbersSayHowManyBytesTheyTake(t *testing.T) {
	const number = "12345678901234567"
	body := nest(1, 1000, list(number, 18*5000))
	_, err := fingerprint.Inexact([]byte(body), fingerprint.Limits{})
	want := 0
	for i := range 5000 {
		want += len(fmt.Sprintf("/%s/%d", strings.Repeat("n", 1000), i)) + len(number)
	}
	require.ErrorContains(t, err, fmt.Sprintf("takes %d bytes", want))
	found, err := fingerprint.Inexact([]byte(nest(1, 1000, list(number, 18*1900))), fingerprint.Limits{})
	require.NoError(t, err, "below the bound all are kept")
	require.Len(t, found, 1900)
}

func TestRestoreCostsNoMoreForLongPaths(t *testing.T) {
	const original = "12345678901234567001"
	half := strings.Repeat("n", hostileSize/2)
	for name, body := range map[string]string{
		"one long name":        nest(1, hostileSize/2, list("1", hostileSize/2)),
		"many long names":      nest(120, hostileSize/240, list("1", hostileSize/2)),
		"a long name again":    `{"x":` + list(`{"`+strings.Repeat("n", 2_000)+`":1}`, hostileSize) + "}",
		"alike numbers":        nest(1, hostileSize/2, list("12345678901234567000", hostileSize/2)),
		"one name, many times": `{"` + half + `":{"x":1` + strings.Repeat(`,"x":12345678901234567000`, hostileSize/50) + `}}`,
		"deep":                 nest(127, 6_000, list("1", hostileSize/2)),
	} {
		t.Run(name, func(t *testing.T) {
			for _, exact := range [][]fingerprint.Exact{
				{{Path: "/x", Text: original}},
				{{Path: "/" + half + "/0", Text: original}, {Path: "/" + half + "/x", Text: original}, {Path: "/" + half + "/47000", Text: original}},
			} {
				cost := allocated(func() {
					_, err := fingerprint.Restore([]byte(body), exact)
					require.NoError(t, err)
				})
				t.Logf("%.1f bytes for each byte of the body", float64(cost)/float64(len(body)))
				require.Less(t, cost, uint64(16*len(body)))
			}
		})
	}
}

// TestObjectsOutOfOrderAtEveryLevelAreSorted needs no memory for a level, although its text is moved at each.
func TestObjectsOutOfOrderAtEveryLevelAreSorted(t *testing.T) {
	const depth = fingerprint.MaxDepth - 6
	for name, inner := range map[string]string{
		"a long text":  `"` + strings.Repeat("x", hostileSize) + `"`,
		"many members": `{"z":0,"a":` + list(`{"z":0,"b":[{"q":1,"p":2}],"a":{}}`, hostileSize) + `}`,
		"little":       "1",
		"nothing":      "{}",
	} {
		t.Run(name, func(t *testing.T) {
			body := strings.Repeat(`{"n":0,"m":`, depth) + inner + strings.Repeat(`,"a":[0]}`, depth)
			sorted, err := fingerprint.Canonical([]byte(inner), plain)
			require.NoError(t, err)
			want := strings.Repeat(`{"a":[0],"m":`, depth) + string(sorted) + strings.Repeat(`,"n":0}`, depth)
			cost := allocated(func() {
				got, err := fingerprint.Canonical([]byte(body), plain)
				require.NoError(t, err)
				require.True(t, want == string(got))
			})
			t.Logf("%.1f bytes for each byte of the body", float64(cost)/float64(len(body)))
			require.Less(t, cost, uint64(16*max(len(body), hostileSize)))
		})
	}
}

func TestNoNestingGoesBeyondWhatTheStoreKeeps(t *testing.T) {
	for _, depth := range []int{fingerprint.MaxDepth + 1, 9_000, 300_000} {
		for _, open := range []string{"[", `{"a":`} {
			body := []byte(strings.Repeat(open, depth))
			for name, err := range map[string]error{
				"by default":       fingerprint.Check(body, fingerprint.Limits{}),
				"by a large limit": fingerprint.Check(body, fingerprint.Limits{MaxDepth: 1 << 20}),
			} {
				p := problemOf(t, err)
				require.Equal(t, fingerprint.TooDeep, p.Kind, name)
				require.Equal(t, fingerprint.MaxDepth, p.Limit, name)
			}
			_, err := fingerprint.Restore(body, []fingerprint.Exact{{Path: "/a", Text: "1"}})
			require.Equal(t, fingerprint.TooDeep, problemOf(t, err).Kind)
			require.NotEmpty(t, fingerprint.Compare(body, body, plain, 1), "they have no common form")
		}
	}
	require.NoError(t, fingerprint.Check([]byte(nest(fingerprint.MaxDepth, 1, "1")), fingerprint.Limits{}))
}
