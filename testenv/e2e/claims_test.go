package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
)

// A provider charges cards. It keeps a ledger, from which the tests tell what happened, and keys unless it is keyless.
type provider struct {
	mu      sync.Mutex
	keyless bool
	takes   time.Duration
	ledger  []charge
	hook    func(after bool) // called before and after each effect
	random  *rand.Rand       // loses answers, when it is set
	calls   int
}

type charge struct {
	message string
	attempt int
}

var errNoAnswer = errors.New("the provider gave no answer")

// charge charges a card for a message. A dead process has no effect and hears nothing.
func (p *provider) charge(ctx context.Context, m worker.Message, alive func() bool) error {
	p.mu.Lock()
	takes := p.takes
	p.mu.Unlock()
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.at(false)
	if !alive() {
		return errCut
	}
	p.mu.Lock()
	p.calls++
	if p.keyless || p.chargesLocked(m.IdempotencyKey("charge")) == 0 {
		p.ledger = append(p.ledger, charge{m.IdempotencyKey("charge"), m.Claim.Attempt})
	}
	lost := p.random != nil && p.random.IntN(5) == 0
	p.mu.Unlock()
	p.at(true)
	if lost || !alive() {
		return errNoAnswer
	}
	return nil
}

func (p *provider) at(after bool) {
	p.mu.Lock()
	hook := p.hook
	p.mu.Unlock()
	if hook != nil {
		hook(after)
	}
}

// change changes the provider while it is in use.
func (p *provider) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *provider) chargesLocked(key string) int {
	n := 0
	for _, c := range p.ledger {
		if c.message == key {
			n++
		}
	}
	return n
}

func (p *provider) called() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// charges counts those for a message.
func (p *provider) charges(id string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.chargesLocked(id + "~part.charge")
}

// a payer charges a card for each message, and stores a payment and its receipt.
type payer struct {
	provider *provider
	alive    func() bool

	mu       sync.Mutex
	attempts []int
	doubts   int
}

// runs are the attempts for which the handler ran, and doubts those of them that were told of an earlier one.
func (h *payer) runs() (attempts []int, doubts int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.attempts), h.doubts
}

func (h *payer) ran() []int {
	attempts, _ := h.runs()
	return attempts
}

// Handle implements [worker.Handler].
func (h *payer) Handle(ctx context.Context, m worker.Message) (worker.Effects, error) {
	h.mu.Lock()
	h.attempts = append(h.attempts, m.Claim.Attempt)
	if m.Claim.Previous {
		h.doubts++
	}
	h.mu.Unlock()
	if err := h.provider.charge(ctx, m, h.alive); err != nil {
		return worker.Effects{}, worker.InDoubt(err)
	}
	e := worker.Create(worker.Document{Type: "payment", Content: m.Body}, worker.Document{Name: "receipt", Type: "receipt", Content: []byte(`{"sent":false}`)})
	if m.Claim.Attempt > 0 { // an outcome needs an inbox record
		e.Outcome = fmt.Appendf(nil, `{"attempt":%d}`, m.Claim.Attempt)
	}
	return e, nil
}

const claimLease = 40 * time.Second

// startPayer starts a worker with claims.
func (w *env) startPayer(p *provider, policy worker.ClaimPolicy, adjust ...func(*worker.Config)) (*runner, *payer) {
	w.t.Helper()
	var r *runner
	started := make(chan struct{})
	h := &payer{provider: p, alive: func() bool { <-started; return !r.door.isCut() }}
	r = w.startWith(h, nil, append([]func(*worker.Config){func(c *worker.Config) {
		c.Claim = worker.ClaimConfig{Lease: claimLease, OnExpired: policy}
	}}, adjust...)...)
	close(started)
	return r, h
}

// claims makes a test one of messages that are claimed.
func (w *env) claims() {
	w.records, w.skipAudit = true, true
	w.expect.Reasons = []string{"ClaimExpired"}
	w.expect.Changes = func(id string) history.Change {
		if strings.HasSuffix(id, "~part.inbox-record") {
			return history.Freely
		}
		return history.Never
	}
	w.expect.Guard = func(id string) (string, bool) {
		base, part, _ := strings.Cut(id, "~part.")
		return base, part == "receipt"
	}
}

