package servicebus_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/servicebus"
)

func TestSlice(t *testing.T) {
	for _, door := range []string{"in memory", "over a socket", "in a bubble"} {
		t.Run(door, func(t *testing.T) {
			if door == "in a bubble" {
				synctest.Test(t, func(t *testing.T) { slice(t, start(t, servicebus.Options{})) })
				return
			}
			w := open(t, servicebus.Options{})
			if door == "in memory" {
				w.client = w.dial()
			} else {
				w.client = w.dialSocket()
			}
			slice(t, w)
		})
	}
}

func slice(t *testing.T, w *env) {
	w.send(message("a", "1"), message("b", "2"), message("c", "3"), message("d", "4"))
	r := w.receiver()
	ms := take(t, r, 4)
	require.Equal(t, []string{"a", "b", "c", "d"}, []string{ms[0].MessageID, ms[1].MessageID, ms[2].MessageID, ms[3].MessageID})
	require.Equal(t, uint32(1), ms[0].DeliveryCount)
	ctx := within(t, time.Minute)
	before := *ms[0].LockedUntil
	require.NoError(t, r.RenewMessageLock(ctx, ms[0], nil))
	require.False(t, ms[0].LockedUntil.Before(before))
	require.NoError(t, r.CompleteMessage(ctx, ms[0], nil))
	require.NoError(t, r.DeadLetterMessage(ctx, ms[1], &azservicebus.DeadLetterOptions{Reason: text("bad"), ErrorDescription: text("because")}))
	other := receiverOf(t, w.dial(), nil)
	require.NoError(t, other.CompleteMessage(ctx, &azservicebus.ReceivedMessage{LockToken: ms[2].LockToken}, nil))
	require.NoError(t, r.AbandonMessage(ctx, ms[3], &azservicebus.AbandonMessageOptions{PropertiesToModify: map[string]any{"try": int32(1)}}))
	ms = take(t, r, 1)
	require.Equal(t, uint32(2), ms[0].DeliveryCount)
	require.Equal(t, map[string]any{"try": int32(1)}, ms[0].ApplicationProperties)
	require.NoError(t, r.CompleteMessage(ctx, ms[0], nil))
	d := w.deadLetterReceiver()
	ms = take(t, d, 1)
	require.Equal(t, "bad", *ms[0].DeadLetterReason)
	require.Equal(t, "because", *ms[0].DeadLetterErrorDescription)
	require.Equal(t, "orders", *ms[0].DeadLetterSource)
	require.NoError(t, d.CompleteMessage(ctx, ms[0], nil))
	require.Zero(t, w.counts())
	require.NoError(t, r.Close(ctx))
	require.NoError(t, d.Close(ctx))
	require.NoError(t, other.Close(ctx))
}
