package page

import (
	"slices"
	"time"
)

// timelineBars is how many bars a timeline has at most.
const timelineBars = 24

// widths are the spans that people think in, in seconds: from a minute to a year.
var widths = [...]int64{60, 300, 900, 3600, 3 * 3600, 6 * 3600, 86400, 7 * 86400, 28 * 86400, 364 * 86400}

// A bar counts the arrivals of one span. Height goes from 0 to 10, and only a span without arrivals has 0.
type bar struct {
	From, To      time.Time
	Count, Height int
}

// timeline counts arrivals, in seconds since 1970, in equal spans: the narrowest that give few bars. Should the widest give
// more, the last bar has the rest.
func timeline(arrivals []int64) []bar {
	if len(arrivals) == 0 {
		return nil
	}
	first, last, width := slices.Min(arrivals), slices.Max(arrivals), int64(0)
	for _, width = range widths {
		if last/width-first/width < timelineBars {
			break
		}
	}
	out, most := make([]bar, min(last/width-first/width+1, timelineBars)), 0
	for _, at := range arrivals {
		b := &out[min(at/width-first/width, timelineBars-1)]
		b.Count++
		most = max(most, b.Count)
	}
	for i := range out {
		b := &out[i]
		from := (first/width + int64(i)) * width
		b.From, b.To = time.Unix(from, 0), time.Unix(from+width, 0)
		b.Height = max(b.Count*10/most, min(b.Count, 1))
	}
	return out
}