// paid returns how many payments are stored, and holds them against the ledger: with keys, one charge for each message and one
// payment; without, at most one charge, and none or a dead letter where there is no payment.
func (w *env) paid(p *provider, ids ...string) (payments int) {
	w.t.Helper()
	dead := map[string]bool{}
	for _, d := range w.deadLetters() {
		dead[d.Key] = true
	}
	for _, id := range ids {
		n := p.charges(id)
		_, payment := w.Account.Document(w.Database, w.Container, id)
		_, receipt := w.Account.Document(w.Database, w.Container, id+"~part.receipt")
		require.Equal(w.t, payment, receipt, "payment and receipt of %s", id)
		if payment {
			payments++
			require.Equal(w.t, 1, n, "the charges of %s, which is stored", id)
			require.False(w.t, dead[id] && !p.keyless, "%s is stored and dead-lettered", id)
			continue
		}
		require.True(w.t, dead[id], "%s is neither stored nor dead-lettered", id)
		require.LessOrEqual(w.t, n, 1, "the charges of %s, which is dead-lettered", id)
	}
	return payments
}

// killAt lets a worker die at a step: "provider", or an operation of the store or the broker, the nth.
func (w *env) killAt(doomed *runner, p *provider, op string, n int, after bool) {
	die := fault.Call(func() { doomed.die() })
	if op == "provider" {
		seen := 0
		p.change(func() {
			p.hook = func(a bool) {
				if a == after {
					if seen++; seen == n {
						doomed.die()
					}
				}
			}
		})
		return
	}
	rule := fault.On(op).Nth(n)
	if after {
		w.Faults.Add(rule.After(die))
	} else {
		w.Faults.Add(rule.Before(lost(die)))
	}
}

// steps are those of a message that is claimed: the claim, the charge, the completed record with what it comes with, and the settlement.
// The store is asked with a malformed create before its first one.
var steps = []struct {
	op string
	n  int
}{{history.Lock, 1}, {history.CreateDocument, 2}, {"provider", 1}, {history.ExecuteBatch, 1}, {history.Complete, 1}}

// TestAWorkerDiesAtEveryStepOfAClaimAndTheCardIsChargedOnce kills a worker before and after each step, and the one that takes over too.
func TestAWorkerDiesAtEveryStepOfAClaimAndTheCardIsChargedOnce(t *testing.T) {
	for _, policy := range []worker.ClaimPolicy{worker.TakeOver, worker.Intervene} {
		for _, s := range steps {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("policy %d, %s %d after %v", policy, s.op, s.n, after), func(t *testing.T) {
					inBubble(t, testenv.Options{}, func(w *env) {
						w.claims()
						p := &provider{keyless: policy == worker.Intervene, takes: time.Second}
						doomed, _ := w.startPayer(p, policy)
						w.killAt(doomed, p, s.op, s.n, after)
						w.send(order("1", `{"amount":40}`))
						w.waitFor(time.Minute, "the worker to die", func() bool { return doomed.door.isCut() })
						w.startPayer(p, policy)
						w.waitDrained(10 * time.Minute)
						payments := w.paid(p, "1")
						if policy == worker.TakeOver {
							require.Equal(t, 1, payments)
						}
					})
				})
			}
		}
	}
}

