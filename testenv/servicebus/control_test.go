package servicebus_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	goamqp "github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/internal/amqp"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

func requireCondition(t *testing.T, want string, err error) {
	t.Helper()
	var e *goamqp.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, goamqp.ErrCond(want), e.Condition)
}

func TestDisabledQueueRefusesUntilItIsEnabledAgain(t *testing.T) {
	const disabled = "com.microsoft:entity-disabled"
	for name, tt := range map[string]struct {
		status          servicebus.Status
		sends, receives bool
	}{
		"disabled": {servicebus.Disabled, false, false}, "no sending": {servicebus.SendDisabled, false, true},
		"no receiving": {servicebus.ReceiveDisabled, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
				// One client each: the client library closes the whole connection on a fatal error of one receiver.
				s, err := w.dial().NewSender("orders", nil)
				require.NoError(t, err)
				r := w.receiver()
				ctx := within(t, time.Hour)
				require.NoError(t, s.SendMessage(ctx, message("m1", "{}"), nil))
				held := take(t, r, 1)[0]
				require.NoError(t, w.SetStatus("orders", tt.status))
				synctest.Wait()
				_, err = w.Send("orders", amqp.Message{})
				require.Equal(t, tt.sends, err == nil)
				err = s.SendMessage(ctx, message("m2", "{}"), nil)
				if tt.sends {
					require.NoError(t, err)
				} else {
					requireCondition(t, disabled, err)
				}
				if tt.receives {
					require.NoError(t, r.CompleteMessage(ctx, held, nil))
				} else {
					_, err = r.ReceiveMessages(ctx, 1, nil)
					requireCondition(t, disabled, err)
				}
				require.NoError(t, w.SetStatus("orders", servicebus.Active))
				w.send(message("m3", "{}")) // a new sender: the old one keeps its dead link
				require.NotEmpty(t, take(t, r, 1))
			})
		})
	}
}

func TestReceiverIsDetachedWithAnyCondition(t *testing.T) {
	for _, condition := range []string{"amqp:link:detach-forced", "amqp:link:transfer-limit-exceeded", "some:other"} {
		t.Run(condition, func(t *testing.T) {
			bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
				r := w.receiver()
				_, err := r.ReceiveMessages(within(t, time.Second), 1, nil)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				n, err := w.Detach("orders", servicebus.Receivers, condition)
				require.NoError(t, err)
				require.Equal(t, 1, n)
				ms, err := r.ReceiveMessages(within(t, time.Second), 1, nil)
				require.NoError(t, err)
				require.Empty(t, ms, "the client library reports nothing and attaches anew")
				w.send(message("m1", "{}"))
				require.Len(t, take(t, r, 1), 1)
			})
		})
	}
}

func TestDetachWithServerBusyWedgesTheClient(t *testing.T) {
	w := open(t, servicebus.Options{})
	w.client = w.dial()
	r := w.receiver()
	for n := 0; n == 0; { // until the link is attached
		_, err := r.ReceiveMessages(within(t, 50*time.Millisecond), 1, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		n, err = w.Detach("orders", servicebus.Receivers, "com.microsoft:server-busy")
		require.NoError(t, err)
	}
	w.send(message("m1", "{}"))
	for range 5 {
		ms, err := r.ReceiveMessages(within(t, time.Minute), 1, nil)
		require.NoError(t, err)
		require.Empty(t, ms)
	}
	_ = r.Close(within(t, time.Minute)) // reports the detachment
	require.Len(t, take(t, w.receiver(), 1), 1, "a new receiver helps")
}

func TestSendersAndManagementLinksAreDetached(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		s, err := w.client.NewSender("orders", nil)
		require.NoError(t, err)
		require.NoError(t, s.SendMessage(within(t, time.Minute), message("m1", "{}"), nil))
		r := w.receiver()
		m := take(t, r, 1)[0]
		for kind, want := range map[servicebus.LinkKind]int{servicebus.Senders: 1, servicebus.ManagementLinks: 4} {
			n, err := w.Links("orders", kind)
			require.NoError(t, err)
			require.Equal(t, want, n)
			n, err = w.Detach("orders", kind, "amqp:link:detach-forced")
			require.NoError(t, err)
			require.Equal(t, want, n)
		}
		synctest.Wait()
		require.NoError(t, s.SendMessage(within(t, time.Minute), message("m2", "{}"), nil))
		require.NoError(t, r.RenewMessageLock(within(t, time.Minute), m, nil))
	})
}

