package messagejson

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseDuration reads a duration as Go writes it ("90s", "1h30m") or as ISO 8601 does in days, hours, minutes and seconds
// ("PT1M30S", "P1D"). Months and years are refused: they have no fixed length.
func ParseDuration(text string) (time.Duration, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	rest, ok := strings.CutPrefix(text, "P")
	if !ok || rest == "" {
		return 0, fmt.Errorf("%q is not a duration such as 90s, PT1M30S or P1D", text)
	}
	days, clock, _ := strings.Cut(rest, "T")
	var total time.Duration
	for part, units := range map[string]map[byte]time.Duration{
		days:  {'D': 24 * time.Hour, 'W': 7 * 24 * time.Hour},
		clock: {'H': time.Hour, 'M': time.Minute, 'S': time.Second},
	} {
		d, err := sumUnits(part, units)
		if errors.Is(err, strconv.ErrRange) || total+d < 0 {
			return 0, fmt.Errorf("%q is longer than 292 years, which is the most that can be counted", text)
		}
		if err != nil {
			return 0, fmt.Errorf("%q is not a duration such as 90s, PT1M30S or P1D", text)
		}
		total += d
	}
	return total, nil
}

func sumUnits(part string, units map[byte]time.Duration) (time.Duration, error) {
	var total time.Duration
	for part != "" {
		end := strings.IndexFunc(part, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
		if end <= 0 || units[part[end]] == 0 {
			return 0, strconv.ErrSyntax
		}
		n, err := strconv.ParseFloat(part[:end], 64)
		if err != nil {
			return 0, err
		}
		span := n * float64(units[part[end]])
		if float64(total)+span >= math.MaxInt64 {
			return 0, strconv.ErrRange
		}
		total += time.Duration(span)
		part = part[end+1:]
	}
	return total, nil
}
