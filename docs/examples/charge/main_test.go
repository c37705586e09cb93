package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/app"
	"github.com/orderworker/orderworker/worker/app/apptest"
)

func TestMain(m *testing.M) { apptest.Main(m, program(os.Getenv)) }

// A ledger is a payment provider on loopback. It keeps keys or not, and loses the answers to charges of the cards whose names say so.
type ledger struct {
	*httptest.Server
	keys bool

	mu      sync.Mutex
	charged []string                         // the keys of all charges, in order
	tries   map[string]int                   // by key
	around  map[string]func(key string) bool // before and after a charge; false ends the connection
}

func newLedger(t *testing.T, keys bool) *ledger {
	l := &ledger{keys: keys, tries: map[string]int{}, around: map[string]func(string) bool{}}
	l.Server = httptest.NewServer(l)
	t.Cleanup(l.Close)
	return l
}

// ServeHTTP implements [http.Handler].
func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Method == http.MethodGet {
		if n := slices.Index(l.charged, r.FormValue("key")); n >= 0 {
			fmt.Fprintf(w, `{"id":"ch_%d"}`, n)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		return
	}
	var p payment
	key := r.Header.Get("Idempotency-Key")
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil || key == "" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	l.tries[key]++
	switch {
	case p.Card == "declined":
		w.WriteHeader(http.StatusPaymentRequired)
		return
	case p.Card == "busy" && l.tries[key] == 1:
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	l.at("before", key)
	n := slices.Index(l.charged, key)
	if n < 0 || !l.keys {
		n = len(l.charged)
		l.charged = append(l.charged, key)
	}
	l.at("after", key)
	if p.Card == "answer lost" && l.tries[key] == 1 {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"id":"ch_%d"}`, n)
}

func (l *ledger) at(moment, key string) {
	if f := l.around[moment]; f != nil && !f(key) {
		panic(http.ErrAbortHandler)
	}
}

func (l *ledger) charges(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, c := range l.charged {
		if c == key {
			n++
		}
	}
	return n
}

func (l *ledger) tried(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tries[key]
}

// newShop is an environment for a program of this provider. What a killed worker has locked comes back after five seconds.
func newShop(t *testing.T, l *ledger) (*apptest.Env, app.Program) {
	settings := []string{"PROVIDER_URL=" + l.URL, "PROVIDER_KEYS=some", "CHARGE_LEASE=4s", "WORKER_LOCK_DURATION=5s", "WORKER_RETRY_BASE=20ms"}
	if !l.keys {
		settings[1] = "PROVIDER_KEYS=none"
	}
	env := apptest.Start(t, func(o *testenv.Options) {
		o.Adjust = func(q *servicebus.Queue) { q.RequiresDuplicateDetection, q.LockDuration = false, 5*time.Second }
	}, settings...)
	return env, program(func(name string) string {
		for _, s := range settings {
			if value, ok := strings.CutPrefix(s, name+"="); ok {
				return value
			}
		}
		return ""
	})
}

// A point is a moment at which a worker is killed that works on the message of the same name.
type point struct {
	name string
	kill func(env *apptest.Env, l *ledger, id string, kill func())
}

// points are before and after each step: the claim, the charge, the commit and the settlement.
func points() []point {
	rule := func(name, op, key string) []point {
		return []point{
			{"before-" + name, func(env *apptest.Env, _ *ledger, id string, kill func()) {
				env.Services.Faults.Add(fault.On(op).Key(id + key).Before(fault.Action{Kind: fault.Drop, Do: kill}))
			}},
			{"after-" + name, func(env *apptest.Env, _ *ledger, id string, kill func()) {
				env.Services.Faults.Add(fault.On(op).Key(id + key).After(fault.Call(kill)))
			}},
		}
	}
	charge := func(moment string) point {
		return point{moment + "-charge", func(_ *apptest.Env, l *ledger, id string, kill func()) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.around[moment] = func(key string) bool {
				if key != id+"~part.charge" {
					return true
				}
				delete(l.around, moment)
				kill()
				return false
			}
		}}
	}
	return slices.Concat(rule("claim", history.CreateDocument, "~part.inbox-record"), []point{charge("before"), charge("after")},
		rule("commit", history.ExecuteBatch, ""), rule("complete", history.Complete, ""))
}

// TestACrashAtAnyPointChargesEachCardOnce kills a process at each point, and lets another one carry on with all of it. The ledger of
// the provider tells what happened.
func TestACrashAtAnyPointChargesEachCardOnce(t *testing.T) {
	for _, keys := range []bool{true, false} {
		t.Run(fmt.Sprintf("keys %v", keys), func(t *testing.T) {
			t.Parallel()
			l := newLedger(t, keys)
			env, p := newShop(t, l)
			for _, point := range points() {
				doomed := env.Spawn()
				point.kill(env, l, point.name, doomed.Kill)
				env.Send(point.name, `{"card":"4242","amount":4000}`)
				<-doomed.Done()
			}
			env.Work(p)
			env.WaitUntilSettled(time.Minute)
			left := map[string]bool{}
			for _, d := range env.DeadLetters() {
				require.Equal(t, "ClaimExpired", d.Reason)
				left[d.MessageID] = true
			}
			for _, point := range points() {
				_, payment := env.Services.Account.Document(env.Services.Database, env.Services.Container, point.name)
				_, receipt := env.Services.Account.Document(env.Services.Database, env.Services.Container, point.name+"~part.receipt")
				require.Equal(t, payment, receipt, point.name)
				n := l.charges(point.name + "~part.charge")
				if payment {
					require.Equal(t, 1, n, point.name)
					continue
				}
				require.False(t, keys, "%s is not paid although the provider keeps keys", point.name)
				require.True(t, left[point.name], point.name)
				require.LessOrEqual(t, n, 1, point.name)
			}
			if keys {
				require.Empty(t, left)
			} else {
				require.True(t, left["after-charge"] && left["before-charge"], "nobody but a person can tell the two apart")
			}
		})
	}
}

func TestALostAnswerIsAskedForOrLeftToAPerson(t *testing.T) {
	t.Parallel()
	l := newLedger(t, true)
	env, p := newShop(t, l)
	w := env.Work(p)
	for _, card := range []string{"answer lost", "declined", "busy"} {
		env.Send(card, fmt.Sprintf(`{"card":%q,"amount":4000}`, card))
	}
	env.WaitUntilSettled(time.Minute)
	w.Stop()
	require.Equal(t, []int{1, 0, 1}, []int{l.charges("answer~20lost~part.charge"), l.charges("declined~part.charge"), l.charges("busy~part.charge")})
	require.Equal(t, 1, l.tried("answer~20lost~part.charge"), "the provider was asked, and not to charge again")
	require.Equal(t, 2, l.tried("busy~part.charge"), "a refusal is no doubt")
	dead := env.DeadLetters()
	require.Len(t, dead, 1)
	require.Equal(t, "CardDeclined", dead[0].Reason)
	require.Regexp(t, `outcome +{"charge":"ch_\d"}`, env.Run(p, "get", "answer lost"))
}

func TestAPersonResolvesWhatNobodyElseCanKnow(t *testing.T) {
	t.Parallel()
	l := newLedger(t, false)
	env, p := newShop(t, l)
	w := env.Work(p)
	for _, id := range []string{"pay-1", "pay-2"} {
		env.Send(id, `{"card":"answer lost","amount":4000}`)
	}
	env.WaitUntilSettled(time.Minute)
	w.Stop()
	require.Len(t, env.DeadLetters(), 2)
	require.Regexp(t, `claim +attempt 1, since .*, expired`, env.Run(p, "get", "pay-1"))
	numbers := map[string]string{}
	dead, err := env.Services.Broker.Messages(env.Services.Queue.Name + "/$DeadLetterQueue")
	require.NoError(t, err)
	for _, d := range dead {
		numbers[d.Key] = strconv.FormatInt(d.Sequence, 10)
		require.Equal(t, "ClaimExpired", d.DeadLetterReason)
		require.Regexp(t, `(?s)claim-expired.*may have got half way.*resolve \d+ --as done\|not-done`, env.Run(p, "deadletter", "show", numbers[d.Key]))
	}
	for _, wrong := range [][]string{{}, {"--as", "maybe"}, {"--as", "done"}, {"--as", "done", "--outcome", "{"}, {"--as", "not-done", "--outcome", "{}"}} {
		code, _, _ := env.Command(p, "", append([]string{"deadletter", "resolve", numbers["pay-1"], "--reason", "asked"}, wrong...)...)
		require.Equal(t, 2, code, wrong)
	}
	require.Contains(t, env.Run(p, "deadletter", "resolve", numbers["pay-1"], "--as", "done", "--outcome", `{"charge":"ch_0"}`, "--reason", "it is in the ledger"), "resolved")
	require.Contains(t, env.Run(p, "deadletter", "resolve", numbers["pay-2"], "--as", "not-done", "--reason", "asked"), "released")
	require.Regexp(t, `outcome +{"charge":"ch_0"}`, env.Run(p, "get", "pay-1"))
	require.Contains(t, env.Run(p, "deadletter", "log"), "resolve")
	require.Len(t, env.DeadLetters(), 1)
	env.Run(p, "deadletter", "reprocess", numbers["pay-2"], "--reason", "it was not charged")
	require.Empty(t, env.DeadLetters())
}

func TestAProviderThatCannotBeReachedLeavesNoDoubt(t *testing.T) {
	t.Parallel()
	l := newLedger(t, true)
	h := charges{provider{url: l.URL, client: l.Client()}}
	l.Close()
	_, err := h.Handle(context.Background(), worker.Message{Body: []byte(`{"card":"4242","amount":1}`)})
	require.Error(t, err)
	_, doubt := errors.AsType[*worker.InDoubtError](err)
	require.False(t, doubt)
}
