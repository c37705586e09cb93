package fingerprint_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker/fingerprint"
)

// naive lists the differences of two decoded values, by recursion.
func naive(path string, a, b any, ignore []string) []fingerprint.Difference {
	var found []fingerprint.Difference
	below := func(token string, x any, inX bool, y any, inY bool) {
		p := path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(token)
		switch {
		case slices.Contains(ignore, p):
		case !inX:
			found = append(found, fingerprint.Difference{Path: p, Kind: fingerprint.Added})
		case !inY:
			found = append(found, fingerprint.Difference{Path: p, Kind: fingerprint.Removed})
		default:
			found = append(found, naive(p, x, y, ignore)...)
		}
	}
	x, objectX := a.(map[string]any)
	y, objectY := b.(map[string]any)
	listX, isListX := a.([]any)
	listY, isListY := b.([]any)
	switch {
	case objectX && objectY:
		var names []string
		for name := range x {
			names = append(names, name)
		}
		for name := range y {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			v, inX := x[name]
			w, inY := y[name]
			below(name, v, inX, w, inY)
		}
	case isListX && isListY:
		for i := range max(len(listX), len(listY)) {
			var v, w any
			if i < len(listX) {
				v = listX[i]
			}
			if i < len(listY) {
				w = listY[i]
			}
			below(strconv.Itoa(i), v, i < len(listX), w, i < len(listY))
		}
	case !reflect.DeepEqual(a, b):
		return []fingerprint.Difference{{Path: path, Kind: fingerprint.Changed}}
	}
	return found
}

func TestCompareAgreesWithAWalkThroughDecodedValues(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	differing, ignoring := 0, 0
	for range 5_000 {
		v := randomValue(random, 5)
		a, b := spell(random, v), spell(random, change(random, change(random, v)))
		x, y := exactValue(t, a), exactValue(t, b)
		all := naive("", x, y, nil)
		r := plain
		for _, d := range all {
			if d.Path != "" && random.IntN(4) == 0 {
				r.Ignore = append(r.Ignore, d.Path)
				ignoring++
			}
		}
		want := naive("", x, y, r.Ignore)
		if slices.ContainsFunc(want, func(d fingerprint.Difference) bool { return len(d.Path) > fingerprint.MaxPath }) {
			continue
		}
		got := fingerprint.Compare(a, b, r, 1000)
		require.Equal(t, want, got, "%s\n%s\n%v", a, b, r.Ignore)
		differing += len(want)
		if len(want) > 1 {
			require.Equal(t, want[:1], fingerprint.Compare(a, b, r, 1))
		}
	}
	require.Greater(t, differing, 1000)
	require.Greater(t, ignoring, 1000)
}

// TestCompareCostsNoMoreForLongPaths compares bodies of the largest size that differ in their last value, or everywhere.
func TestCompareCostsNoMoreForLongPaths(t *testing.T) {
	names := func(prefix string, size int) string {
		var b strings.Builder
		for i := range size / (len(prefix) + 9) {
			fmt.Fprintf(&b, `,"%s%06d":1`, prefix, i)
		}
		return b.String()[1:]
	}
	half := strings.Repeat("n", hostileSize/2)
	for name, pair := range map[string][2]string{
		"one long name":            {nest(1, hostileSize/2, list("1", hostileSize/2)), nest(1, hostileSize/2, list("1", hostileSize/2-2)+" ")},
		"many long names":          {nest(120, hostileSize/240, list("1", hostileSize/2)), nest(120, hostileSize/240, list("2", hostileSize/2))},
		"deep":                     {nest(127, 7_000, list("1", hostileSize/2)), nest(127, 7_000, list("2", hostileSize/2))},
		"equal":                    {nest(1, hostileSize/2, list("1", hostileSize/2)), nest(1, hostileSize/2, list("1.0", hostileSize))},
		"small values":             {list("[]", hostileSize), list("{}", hostileSize)},
		"a long name against many": {`{"` + half + `":1}`, "{" + names("n", hostileSize) + "}"},
		"a long escaped name":      {`{"` + strings.Repeat(`\n`, hostileSize/2) + `":1}`, "{" + names(`\n`, hostileSize) + "}"},
		"many alike names":         {"{" + names(half[:200], hostileSize) + "}", "{" + names(half[:200]+"x", hostileSize) + "}"},
	} {
		t.Run(name, func(t *testing.T) {
			var found []fingerprint.Difference
			cost := allocated(func() { found = fingerprint.Compare([]byte(pair[0]), []byte(pair[1]), plain, 200) })
			require.Equal(t, name != "equal", len(found) > 0)
			for _, d := range found {
				require.LessOrEqual(t, len(d.Path), fingerprint.MaxPath+len("…"))
			}
			t.Logf("%.1f bytes for each byte of the bodies", float64(cost)/float64(len(pair[0])+len(pair[1])))
			require.Less(t, cost, uint64(16*(len(pair[0])+len(pair[1]))))
		})
	}
}