func TestASecondWorkerDiesAtEveryOperationOfATakeOver(t *testing.T) {
	for _, policy := range []worker.ClaimPolicy{worker.TakeOver, worker.Intervene} {
		for n := 1; n <= 12; n++ {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("policy %d, operation %d after %v", policy, n, after), func(t *testing.T) {
					inBubble(t, testenv.Options{}, func(w *env) {
						w.claims()
						p := &provider{keyless: policy == worker.Intervene}
						doomed, _ := w.startPayer(p, policy)
						w.killAt(doomed, p, "provider", 1, true)
						w.send(order("1", `{"amount":40}`))
						w.waitFor(time.Minute, "the first worker to die", func() bool { return doomed.door.isCut() })
						p.change(func() { p.hook = nil })
						second, _ := w.startPayer(p, policy)
						w.killAt(second, p, "cosmosdb.*", n, after)
						time.Sleep(5 * time.Minute)
						w.Faults.Clear()
						w.startPayer(p, policy)
						w.waitDrained(10 * time.Minute)
						payments := w.paid(p, "1")
						require.Equal(t, policy == worker.TakeOver, payments == 1)
						require.Equal(t, 1, p.charges("1"))
					})
				})
			}
		}
	}
}

func TestManyCopiesAtOnceAreClaimedOnceAndTheOthersWait(t *testing.T) {
	for _, policy := range []worker.ClaimPolicy{worker.TakeOver, worker.Intervene} {
		for _, copies := range []int{2, 50} {
			t.Run(fmt.Sprintf("policy %d, %d copies", policy, copies), func(t *testing.T) {
				inBubble(t, testenv.Options{}, func(w *env) {
					w.claims()
					w.Faults.Add(fault.On(history.CreateDocument).Always().Before(fault.Wait(time.Second)))
					p := &provider{keyless: true, takes: 3 * time.Minute}
					for range copies {
						w.send(order("1", `{"amount":40}`))
					}
					created, duplicates := 0, 0
					var workers []*runner
					for range 4 {
						r, _ := w.startPayer(p, policy, func(c *worker.Config) { c.HandlerTimeout = 10 * time.Minute })
						workers = append(workers, r)
					}
					w.waitDrained(10 * time.Minute)
					for _, r := range workers {
						r.end()
						created, duplicates = created+r.saw(worker.EventCreated), duplicates+r.saw(worker.EventDuplicate)
						require.Zero(t, r.saw(worker.EventBreakerOpened))
						require.Zero(t, r.saw(worker.EventAbandoned))
					}
					require.Equal(t, 1, created)
					require.Equal(t, copies-1, duplicates)
					require.Equal(t, 1, w.paid(p, "1"))
					require.Equal(t, 1, p.called())
				})
			})
		}
	}
}

var storedAt = regexp.MustCompile(`"_ts":(\d+)`)

// skewed is a way to the store of a process whose clock is behind by d: whatever the store says of time is later by d.
type skewed struct {
	*doorway
	d time.Duration
}

// Do implements policy.Transporter.
func (s skewed) Do(r *http.Request) (*http.Response, error) {
	resp, err := s.doorway.Do(r)
	if err != nil || s.d == 0 {
		return resp, err
	}
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		resp.Header.Set("Date", at.Add(s.d).UTC().Format(http.TimeFormat))
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	body = storedAt.ReplaceAllFunc(body, func(m []byte) []byte {
		ts, _ := strconv.ParseInt(string(m[len(`"_ts":`):]), 10, 64)
		return fmt.Appendf(nil, `"_ts":%d`, ts+int64(s.d/time.Second))
	})
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, nil
}

