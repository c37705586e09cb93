package worker

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/orderworker/orderworker/internal/backoff"
	"github.com/orderworker/orderworker/worker/admission"
)

// Config says how a [Worker] works. The zero value of a field means its default.
type Config struct {
	// Concurrency is the number of messages handled and committed at the same time. As many again may be about to be
	// settled. Defaults to 16.
	Concurrency int
	// Sessions tells that the queue requires sessions. The messages of a session are then processed strictly one after the
	// other, and Concurrency is the number of sessions at the same time, each on a connection of its own.
	Sessions bool
	// SessionIdle is how long a session without messages is kept before another is accepted. Defaults to 2s, or to half of
	// LockDuration when that is less.
	SessionIdle time.Duration
	// LockDuration is the lock duration that the queue is configured with. A shorter lock that the broker states with a
	// message is believed, a longer one is not. Defaults to 60s.
	LockDuration time.Duration
	// MaxDeliveryCount is the maximum delivery count that the queue is configured with. Defaults to 10.
	MaxDeliveryCount int
	// HandlerTimeout bounds one call of the handler. The lock is renewed meanwhile. Defaults to 2m.
	HandlerTimeout time.Duration
	// StoreTimeout bounds one call of the store, also when the store ignores its context. A commit starts only while the
	// lock lasts at least this long. Defaults to 10s, or to a quarter of LockDuration when that is less.
	StoreTimeout time.Duration
	// LookFirst asks the store about every message before its handler runs, and not only about those that come again. It costs a
	// read for each message, and spares what the handler calls the duplicates that other senders make. Defaults to false.
	LookFirst bool
	// DrainTimeout bounds how long [Worker.Run] lets messages finish after it was told to stop. What does not finish is
	// abandoned within two more seconds. Defaults to 25s.
	DrainTimeout time.Duration

	Retry    RetryConfig
	Breaker  BreakerConfig
	Watchdog WatchdogConfig

	// Outbox says where the messages of [Effects.Messages] go.
	Outbox OutboxConfig

	// Admission says where the key, the body and the fingerprint of a message come from.
	Admission admission.Config

	// Claim says whether each message is claimed before its handler runs. Defaults to no claims.
	Claim ClaimConfig

	// Program and Version name the program that works. They are stored with each inbox record and set on each message that is
	// dead-lettered, since only the handler of that program knows what its messages mean. Empty leaves them out.
	Program string
	Version string
	// ServerAddress is the host of the broker, for metrics and spans. Empty leaves it out.
	ServerAddress string
	// Logger takes the log lines. Defaults to none.
	Logger *slog.Logger
	// Observer is told of every event. It may be nil.
	Observer Observer
	// TracerProvider and MeterProvider take spans and metrics. Default to none.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
}

// RetryConfig says how long a message is tried again while its lock is held. What remains is left to the next delivery.
type RetryConfig struct {
	// Attempts is the number of tries within one delivery, the first included. Defaults to 4.
	Attempts int
	// Base is the bound of the first wait, which doubles with each try. Waits are drawn evenly below their bound.
	// Defaults to 500ms.
	Base time.Duration
	// Max bounds the bound. Defaults to 15s.
	Max time.Duration
	// HoldFor bounds how long a message is held, with its lock renewed, while the store is unavailable or its handler
	// asks for a later retry. Then it is abandoned, and with each delivery it is held twice as long. Defaults to 10m.
	HoldFor time.Duration
	// Spread is the time over which the deliveries of a message whose handler fails are spread, all of its waits together: before
	// the last delivery it waits half of that, before the one before a quarter, and so on. Defaults to 2h.
	Spread time.Duration
}

// delayFor is how long a message waits, after its handler failed in its nth delivery of at most so many, for the next.
func (c RetryConfig) delayFor(delivery uint32, most int) time.Duration {
	halves := max(most-int(max(delivery, 1)), 0)
	wait := time.Duration(0)
	if halves < 60 {
		wait = c.Spread >> halves
	}
	return max(wait, min(c.Spread, minDelay))
}

// minDelay is the least wait before another delivery.
const minDelay = time.Second

func (c RetryConfig) backoff() backoff.Policy { return backoff.Policy{Base: c.Base, Max: c.Max} }

