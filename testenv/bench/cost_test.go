package bench_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/history"
)

// costs says what a message of each outcome costs: requests by their operation, in order, and request units.
var costs = []struct {
	outcome string
	// before are bodies that were committed under the id before; the last one is measured.
	before []string
	body   string
	ops    []string
	// charge bounds the request units from above, for a document of half a kilobyte in a container without indexes.
	charge float64
}{
	{outcome: "new", body: `{"amount":40}`, ops: []string{history.Lock, history.CreateDocument, history.Complete}, charge: 6},
	{outcome: "new with 3 lines", body: `{"lines":[{"n":1},{"n":2},{"n":3}]}`, ops: []string{history.Lock, history.ExecuteBatch, history.Complete}, charge: 24},
	{outcome: "duplicate", before: []string{`{"amount":40}`}, body: `{ "amount": 40.0 }`, ops: []string{history.Lock, history.CreateDocument, history.ReadDocument, history.Complete}, charge: 3},
	{outcome: "duplicate with 3 lines", before: []string{`{"lines":[{"n":1},{"n":2},{"n":3}]}`}, body: `{"lines":[{"n":1},{"n":2},{"n":3}]}`, ops: []string{history.Lock, history.ExecuteBatch, history.ReadDocument, history.ExecuteBatch, history.Complete}, charge: 6},
	{outcome: "conflict", before: []string{`{"amount":40}`}, body: `{"amount":41}`, ops: []string{history.Lock, history.CreateDocument, history.ReadDocument, history.DeadLetter}, charge: 3},
	{outcome: "unreadable", body: `{`, ops: []string{history.Lock, history.DeadLetter}, charge: 0},
}

func TestEachOutcomeCostsWhatItMustAndNoMore(t *testing.T) {
	for _, c := range costs {
		t.Run(c.outcome, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := history.New()
				s := newEnv(t, false, log)
				stop := s.workerOf(16, orders)
				for _, body := range append(c.before, c.body) {
					s.send("1", body)
					for end := time.Now().Add(time.Minute); s.left() > 0; time.Sleep(time.Millisecond) {
						require.True(t, time.Now().Before(end))
					}
				}
				stop()
				ops, charge := costOfLast(log)
				require.Equal(t, c.ops, ops)
				require.LessOrEqual(t, charge, c.charge, "request units")
				require.Equal(t, c.charge > 0, charge > 0)
				require.NoError(t, s.Close())
				time.Sleep(10 * time.Minute) // what the SDK leaves behind ends by itself
			})
		})
	}
}

// costOfLast returns the operations and the request units since the last delivery.
func costOfLast(log *history.Log) (ops []string, charge float64) {
	for _, e := range log.Events() {
		switch e.Op {
		case history.Lock:
			ops, charge = nil, 0
		case history.CreateDocument, history.ExecuteBatch, history.ReadDocument, history.UpsertDocument, history.Complete, history.DeadLetter, history.Renew, history.Abandon:
		default:
			continue
		}
		if len(ops) == 0 || ops[len(ops)-1] != history.Complete && ops[len(ops)-1] != history.DeadLetter {
			ops, charge = append(ops, e.Op), charge+e.Charge
		}
	}
	return ops, charge
}

// TestTheWorkerComesCloseToTheIdealOfItsSlots holds in fake time, in which computing costs nothing: what is missing is time
// in which a slot waited for something other than its own message.
func TestTheWorkerComesCloseToTheIdealOfItsSlots(t *testing.T) {
	const messages = 1280
	rates := map[string]float64{}
	for name, start := range map[string]func(*env, int) func(){"worker": (*env).worker, "bare loop": (*env).loop} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newEnv(t, true, history.NewBounded(100))
				s.fill(messages)
				began := time.Now()
				stop := start(s, slots)
				for s.left() > 0 {
					time.Sleep(time.Millisecond)
				}
				rates[name] = messages / time.Since(began).Seconds()
				t.Logf("%.0f messages per second of fake time, %.2f of the ideal %.0f", rates[name], rates[name]/ideal(), ideal())
				stop()
				require.Len(t, s.Stored(), messages)
				require.NoError(t, s.Close())
				time.Sleep(10 * time.Minute) // what the SDK leaves behind ends by itself
			})
		})
	}
	require.GreaterOrEqual(t, rates["worker"], 0.9*ideal())
	require.GreaterOrEqual(t, rates["worker"], rates["bare loop"])
}

// BenchmarkCost prints what TestEachOutcomeCostsWhatItMustAndNoMore asserts.
func BenchmarkCost(b *testing.B) {
	for _, c := range costs {
		b.Run(c.outcome, func(b *testing.B) {
			log := history.New()
			s := newEnv(b, false, log)
			stop := s.workerOf(16, orders)
			for _, body := range append(c.before, c.body) {
				s.send("1", body)
				s.waitEmpty()
			}
			stop()
			ops, charge := costOfLast(log)
			require.Equal(b, c.ops, ops)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(len(ops)-1), "roundtrips/message")
			b.ReportMetric(charge, "RU/message")
			require.NoError(b, s.Close())
		})
	}
}
