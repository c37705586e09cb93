package e2e_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/traffic"
	"github.com/orderworker/orderworker/worker"
)

func TestManyCopiesAtOnceMakeOneOrder(t *testing.T) {
	for _, copies := range []int{2, 50} {
		for name, body := range map[string]string{"one document": `{"amount":40}`, "with lines": `{"amount":40,"lines":[{"sku":"a"},{"sku":"b"}]}`} {
			t.Run(fmt.Sprintf("%d copies, %s", copies, name), func(t *testing.T) {
				inBubble(t, testenv.Options{}, func(w *env) {
					// Every create waits until all copies are at the store, so that they really meet.
					for _, op := range []string{history.CreateDocument, history.ExecuteBatch} {
						w.Faults.Add(fault.On(op).Always().Before(fault.Wait(time.Second)))
					}
					for range copies {
						w.send(order("1", body))
					}
					workers := []*runner{w.start(), w.start(), w.start(), w.start()}
					w.waitDrained(time.Minute)
					created, duplicates := 0, 0
					for _, r := range workers {
						r.end()
						created, duplicates = created+r.saw(worker.EventCreated), duplicates+r.saw(worker.EventDuplicate)
					}
					require.Equal(t, 1, created)
					require.Equal(t, copies-1, duplicates)
					require.Empty(t, w.deadLetters())
				})
			})
		}
	}
}

func TestOfManyContentsAtOnceExactlyOneIsStored(t *testing.T) {
	inBubble(t, testenv.Options{}, func(w *env) {
		w.Faults.Add(fault.On(history.CreateDocument).Always().Before(fault.Wait(time.Second)))
		for n := range 50 {
			w.send(order("1", fmt.Sprintf(`{"amount":%d}`, n%5)))
		}
		w.start()
		w.start()
		w.waitDrained(time.Minute)
		require.Len(t, w.Stored(), 1)
		require.Len(t, w.deadLetters(), 40)
	})
}

// TestAnOrderIsNeverSeenWithoutItsLines looks at the store at every moment in which anything can have changed, while the
// answers of batches get lost and workers die.
func TestAnOrderIsNeverSeenWithoutItsLines(t *testing.T) {
	inBubble(t, testenv.Options{}, func(w *env) {
		var looks atomic.Int64
		look := fault.Call(func() {
			looks.Add(1)
			parts := map[string]int{}
			for _, id := range w.Stored() {
				guard, _ := traffic.Guard(id)
				parts[guard]++
			}
			for guard, n := range parts {
				if want := 1 + int(guard[len(guard)-1]-'0'); n != want {
					t.Errorf("order %s was seen with %d documents instead of %d", guard, n, want)
				}
			}
		})
		workers := []*runner{w.start(), w.start()}
		w.Faults.Add(
			fault.On(history.ExecuteBatch).Nth(3).Times(3).After(fault.DropReply()),
			fault.On(history.ExecuteBatch).Nth(9).Before(fault.Reply(503, 0)),
			fault.On(history.ExecuteBatch).Nth(12).After(fault.Call(workers[0].die)),
			fault.On(history.Complete).Nth(6).Before(fault.Call(workers[1].die)),
			fault.On("*").Always().Before(look),
		)
		for n := range 30 {
			lines := 1 + n%9
			body := fmt.Sprintf(`{"n":%d,"lines":[%s]}`, n, strings.TrimSuffix(strings.Repeat(`{"sku":"a"},`, lines), ","))
			w.send(order(fmt.Sprintf("%d-%d", n, lines), body))
		}
		time.Sleep(time.Minute)
		w.start()
		w.waitDrained(10 * time.Minute)
		require.Greater(t, looks.Load(), int64(100))
	})
}