func TestConnectionsAreEndedInEveryWay(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *env){
		"closed":        func(_ *testing.T, w *env) { w.CloseConnections("amqp:connection:forced") },
		"cut":           func(_ *testing.T, w *env) { w.DropConnections() },
		"session ended": func(t *testing.T, w *env) { require.NoError(t, w.EndSessions("orders", "amqp:internal-error")) },
	} {
		for _, door := range []string{"in memory", "over a socket"} {
			t.Run(name+" "+door, func(t *testing.T) {
				w := open(t, servicebus.Options{})
				if door == "in memory" {
					w.client = w.dial()
				} else {
					w.client = w.dialSocket()
				}
				w.send(message("m1", "{}"))
				r := w.receiver()
				m := take(t, r, 1)[0]
				end(t, w)
				require.Equal(t, 1, w.counts().Locked, "the lock outlives the connection")
				w.send(message("m2", "{}"))
				ms := take(t, r, 1)
				require.Equal(t, "m2", ms[0].MessageID)
				require.NoError(t, r.CompleteMessage(within(t, time.Minute), &azservicebus.ReceivedMessage{LockToken: m.LockToken}, nil))
			})
		}
	}
}

func TestMuteBroker(t *testing.T) {
	t.Run("without frames", func(t *testing.T) {
		bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
			w.send(message("m1", "{}"))
			r := w.receiver()
			m := take(t, r, 1)[0]
			w.SetMute(amqp.MuteFrames)
			begin := time.Now()
			require.ErrorIs(t, r.CompleteMessage(within(t, 3*time.Second), m, nil), context.DeadlineExceeded)
			require.Equal(t, 3*time.Second, time.Since(begin))
			require.Zero(t, w.counts(), "it was completed, and the client does not know")
			// Shorter than the five minutes after which the client would wait for its token, holding a mutex.
			_, err := r.ReceiveMessages(within(t, 3*time.Minute), 1, nil)
			require.ErrorIs(t, err, context.DeadlineExceeded, "the connection is kept alive")
			w.SetMute(amqp.Speaking)
			w.send(message("m2", "{}"))
			require.Len(t, take(t, r, 1), 1)
		})
	})
	t.Run("without a byte", func(t *testing.T) {
		bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
			r := w.receiver()
			_, err := r.ReceiveMessages(within(t, time.Second), 1, nil)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			w.SetMute(amqp.MuteAll)
			begin := time.Now()
			ms, err := r.ReceiveMessages(within(t, 10*time.Minute), 1, nil)
			require.NoError(t, err)
			require.Empty(t, ms)
			require.LessOrEqual(t, time.Since(begin), 2*time.Minute, "the client gives up after 60 s of silence")
		})
	})
}

func TestIdleLinkIsDetached(t *testing.T) {
	bubble(t, servicebus.Options{IdleLinkTimeout: 10 * time.Minute}, func(t *testing.T, w *env) {
		w.send(message("m1", "{}"))
		r := w.receiver()
		held := take(t, r, 1)[0]
		links := func() int {
			n, err := w.Links("orders", servicebus.Receivers)
			require.NoError(t, err)
			return n
		}
		for range 20 { // renewing names the link, and so keeps it alive
			time.Sleep(50 * time.Second)
			require.NoError(t, r.RenewMessageLock(within(t, time.Minute), held, nil))
		}
		require.Equal(t, 1, links())
		require.NoError(t, r.CompleteMessage(within(t, time.Minute), held, nil))
		time.Sleep(9 * time.Minute)
		require.Equal(t, 1, links())
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Zero(t, links())
		w.send(message("m2", "{}"))
		require.Len(t, take(t, r, 1), 1)
	})
}

