package servicebus

import "sort"

// An index holds messages in the order of their sequence numbers. Adding at the end and removing anywhere are cheap.
type index struct {
	slots []slot
	live  int
}

type slot struct {
	seq int64
	m   *message // nil once removed
}

func (x *index) from(seq int64) int {
	return sort.Search(len(x.slots), func(i int) bool { return x.slots[i].seq >= seq })
}

func (x *index) add(m *message) {
	x.live++
	s := slot{seq: m.seq, m: m}
	if n := len(x.slots); n == 0 || x.slots[n-1].seq < m.seq {
		x.slots = append(x.slots, s)
		return
	}
	i := x.from(m.seq)
	if x.slots[i].seq == m.seq { // the place that the message left before
		x.slots[i].m = m
		return
	}
	x.slots = append(x.slots, slot{})
	copy(x.slots[i+1:], x.slots[i:])
	x.slots[i] = s
}

func (x *index) get(seq int64) *message {
	if i := x.from(seq); i < len(x.slots) && x.slots[i].seq == seq {
		return x.slots[i].m
	}
	return nil
}

func (x *index) remove(m *message) {
	i := x.from(m.seq)
	if i >= len(x.slots) || x.slots[i].m != m {
		return
	}
	x.slots[i].m = nil
	x.live--
	if dead := len(x.slots) - x.live; dead > x.live+64 {
		x.compact()
	}
}

func (x *index) compact() {
	kept := make([]slot, 0, x.live+x.live/2)
	for _, s := range x.slots {
		if s.m != nil {
			kept = append(kept, s)
		}
	}
	x.slots = kept
}

// each calls f for every message from a sequence number on, until it returns false.
func (x *index) each(from int64, f func(*message) bool) {
	for _, s := range x.slots[x.from(from):] {
		if s.m != nil && !f(s.m) {
			return
		}
	}
}
