package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/internal/backoff"
	"github.com/orderworker/orderworker/internal/brokerfault"
	"github.com/orderworker/orderworker/internal/messagejson"
	"github.com/orderworker/orderworker/worker/internal/supervise"
)

// posting sends what is committed, with a circuit breaker for each destination: one that cannot be sent to is tried now and then,
// and costs the messages for others nothing. It is safe for concurrent use.
type posting struct {
	sender  Sender
	timeout time.Duration
	// changed is told when a destination cannot be sent to (err is why), and when it can again.
	changed func(to string, err error)

	mu   sync.Mutex
	down map[string]*outage // by destination
}

// outage is that of one destination.
type outage struct {
	err      error
	failures int
	next     time.Time // when it is tried again
	trying   bool
}

// A destinationError says which destination messages could not be sent to.
type destinationError struct {
	to  string
	err error
}

func (e *destinationError) Error() string { return describeUnsent(e.to, e.err) }
func (e *destinationError) Unwrap() error { return e.err }

// destinationBackoff returns the backoff between the tries of a destination that cannot be sent to.
func destinationBackoff() backoff.Policy {
	return backoff.Policy{Base: time.Second, Max: 30 * time.Second, Floor: 250 * time.Millisecond}
}

func newPosting(s Sender, timeout time.Duration) *posting {
	return &posting{sender: s, timeout: timeout, down: map[string]*outage{}, changed: func(string, error) {}}
}

// post sends the messages of one outbox, those of each destination in their order. It goes on with other destinations when one
// fails, and returns nil only when all were taken.
func (p *posting) post(ctx context.Context, pool *supervise.Pool, u Unsent) error {
	if p == nil {
		return errors.New("this program has no sender")
	}
	var order []string
	byDestination := map[string][]*azservicebus.AMQPAnnotatedMessage{}
	for _, m := range u.Messages {
		message, err := messagejson.Decode(m.Line)
		if err != nil {
			return fmt.Errorf("the stored message %+q cannot be read: %w", m.Name, err)
		}
		if byDestination[m.To] == nil {
			order = append(order, m.To)
		}
		byDestination[m.To] = append(byDestination[m.To], message)
	}
	var faults []error
	for _, to := range order {
		faults = append(faults, p.postTo(ctx, pool, to, byDestination[to]))
	}
	return errors.Join(faults...)
}

func (p *posting) postTo(ctx context.Context, pool *supervise.Pool, to string, messages []*azservicebus.AMQPAnnotatedMessage) error {
	if err := p.begin(to); err != nil {
		return &destinationError{to, err}
	}
	sctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	err := supervise.Do(sctx, pool, callGrace, func(ctx context.Context) error { return p.sender.Send(ctx, to, messages) })
	if ctx.Err() != nil && err != nil { // we ended it ourselves, which says nothing of the destination
		p.unknown(to)
		return &destinationError{to, err}
	}
	p.ended(to, err)
	if err != nil {
		return &destinationError{to, explained(err)}
	}
	return nil
}

// explained is an error of the broker with what to do about it.
func explained(err error) error {
	return errors.New(brokerfault.Explain(brokerfault.Of(err), err))
}

// begin returns the error of a destination that is not tried now.
func (p *posting) begin(to string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.down[to]
	if o == nil {
		return nil
	}
	if o.trying || time.Now().Before(o.next) {
		return o.err
	}
	o.trying = true
	return nil
}

func (p *posting) unknown(to string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o := p.down[to]; o != nil {
		o.trying = false
	}
}

// ended records how a try ended.
func (p *posting) ended(to string, err error) {
	p.mu.Lock()
	o := p.down[to]
	news := (o == nil) != (err == nil)
	switch {
	case err == nil:
		delete(p.down, to)
	case o == nil:
		o = &outage{}
		p.down[to] = o
		fallthrough
	default:
		o.err, o.trying = explained(err), false
		if now := time.Now(); !now.Before(o.next) { // those that were under way together count as one
			o.next = now.Add(destinationBackoff().Wait(o.failures))
			o.failures++
		}
	}
	p.mu.Unlock()
	if news {
		p.changed(to, err)
	}
}

// hopeless reports whether every destination of an outbox is known not to be tried now.
func (p *posting) hopeless(u Unsent) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range u.Messages {
		if o := p.down[m.To]; o == nil || !o.trying && !time.Now().Before(o.next) {
			return false
		}
	}
	return true
}