// holdFor is how long a message may be held in its nth delivery. It doubles with each: the first time a message is soon left
// to a worker that may be better off, and later an outage of many hours still costs it only a few deliveries.
func (c RetryConfig) holdFor(delivery uint32) time.Duration {
	return backoff.Policy{Base: c.HoldFor, Max: maxHold}.Bound(int(delivery) - 1)
}

// BreakerConfig says when the worker stops receiving because its store cannot be used.
type BreakerConfig struct {
	// Failures is the number of consecutive unavailable results that open the breaker. Defaults to 5.
	Failures int
	// ProbeBase is the bound of the wait before the first probe of the store, which doubles with each probe. Waits are
	// drawn evenly below their bound, and are never shorter than the store asked for. Defaults to 1s.
	ProbeBase time.Duration
	// ProbeMax bounds the bound. Defaults to 30s.
	ProbeMax time.Duration
}

// backoff has a floor that lets the commits in hand get in line first, so that a probe finds them.
func (c BreakerConfig) backoff() backoff.Policy {
	return backoff.Policy{Base: c.ProbeBase, Max: c.ProbeMax, Floor: c.ProbeBase / 8}
}

// WatchdogConfig says when a receiver that looks healthy is taken for dead.
type WatchdogConfig struct {
	// Silence is how long one receive call waits. When nothing came for so long the queue is looked at. Defaults to 15s:
	// a connection that has become silent is found by the look only. An idle worker makes four looks a minute.
	Silence time.Duration
	// Stuck is how long a call of the broker's client may overrun its own bound before it is abandoned. Defaults to 10s.
	Stuck time.Duration
	// NotReceiving is how long one message may wait in the queue, besides the time that Retry.HoldFor allows another replica to hold
	// it, while this worker receives nothing, before the worker says that it is not ready. Defaults to HandlerTimeout plus
	// two lock durations, since another replica may work on a message that long, and to Silence when that is longer.
	NotReceiving time.Duration
}