func TestSlowBrokerWithholdsCredit(t *testing.T) {
	bubble(t, servicebus.Options{WithholdCredit: true}, func(t *testing.T, w *env) {
		s, err := w.client.NewSender("orders", nil)
		require.NoError(t, err)
		require.Error(t, s.SendMessage(within(t, time.Second), message("m1", "{}"), nil))
		require.NoError(t, w.GrantCredit("orders", 1))
		require.NoError(t, s.SendMessage(within(t, time.Minute), message("m2", "{}"), nil))
		require.NoError(t, s.SendMessage(within(t, time.Minute), message("m3", "{}"), nil))
	})
}

func TestRepeatedAnswersDoNotDisturbTheClient(t *testing.T) {
	bubble(t, servicebus.Options{RepeatAnswers: true}, func(t *testing.T, w *env) {
		w.send(message("m1", "{}"), message("m2", "{}"))
		r := w.receiver()
		for _, m := range take(t, r, 2) {
			require.NoError(t, r.CompleteMessage(within(t, time.Minute), m, nil))
		}
		require.Zero(t, w.counts())
	})
}

func TestUnknownPathsAreErrors(t *testing.T) {
	w := open(t, servicebus.Options{})
	_, err := w.Counts("nowhere")
	require.ErrorContains(t, err, "nowhere")
	_, err = w.Messages("nowhere")
	require.Error(t, err)
	_, err = w.Detach("$cbs", servicebus.Receivers, "x")
	require.Error(t, err)
	_, err = w.Links("orders/$management", servicebus.Receivers)
	require.Error(t, err)
	require.Error(t, w.SetStatus("nowhere", servicebus.Active))
	require.Error(t, w.SetRights("nowhere", servicebus.Manage))
	require.Error(t, w.EndSessions("nowhere", "x"))
	require.Error(t, w.GrantCredit("nowhere", 1))
}

func TestSnapshotShowsEverythingOfAMessage(t *testing.T) {
	bubble(t, servicebus.Options{}, func(t *testing.T, w *env) {
		w.send(message("m1", "one"), message("m2", "two"))
		r := w.receiver()
		m := take(t, r, 1)[0]
		require.NoError(t, r.AbandonMessage(within(t, time.Minute), m, nil))
		m = take(t, r, 1)[0]
		all, err := w.Messages("ORDERS")
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Equal(t, "m1", all[0].Key)
		require.Equal(t, int64(1), all[0].Sequence)
		require.True(t, all[0].Locked)
		require.Equal(t, amqp.UUID(m.LockToken), all[0].LockToken)
		require.Equal(t, 1, all[0].DeliveryCount)
		require.Equal(t, all[0].Enqueued.Add(time.Hour), all[0].Expires)
		require.Equal(t, [][]byte{[]byte("two")}, all[1].Message.Data)
		require.Equal(t, "active", all[1].State)
		require.False(t, all[1].Locked)
	})
}

func TestHTTPHandler(t *testing.T) {
	w := open(t, servicebus.Options{})
	_, err := w.Send("orders", amqp.Message{})
	require.NoError(t, err)
	get := func(path string) *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		w.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return rec
	}
	require.JSONEq(t, `{"status":"healthy"}`, get("/health").Body.String())
	var counts map[string]servicebus.Counts
	require.NoError(t, json.Unmarshal(get("/queues").Body.Bytes(), &counts))
	require.Equal(t, 1, counts["orders"].Active)
	require.Equal(t, http.StatusNotFound, get("/other").Code)
	w.Close()
	require.Equal(t, http.StatusServiceUnavailable, get("/health").Code)
}

func TestClosedBrokerTakesNobodyIn(t *testing.T) {
	w := start(t, servicebus.Options{})
	addr := w.listen()
	require.NotEmpty(t, addr)
	w.send(message("m1", "{}"))
	w.Close()
	w.Close()
	_, err := w.Dial(context.Background())
	require.ErrorIs(t, err, servicebus.ErrClosed)
	require.ErrorIs(t, w.Serve(context.Background(), nil), servicebus.ErrClosed)
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = w.Dial(cancelled)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, w.Connections())
}
