package servicebus

import (
	"time"
)

// A duplicates remembers message ids for a window of time.
type duplicates struct {
	window time.Duration
	seen   map[string]time.Time // by id: when it is forgotten
	order  []string             // by age
}

// repeated reports whether the id was seen within the window, and remembers it if not.
func (d *duplicates) repeated(id string, now time.Time) bool {
	for len(d.order) > 0 && !d.seen[d.order[0]].After(now) {
		delete(d.seen, d.order[0])
		d.order = d.order[1:]
	}
	if _, ok := d.seen[id]; ok {
		return true
	}
	d.seen[id] = now.Add(d.window)
	d.order = append(d.order, id)
	return false
}