// TestLeasesCountByTheClockOfTheStore lets a copy meet a claim of a worker whose clock is minutes off: it waits while the first one lives, and
// takes over as soon as any other when it has died.
func TestLeasesCountByTheClockOfTheStore(t *testing.T) {
	for _, skews := range [][2]time.Duration{{0, 0}, {10 * time.Minute, -10 * time.Minute}, {-10 * time.Minute, 10 * time.Minute}} {
		t.Run(fmt.Sprint(skews), func(t *testing.T) {
			inBubble(t, testenv.Options{}, func(w *env) {
				w.claims()
				p := &provider{keyless: true, takes: 5 * time.Minute}
				start := func(d time.Duration) (*runner, *payer) {
					w.skew = d
					return w.startPayer(p, worker.TakeOver, func(c *worker.Config) { c.HandlerTimeout = 10 * time.Minute })
				}
				first, _ := start(skews[0])
				w.send(order("1", `{"amount":40}`))
				w.waitFor(time.Minute, "the claim", func() bool { return w.count(history.CreateDocument, "1~part.inbox-record", true) == 1 })
				_, second := start(skews[1])
				w.send(order("1", `{"amount":40}`))
				time.Sleep(4 * time.Minute)
				require.Empty(t, second.ran(), "the first one is at work, whatever its clock says")
				first.die()
				died := time.Now()
				p.change(func() { p.takes = 0 })
				w.waitFor(time.Hour, "the payment", func() bool { return p.charges("1") == 1 })
				require.Less(t, time.Since(died), claimLease+30*time.Second)
				require.Greater(t, time.Since(died), claimLease/2)
				w.waitDrained(10 * time.Minute)
				require.Equal(t, []int{2}, second.ran())
				require.Equal(t, 1, w.paid(p, "1"))
			})
		})
	}
}

// TestLostAnswersAreRecognised loses the answer, or the request, to each write of a claim. Nobody else is there, so that a claim that was
// not recognised would have to be taken over.
func TestLostAnswersAreRecognised(t *testing.T) {
	for _, tt := range []struct {
		name, op, key string
		n             int
		fails         int // how often the provider fails for certain first
		attempts      []int
	}{
		{"the claim", history.CreateDocument, "1~part.inbox-record", 1, 0, []int{1}},
		{"a renewal", history.ExecuteBatch, "1~part.inbox-record", 1, 0, []int{1}},
		{"the last renewal", history.ExecuteBatch, "1~part.inbox-record", 7, 0, []int{1}},
		{"the completion", history.ExecuteBatch, "1", 1, 0, []int{1}},
	} {
		for _, after := range []bool{false, true} {
			for name, a := range map[string]fault.Action{"dropped": fault.DropReply(), "silent": {Kind: fault.Silence}, "503": fault.Reply(503, 0), "408": fault.Reply(408, 0)} {
				t.Run(fmt.Sprintf("%s, %s, after %v", tt.name, name, after), func(t *testing.T) {
					inBubble(t, testenv.Options{}, func(w *env) {
						w.claims()
						rule := fault.On(tt.op).Key(tt.key).Nth(tt.n)
						if after {
							w.Faults.Add(rule.After(a))
						} else {
							w.Faults.Add(rule.Before(a))
						}
						p := &provider{keyless: true, takes: 100 * time.Second}
						_, h := w.startPayer(p, worker.Intervene)
						w.send(order("1", `{"amount":40}`))
						w.waitDrained(10 * time.Minute)
						require.Equal(t, tt.attempts, h.ran())
						require.Equal(t, 1, w.paid(p, "1"))
						require.Equal(t, 1, w.Faults.Applied())
					})
				})
			}
		}
	}
}

// TestAReleaseWhoseAnswerIsLostLeavesNoDoubt fails for certain once, and may run again at once.
func TestAReleaseWhoseAnswerIsLostLeavesNoDoubt(t *testing.T) {
	for _, after := range []bool{false, true} {
		inBubble(t, testenv.Options{}, func(w *env) {
			w.claims()
			rule := fault.On(history.ExecuteBatch).Key("1~part.inbox-record")
			if after {
				w.Faults.Add(rule.After(fault.DropReply()))
			} else {
				w.Faults.Add(rule.Before(fault.DropReply()))
			}
			var mu sync.Mutex
			var attempts []int
			w.startWith(worker.HandlerFunc(func(_ context.Context, m worker.Message) (worker.Effects, error) {
				mu.Lock()
				defer mu.Unlock()
				if attempts = append(attempts, m.Claim.Attempt); len(attempts) == 1 {
					return worker.Effects{}, errors.New("declined for now")
				}
				require.False(t, m.Claim.Previous)
				return worker.Create(worker.Document{Type: "payment", Content: m.Body}), nil
			}), nil, func(c *worker.Config) { c.Claim = worker.ClaimConfig{Lease: claimLease, OnExpired: worker.Intervene} })
			w.send(order("1", `{"amount":40}`))
			w.waitDrained(time.Minute)
			mu.Lock()
			defer mu.Unlock()
			require.Equal(t, []int{1, 2}, attempts)
			require.Empty(t, w.deadLetters())
		})
	}
}

