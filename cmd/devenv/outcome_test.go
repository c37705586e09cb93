package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/history"
)

func TestDeliveriesAreCountedAsTheBrokerCountsThem(t *testing.T) {
	event := func(op string, delivery int) history.Event {
		return history.Event{Op: op, Entity: "orders", Key: "1", Sequence: 7, Delivery: delivery, Effect: true}
	}
	for _, tt := range []struct {
		name   string
		events []history.Event
		want   int
	}{
		{"one delivery", []history.Event{event(history.Lock, 1), event(history.Complete, 1)}, 1},
		{"released by a receiver that had turned away", []history.Event{
			event(history.Lock, 1), event(history.Release, 1), event(history.Lock, 1), event(history.Complete, 1),
		}, 1},
		{"its worker died", []history.Event{
			event(history.Lock, 1), event(history.LockExpired, 1), event(history.Lock, 2), event(history.Complete, 2),
		}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := outcomeOf(tt.events, 7, "1")
			require.NotNil(t, f)
			require.Equal(t, tt.want, f.deliveries)
		})
	}
}
