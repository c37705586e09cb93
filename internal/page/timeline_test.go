package page

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestATimelineHasFewBarsWhateverItCounts(t *testing.T) {
	const noon = 1_767_268_800
	for name, tt := range map[string]struct {
		at     []int64
		width  int64
		counts []int
	}{
		"nothing":               {nil, 0, nil},
		"one":                   {[]int64{0}, 60, []int{1}},
		"a minute with a pause": {[]int64{0, 120, 125}, 60, []int{1, 0, 2}},
		"an hour":               {[]int64{0, 59 * 60}, 300, []int{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
		"backwards":             {[]int64{0, -3 * 3600}, 900, []int{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
	} {
		var arrivals []int64
		for _, at := range tt.at {
			arrivals = append(arrivals, noon+at)
		}
		var counts []int
		for _, b := range timeline(arrivals) {
			counts = append(counts, b.Count)
			require.Equal(t, b.Count > 0, b.Height > 0, name)
			require.Equal(t, tt.width, b.To.Unix()-b.From.Unix(), name)
		}
		require.Equal(t, tt.counts, counts, name)
	}
	ages := []int64{noon, noon - 3000*364*86400, noon}
	bars := timeline(ages)
	require.Len(t, bars, timelineBars, "more than the widest spans can hold")
	require.Equal(t, []int{1, 2}, []int{bars[0].Count, bars[23].Count})
}