// TestASlowWorkerThatWasTakenOverCommitsNothing cuts a worker from the store until another has taken over, and lets it return at each
// moment after that.
func TestASlowWorkerThatWasTakenOverCommitsNothing(t *testing.T) {
	for _, back := range []time.Duration{90 * time.Second, 2 * time.Minute, 5 * time.Minute} {
		t.Run(back.String(), func(t *testing.T) {
			inBubble(t, testenv.Options{}, func(w *env) {
				w.claims()
				slow, fast := &provider{takes: 4 * time.Minute}, &provider{takes: time.Minute}
				first, h := w.startPayer(slow, worker.TakeOver, func(c *worker.Config) { c.HandlerTimeout, c.Concurrency = 10*time.Minute, 1 })
				w.send(order("1", `{"amount":40}`))
				w.waitFor(time.Minute, "the claim", func() bool { return len(h.ran()) == 1 })
				first.door.storeDown.Store(true)
				w.send(order("1", `{"amount":40}`))
				_, second := w.startPayer(fast, worker.TakeOver)
				time.Sleep(back)
				first.door.storeDown.Store(false)
				w.waitDrained(20 * time.Minute)
				require.Equal(t, []int{2}, second.ran())
				require.Equal(t, 1, w.paid(fast, "1"))
				record, err := first.store.Find(w.t.Context(), "", "1")
				require.NoError(t, err)
				require.JSONEq(t, `{"attempt":2}`, string(record.Outcome), "the result of the first one is discarded")
				require.Equal(t, 1, w.History.Count(func(e history.Event) bool { return e.Op == history.ExecuteBatch && e.Effect && e.Key == "1" }))
			})
		})
	}
}

func TestEverySeedOfClaimsChargesOnce(t *testing.T) {
	for n := range max(1, *seeds/4) {
		seed := *first + uint64(n)
		for _, policy := range []worker.ClaimPolicy{worker.TakeOver, worker.Intervene} {
			t.Run(fmt.Sprintf("%d, policy %d", seed, policy), func(t *testing.T) {
				t.Parallel()
				o := testenv.Options{Faults: fault.Seed(seed, randomFaults()...), Adjust: func(q *servicebus.Queue) { q.MaxDeliveryCount = 100 }}
				inBubble(t, o, func(w *env) {
					w.seed = seed
					w.claims()
					rng := rand.New(rand.NewPCG(seed, 11))
					p := &provider{keyless: policy == worker.Intervene, takes: time.Duration(rng.IntN(50)) * time.Second, random: rand.New(rand.NewPCG(seed, 13))}
					start := func() *runner { r, _ := w.startPayer(p, policy); return r }
					alive := []*runner{start(), start()}
					var ids []string
					for range 5 {
						for range 1 + rng.IntN(3) {
							ids = append(ids, fmt.Sprint(len(ids)))
							for range 1 + rng.IntN(3) {
								w.send(order(ids[len(ids)-1], `{"amount":40}`))
							}
						}
						time.Sleep(time.Duration(rng.IntN(90_000)) * time.Millisecond)
						if i := rng.IntN(2); rng.IntN(2) == 0 {
							alive[i].die()
							alive[i] = start()
						}
					}
					w.Faults.Clear()
					p.change(func() { p.random = nil })
					start()
					w.waitDrained(3 * time.Hour)
					payments := w.paid(p, ids...)
					if policy == worker.TakeOver {
						require.Equal(t, len(ids), payments)
					}
				})
			})
		}
	}
}

