package servicebus

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// parseDuration reads a duration of ISO 8601 as far as it has a fixed length: PnDTnHnMnS, with a fraction only of seconds.
// Weeks may stand alone: PnW. Years and months are refused, because their length is not fixed.
func parseDuration(s string) (time.Duration, error) {
	rest, ok := strings.CutPrefix(s, "P")
	if !ok || rest == "" || strings.HasSuffix(rest, "T") {
		return 0, fmt.Errorf("%q is not an ISO 8601 duration such as PT1M", s)
	}
	date, clock, _ := strings.Cut(rest, "T")
	var total time.Duration
	for _, part := range []struct{ text, units string }{{date, "WD"}, {clock, "HMS"}} {
		d, err := parseUnits(part.text, part.units)
		if err != nil {
			return 0, fmt.Errorf("%q is not an ISO 8601 duration such as PT1M: %w", s, err)
		}
		if total += d; total < 0 {
			return 0, fmt.Errorf("%q is too long", s)
		}
	}
	return total, nil
}

// parseUnits reads numbers that are followed by units, which must come in the order given.
func parseUnits(s, units string) (time.Duration, error) {
	length := map[byte]time.Duration{'W': 7 * 24 * time.Hour, 'D': 24 * time.Hour, 'H': time.Hour, 'M': time.Minute, 'S': time.Second}
	var total time.Duration
	for s != "" {
		i := strings.IndexAny(s, units)
		if i < 1 {
			return 0, fmt.Errorf("%q is not a number and one of the units %s in order", s, units)
		}
		n, err := strconv.ParseFloat(s[:i], 64)
		if err != nil || n < 0 || strings.ContainsAny(s[:i], "eExXpP+-_nN") || s[i] != 'S' && strings.Contains(s[:i], ".") {
			return 0, fmt.Errorf("%q is not a number", s[:i])
		}
		d := n * float64(length[s[i]])
		if d > float64(Forever)/2 {
			return 0, fmt.Errorf("%s%c is too long", s[:i], s[i])
		}
		total += time.Duration(d)
		units = units[strings.IndexByte(units, s[i])+1:]
		s = s[i+1:]
		if total < 0 {
			return 0, fmt.Errorf("the duration is too long")
		}
		if units == "" && s != "" {
			return 0, fmt.Errorf("%q follows the last unit", s)
		}
	}
	return total, nil
}
