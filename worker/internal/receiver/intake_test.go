package receiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAnIntakeAsksForWhatArrivesInTime(t *testing.T) {
	const kb, mb = 1000, 1_000_000
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	// came is one message of a size after some time, with some of its lock left, and out more on the way.
	came := func(size int, after, left time.Duration, out int) batch {
		return batch{arrival: arrival{at: begin.Add(after), count: 1, size: size}, left: left, asked: begin, out: out}
	}
	tests := []struct {
		name     string
		lock     time.Duration
		slots    int
		batches  []batch
		room     int // of slots, with nothing in process
		withdraw bool
		news     bool // at the last batch
	}{
		{name: "locks arrive fresh", lock: 30 * time.Second, slots: 16, batches: []batch{came(mb, 100*time.Millisecond, 29*time.Second, 15)}, room: 16},
		{name: "the locks that are still to come would be dead", lock: 5 * time.Second, slots: 16, batches: []batch{came(mb, 2500*time.Millisecond, 2500*time.Millisecond, 15)},
			room: 1, withdraw: true, news: true},
		{name: "the last of them would be dead", lock: 30 * time.Second, slots: 10, batches: []batch{came(400*kb, 4*time.Second, 26*time.Second, 9)}, room: 1, withdraw: true, news: true},
		{name: "all of them would live", lock: 60 * time.Second, slots: 8, batches: []batch{came(500*kb, 5*time.Second, 55*time.Second, 7)}, room: 1, news: true},
		{name: "many small ones fit", lock: 60 * time.Second, slots: 1000, batches: []batch{{
			arrival: arrival{at: begin.Add(5 * time.Second), count: 100, size: mb}, left: 55 * time.Second, asked: begin, out: 900}}, room: 20, withdraw: true, news: true},
		{name: "nothing is on its way that could be withdrawn", lock: 5 * time.Second, slots: 1, batches: []batch{came(mb, 2500*time.Millisecond, 2500*time.Millisecond, 0)},
			room: 1, news: true},
		{name: "a second old lock is no news", lock: 5 * time.Second, slots: 16, batches: []batch{
			came(mb, 2500*time.Millisecond, 2500*time.Millisecond, 15), came(mb, 5*time.Second, 0, 15)}, room: 1, withdraw: true},
		{name: "a clock that is ahead is no thin line, when the wait was short", lock: 60 * time.Second, slots: 16, batches: []batch{came(mb, time.Second/10, 10*time.Second, 15)}, room: 16},
		{name: "a clock that is ahead is no thin line, when little came", lock: 60 * time.Second, slots: 16, batches: []batch{came(kb, time.Hour, 10*time.Second, 15)}, room: 16},
		{name: "a queue with a shorter lock than configured is learned", lock: 60 * time.Second, slots: 16, batches: []batch{
			came(kb, time.Second/10, 5*time.Second, 0), came(mb, 3*time.Second, 2*time.Second, 15)}, room: 1, withdraw: true, news: true},
		{name: "one that arrives fresh doubles what is asked for", lock: 5 * time.Second, slots: 16, batches: []batch{
			came(mb, 2500*time.Millisecond, 2500*time.Millisecond, 15), came(mb, 3*time.Second, 4900*time.Millisecond, 0)}, room: 2},
		{name: "but not for the first of several", lock: 5 * time.Second, slots: 16, batches: []batch{
			came(mb, 2500*time.Millisecond, 2500*time.Millisecond, 15), came(mb, 3*time.Second, 4900*time.Millisecond, 0), came(mb, 4*time.Second, 4900*time.Millisecond, 0)}, room: 2},
		{name: "until nothing is limited", lock: 5 * time.Second, slots: 4, batches: []batch{
			came(mb, 2500*time.Millisecond, 2500*time.Millisecond, 3), came(mb, 3*time.Second, 4900*time.Millisecond, 0), came(mb, 4*time.Second, 4900*time.Millisecond, 0),
			came(mb, 4*time.Second, 4900*time.Millisecond, 0), came(mb, 4*time.Second, 4900*time.Millisecond, 0)}, room: 4},
		{name: "and the next incident is news", lock: 5 * time.Second, slots: 2, batches: []batch{
			came(mb, 2500*time.Millisecond, 2500*time.Millisecond, 0), came(mb, 3*time.Second, 4900*time.Millisecond, 0), came(2*mb, 9*time.Second, time.Second, 0)}, room: 1, news: true},
		{name: "a small one that arrives fresh says nothing of large ones", lock: 5 * time.Second, slots: 16, batches: []batch{
			came(mb, 2500*time.Millisecond, 2500*time.Millisecond, 15), came(kb, 3*time.Second, 4900*time.Millisecond, 0)}, room: 1},
		{name: "unless none was slow for a minute", lock: 5 * time.Second, slots: 16, batches: []batch{
			came(mb, 2500*time.Millisecond, 2500*time.Millisecond, 15), came(kb, 2*time.Minute, 4900*time.Millisecond, 0)}, room: 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			i := newIntake(tt.lock, tt.slots)
			var last thinness
			for _, b := range tt.batches {
				last = i.arrived(b)
			}
			room, _ := i.room(tt.slots, 0, begin.Add(time.Hour))
			require.Equal(t, tt.room, room)
			require.Equal(t, tt.withdraw, last.withdraw)
			require.Equal(t, tt.news, last.news)
			require.Equal(t, tt.room < tt.slots || tt.news, i.thin())
		})
	}
}

func TestALineThatOneMessageFillsCarriesOneAfterTheOther(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	i := newIntake(8*time.Second, 4)
	at := begin.Add(3 * time.Second)
	old := batch{arrival: arrival{at: at, count: 1, size: 1_000_000}, left: 5 * time.Second, asked: begin}
	i.arrived(old)
	room, wait := i.room(4, 1, at.Add(time.Second))
	require.Zero(t, room, "renewals would wait behind the next")
	require.Equal(t, 3*time.Second, wait)
	room, wait = i.room(4, 1, at.Add(4*time.Second))
	require.Equal(t, 1, room, "a message that is held does not hold up others for good")
	require.Zero(t, wait)
	room, _ = i.room(4, 0, at)
	require.Equal(t, 1, room)
	old.out = 2
	i.arrived(old)
	room, _ = i.room(4, 1, at.Add(time.Second))
	require.Equal(t, 1, room, "only what one message by itself takes")
}

func TestALockThatWasLostBeforeItsTimeHalvesWhatIsAskedForOnce(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	i := newIntake(5*time.Second, 16)
	for range 3 {
		i.lost(begin, begin.Add(time.Second))
	}
	room, _ := i.room(16, 0, begin)
	require.Equal(t, 8, room)
	for range 10 {
		begin = begin.Add(2 * time.Second)
		i.lost(begin, begin.Add(time.Second))
	}
	room, _ = i.room(16, 0, begin)
	require.Equal(t, 1, room)
}