// TestWhatIsInDoubtIsFreeAtOnce ends the work on a message in the middle of its handler, in each way in which the process lives on: another
// worker does not wait for the end of the lease, and is told of the doubt.
func TestWhatIsInDoubtIsFreeAtOnce(t *testing.T) {
	const long = 20 * time.Minute
	for name, end := range map[string]func(w *env, r *runner){
		"the worker stops": func(_ *env, r *runner) { r.stop() },
		"the lock is lost": func(w *env, _ *runner) {
			w.Faults.Add(fault.On(history.Renew).Before(fault.Reject("com.microsoft:message-lock-lost")))
		},
		"its timeout": func(*env, *runner) {},
	} {
		for _, policy := range []worker.ClaimPolicy{worker.TakeOver, worker.Intervene} {
			t.Run(fmt.Sprintf("%s, policy %d", name, policy), func(t *testing.T) {
				inBubble(t, testenv.Options{}, func(w *env) {
					w.claims()
					p, quick := &provider{takes: long}, &provider{}
					lasting := func(c *worker.Config) { c.Claim.Lease = long }
					first, h := w.startPayer(p, policy, lasting, func(c *worker.Config) { c.HandlerTimeout, c.DrainTimeout = 90*time.Second, time.Second })
					w.send(order("1", `{"amount":40}`))
					w.waitFor(time.Minute, "the handler", func() bool { return len(h.ran()) == 1 })
					_, second := w.startPayer(quick, policy, lasting)
					end(w, first)
					time.Sleep(100 * time.Second)
					first.stop()
					w.waitDrained(5 * time.Minute)
					if policy == worker.Intervene {
						require.Len(t, w.deadLetters(), 1)
						require.Empty(t, second.ran())
						return
					}
					attempts, doubts := second.runs()
					require.Equal(t, []int{2}, attempts)
					require.Equal(t, 1, doubts)
					require.Equal(t, 1, w.paid(quick, "1"))
				})
			})
		}
	}
}

// TestASlowWorkerTakesOverFromTheOneThatTookOver lets the second worker die: the first one, back at the store, gives its old result up
// and begins anew, without another delivery.
func TestASlowWorkerTakesOverFromTheOneThatTookOver(t *testing.T) {
	for _, atCommit := range []bool{false, true} {
		t.Run(fmt.Sprintf("back at the commit %v", atCommit), func(t *testing.T) { takesOverAgain(t, atCommit) })
	}
}

func takesOverAgain(t *testing.T, atCommit bool) {
	inBubble(t, testenv.Options{}, func(w *env) {
		w.claims()
		p := &provider{takes: 3 * time.Minute}
		first, h := w.startPayer(p, worker.TakeOver, func(c *worker.Config) { c.HandlerTimeout, c.Concurrency = 10*time.Minute, 1 })
		w.send(order("1", `{"amount":40}`))
		w.waitFor(time.Minute, "the claim", func() bool { return len(h.ran()) == 1 })
		first.door.storeDown.Store(true)
		w.send(order("1", `{"amount":40}`))
		second, taker := w.startPayer(&provider{takes: time.Hour}, worker.TakeOver)
		w.waitFor(3*time.Minute, "the take-over", func() bool { return len(taker.ran()) == 1 })
		second.die()
		if atCommit { // and not at a renewal, which would tell it sooner
			p.change(func() { p.hook = func(bool) { first.door.storeDown.Store(false) } })
		} else {
			first.door.storeDown.Store(false)
		}
		w.waitDrained(20 * time.Minute)
		require.Equal(t, []int{1, 3}, h.ran())
		require.Equal(t, 1, w.paid(p, "1"))
		require.Zero(t, first.saw(worker.EventAbandoned))
	})
}

// TestAClaimProvesThatTheStoreTakesWrites starts a process with messages whose handlers take long: it does not wait for the first commit.
func TestAClaimProvesThatTheStoreTakesWrites(t *testing.T) {
	inBubble(t, testenv.Options{}, func(w *env) {
		w.claims()
		p := &provider{takes: time.Minute}
		for n := range 5 {
			w.send(order(fmt.Sprint(n), `{"amount":40}`))
		}
		_, h := w.startPayer(p, worker.TakeOver)
		time.Sleep(30 * time.Second)
		require.Len(t, h.ran(), 5)
		w.waitDrained(5 * time.Minute)
		require.Equal(t, 5, w.paid(p, "0", "1", "2", "3", "4"))
	})
}