// withDefaults returns a copy in which no zero stands for a default.
func (c Config) withDefaults() Config {
	c.Concurrency = cmp.Or(c.Concurrency, 16)
	c.LockDuration = cmp.Or(c.LockDuration, 60*time.Second)
	c.SessionIdle = cmp.Or(c.SessionIdle, min(2*time.Second, c.LockDuration/2))
	c.MaxDeliveryCount = cmp.Or(c.MaxDeliveryCount, 10)
	c.HandlerTimeout = cmp.Or(c.HandlerTimeout, 2*time.Minute)
	c.StoreTimeout = cmp.Or(c.StoreTimeout, min(10*time.Second, c.LockDuration/4))
	c.DrainTimeout = cmp.Or(c.DrainTimeout, 25*time.Second)
	c.Retry.Attempts = cmp.Or(c.Retry.Attempts, 4)
	c.Retry.Base = cmp.Or(c.Retry.Base, 500*time.Millisecond)
	c.Retry.Max = cmp.Or(c.Retry.Max, 15*time.Second)
	c.Retry.HoldFor = cmp.Or(c.Retry.HoldFor, 10*time.Minute)
	c.Retry.Spread = cmp.Or(c.Retry.Spread, 2*time.Hour)
	c.Breaker.Failures = cmp.Or(c.Breaker.Failures, 5)
	c.Breaker.ProbeBase = cmp.Or(c.Breaker.ProbeBase, time.Second)
	c.Breaker.ProbeMax = cmp.Or(c.Breaker.ProbeMax, 30*time.Second)
	c.Watchdog.Silence = cmp.Or(c.Watchdog.Silence, 15*time.Second)
	c.Watchdog.Stuck = cmp.Or(c.Watchdog.Stuck, 10*time.Second)
	c.Watchdog.NotReceiving = cmp.Or(c.Watchdog.NotReceiving, max(c.HandlerTimeout+2*c.LockDuration, c.Watchdog.Silence))
	c.Outbox.MaxMessageBytes = cmp.Or(c.Outbox.MaxMessageBytes, 256<<10)
	c.Outbox.SweepEvery = cmp.Or(c.Outbox.SweepEvery, time.Minute)
	c.Outbox.SweepAfter = cmp.Or(c.Outbox.SweepAfter, time.Minute)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// A FieldError is a fault of one field of [Config] or of one of the structs in it, named as it is there.
type FieldError = admission.FieldError

// Validate reports every fault at once, as [New] does. Those of a field are a [FieldError].
func (c Config) Validate() error { return c.withDefaults().validate() }

// validate reports every fault of a config that has its defaults.
func (c Config) validate() error {
	var faults []error
	check := func(ok bool, field, format string, args ...any) {
		if !ok {
			faults = append(faults, &FieldError{Field: field, Problem: fmt.Sprintf(format, args...)})
		}
	}
	check(c.Concurrency >= 1 && c.Concurrency <= 5000, "Concurrency",
		"concurrency is %d: the broker's client takes 1 to 5000 messages at a time", c.Concurrency)
	check(c.LockDuration >= time.Second && c.LockDuration <= 5*time.Minute, "LockDuration",
		"lock duration is %v: Service Bus takes at most 5m, and below 1s no lock can be renewed in time", c.LockDuration)
	check(c.SessionIdle > 0 && c.SessionIdle <= c.LockDuration/2, "SessionIdle", "session idle is %v: it must be positive and at most half the lock duration of %v", c.SessionIdle, c.LockDuration)
	check(c.MaxDeliveryCount >= 1, "MaxDeliveryCount", "maximum delivery count is %d: it must be at least 1, and what the queue is configured with", c.MaxDeliveryCount)
	check(c.HandlerTimeout > 0, "HandlerTimeout", "handler timeout is %v: it must be positive", c.HandlerTimeout)
	check(c.StoreTimeout > 0 && c.StoreTimeout <= c.LockDuration/2, "StoreTimeout",
		"store timeout is %v: a commit must fit half the lock duration of %v, so that a lock can always be renewed before it", c.StoreTimeout, c.LockDuration)
	check(c.DrainTimeout > 0, "DrainTimeout", "drain timeout is %v: it must be positive", c.DrainTimeout)
	check(c.Retry.Attempts >= 1, "Retry.Attempts", "retry attempts are %d: the first try counts, so give at least 1", c.Retry.Attempts)
	check(c.Retry.Base > 0 && c.Retry.Max >= c.Retry.Base, "Retry.Base", "retry waits are %v to %v: give a positive first wait that is not longer than the last", c.Retry.Base, c.Retry.Max)
	check(c.Retry.HoldFor > 0 && c.Retry.HoldFor <= maxHold, "Retry.HoldFor", "retry hold is %v: give a positive time of at most %v", c.Retry.HoldFor, maxHold)
	check(c.Retry.Spread > 0 && c.Retry.Spread <= maxHold, "Retry.Spread", "retry spread is %v: give a positive time of at most %v", c.Retry.Spread, maxHold)
	check(c.Breaker.Failures >= 1, "Breaker.Failures", "breaker failures are %d: give at least 1", c.Breaker.Failures)
	check(c.Breaker.ProbeBase > 0 && c.Breaker.ProbeMax >= c.Breaker.ProbeBase, "Breaker.ProbeBase", "breaker probe waits are %v to %v: give a positive first wait that is not longer than the last", c.Breaker.ProbeBase, c.Breaker.ProbeMax)
	check(c.Claim.Lease == 0 || c.Claim.Lease >= 3*c.StoreTimeout && c.Claim.Lease <= maxHold && c.Claim.Lease%time.Second == 0, "Claim.Lease",
		"claim lease is %v: give whole seconds, at least three times the store timeout of %v, so that it outlasts a renewal that fails, and at most %v", c.Claim.Lease, c.StoreTimeout, maxHold)
	check(c.Claim.OnExpired == TakeOver || c.Claim.Lease != 0, "Claim.Lease", "a claim policy is given, and no claim lease: without one no message is claimed")
	check(c.Claim.OnExpired == TakeOver || c.Claim.OnExpired == Intervene, "Claim.OnExpired", "claim policy is %d: give TakeOver or Intervene", c.Claim.OnExpired)
	check(c.Watchdog.Silence >= time.Second, "Watchdog.Silence", "watchdog silence is %v: below 1s an idle queue costs more than a busy one", c.Watchdog.Silence)
	check(c.Watchdog.Stuck > 0, "Watchdog.Stuck", "watchdog stuck is %v: it must be positive", c.Watchdog.Stuck)
	check(c.Watchdog.NotReceiving >= c.Watchdog.Silence, "Watchdog.NotReceiving", "watchdog not receiving is %v: it must not be shorter than the silence of %v", c.Watchdog.NotReceiving, c.Watchdog.Silence)
	c.Outbox.validate(check)
	return errors.Join(append(faults, c.Admission.Validate())...)
}