// TestAClaimedMessageThatSendsOthersDiesAtEveryStep has both in one transaction: the claim is completed, and the messages are kept.
func TestAClaimedMessageThatSendsOthersDiesAtEveryStep(t *testing.T) {
	for _, s := range []struct{ op, key string }{{history.CreateDocument, "1~part.inbox-record"}, {history.ExecuteBatch, "1"},
		{history.Send, ""}, {history.ExecuteBatch, "1~part.outbox"}, {history.Complete, "1"}} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s of %s, after %v", s.op, s.key, after), func(t *testing.T) {
				outboxEnv(t, true, time.Hour, func(w *env) {
					start := func() *runner {
						n := len(w.runners)
						return w.startWith(worker.HandlerFunc(reserving), nil, func(c *worker.Config) {
							c.Claim = worker.ClaimConfig{Lease: claimLease}
							c.Outbox = worker.OutboxConfig{Destinations: []string{"stock"}, Sender: worker.NewSender(func() (*azservicebus.Client, error) { return w.runners[n].door.serviceBus() })}
						})
					}
					doomed := start()
					w.waitFor(time.Minute, "ready", func() bool { return doomed.worker.Health().Ready })
					die, rule := fault.Call(doomed.die), fault.On(s.op).Key(s.key)
					if s.op == history.Send {
						rule = fault.On(s.op).Entity("stock")
					}
					if after {
						w.Faults.Add(rule.After(die))
					} else {
						w.Faults.Add(rule.Before(lost(die)))
					}
					w.send(order("1", `{"amount":40}`))
					w.waitFor(time.Minute, "the worker to die", func() bool { return doomed.door.isCut() })
					start()
					w.settleDown("1")
					record, _ := w.Account.Document(w.Database, w.Container, "1~part.inbox-record")
					require.NotContains(t, record.Body, "claim")
				})
			})
		}
	}
}

// TestAClaimedMessageThatIsRejectedForWhatWasReadIsDeadLettered has a record in progress of its own, which stands against nothing.
func TestAClaimedMessageThatIsRejectedForWhatWasReadIsDeadLettered(t *testing.T) {
	inBubble(t, testenv.Options{}, func(w *env) {
		w.claims()
		w.expect.Reasons = []string{"UnknownAccount"}
		var runs atomic.Int32
		w.startWith(worker.HandlerFunc(func(ctx context.Context, m worker.Message) (worker.Effects, error) {
			runs.Add(1)
			_, err := m.Read(ctx, "account")
			require.ErrorIs(t, err, worker.ErrNotFound)
			return worker.Effects{}, worker.Reject("UnknownAccount", err)
		}), nil, func(c *worker.Config) { c.Claim.Lease = claimLease })
		w.send(order("1", `{"amount":40}`))
		w.waitDrained(time.Minute)
		require.Len(t, w.deadLetters(), 1)
		require.EqualValues(t, 1, runs.Load())
	})
}

// TestAStateThatMovesUnderAClaimIsADoubt runs the handler again, which has charged the card already.
func TestAStateThatMovesUnderAClaimIsADoubt(t *testing.T) {
	for _, policy := range []worker.ClaimPolicy{worker.TakeOver, worker.Intervene} {
		inBubble(t, testenv.Options{}, func(w *env) {
			w.claims()
			w.expect.Changes = func(string) history.Change { return history.Freely }
			w.skipCheck = true
			require.NoError(t, w.Account.Seed(w.Database, w.Container, `{"id":"account","pk":"1","n":0}`))
			var mu sync.Mutex
			var previous []bool
			w.startWith(worker.HandlerFunc(func(ctx context.Context, m worker.Message) (worker.Effects, error) {
				state, err := m.Read(ctx, "account")
				require.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				if previous = append(previous, m.Claim.Previous); len(previous) == 1 {
					state.ETag = `"old"`
				}
				return worker.Apply(worker.Replace("account", []byte(`{"n":1}`), state.ETag)), nil
			}), nil, func(c *worker.Config) { c.Claim = worker.ClaimConfig{Lease: claimLease, OnExpired: policy} })
			w.send(order("1", `{"amount":40}`))
			w.waitDrained(time.Minute)
			mu.Lock()
			defer mu.Unlock()
			if policy == worker.TakeOver {
				require.Equal(t, []bool{false, true}, previous)
				require.Empty(t, w.deadLetters())
				return
			}
			require.Equal(t, []bool{false}, previous)
			require.Equal(t, "ClaimExpired", w.deadLetters()[0].DeadLetterReason)
			require.Contains(t, w.deadLetters()[0].DeadLetterErrorDescription, "kept changing")
			require.Contains(t, w.deadLetters()[0].DeadLetterErrorDescription, "half way")
		})
	}
}

// TestAWorkerWithoutClaimsBesideOneWithThemCommitsOnce is the time in which claims are switched on: some replicas claim, and others do not. The
// provider keeps keys, since those that do not claim call it as ever.
func TestAWorkerWithoutClaimsBesideOneWithThemCommitsOnce(t *testing.T) {
	for n := range max(1, *seeds/10) {
		seed := *first + uint64(n)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			o := testenv.Options{Faults: fault.Seed(seed, randomFaults()...), Adjust: func(q *servicebus.Queue) { q.MaxDeliveryCount = 100 }}
			inBubble(t, o, func(w *env) {
				w.seed = seed
				w.claims()
				rng := rand.New(rand.NewPCG(seed, 17))
				p := &provider{takes: time.Duration(rng.IntN(50)) * time.Second}
				plain := func() { w.startPayer(p, worker.TakeOver, func(c *worker.Config) { c.Claim = worker.ClaimConfig{} }) }
				plain()
				claiming, _ := w.startPayer(p, worker.TakeOver)
				var ids []string
				for range 5 {
					ids = append(ids, fmt.Sprint(len(ids)))
					for range 1 + rng.IntN(4) {
						w.send(order(ids[len(ids)-1], `{"amount":40}`))
					}
					time.Sleep(time.Duration(rng.IntN(60_000)) * time.Millisecond)
					if rng.IntN(2) == 0 {
						claiming.die()
						claiming, _ = w.startPayer(p, worker.TakeOver)
					}
				}
				w.Faults.Clear()
				plain()
				w.waitDrained(3 * time.Hour)
				require.Equal(t, len(ids), w.paid(p, ids...))
			})
		})
	}
}

// TestWhatWasCommittedBeforeClaimsWereSwitchedOnIsADuplicate has no inbox record of its own: the claim finds nothing in its way. Looking first
// spares the card.
func TestWhatWasCommittedBeforeClaimsWereSwitchedOnIsADuplicate(t *testing.T) {
	for _, look := range []bool{false, true} {
		inBubble(t, testenv.Options{}, func(w *env) {
			w.claims()
			w.records = false
			p := &provider{}
			before, _ := w.startPayer(p, worker.TakeOver, func(c *worker.Config) { c.Claim = worker.ClaimConfig{} })
			w.send(order("1", `{"amount":40}`))
			w.waitDrained(time.Minute)
			before.end()
			w.records = true
			after, h := w.startPayer(p, worker.Intervene, func(c *worker.Config) { c.LookFirst = look })
			for range 2 {
				w.send(order("1", `{"amount":40}`))
				w.waitDrained(time.Minute)
			}
			require.Equal(t, 2, after.saw(worker.EventDuplicate))
			require.Equal(t, !look, len(h.ran()) > 0)
			require.Equal(t, 1, w.paid(p, "1"))
			record, err := after.store.Find(w.t.Context(), "", "1")
			require.NoError(t, err)
			require.Nil(t, record.Claim)
		})
	}
}
