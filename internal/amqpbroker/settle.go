package amqpbroker

import (
	"context"
	"errors"
	"sync"

	"github.com/Azure/go-amqp"

	"github.com/orderworker/orderworker/internal/deadletter"
)

// Renew extends locks. See [deadletter.Broker].
func (b *Broker) Renew(ctx context.Context, locks []deadletter.LockToken) error {
	if len(locks) == 0 {
		return nil
	}
	_, err := b.manage(ctx, b.letters, true, "renew-lock", map[string]any{"lock-tokens": uuids(locks)})
	return asLock(err)
}

// Complete removes a locked letter. See [deadletter.Broker]. It is not repeated here: who asked must look what became of it.
func (b *Broker) Complete(ctx context.Context, lock deadletter.LockToken) error {
	return b.dispose(ctx, "completed", lock)
}

func (b *Broker) dispose(ctx context.Context, status string, lock deadletter.LockToken) error {
	_, err := b.manage(ctx, b.letters, false, "update-disposition", map[string]any{
		"disposition-status": status, "lock-tokens": uuids([]deadletter.LockToken{lock}),
	})
	return asLock(err)
}

// releases is how many locks are released at a time: the broker takes one in each request.
const releases = 32

// Release gives locked letters back. See [deadletter.Broker]. Those that are lost already do not keep it from the others.
func (b *Broker) Release(ctx context.Context, locks []deadletter.LockToken) error {
	slots := make(chan struct{}, releases)
	errs := make([]error, len(locks))
	var work sync.WaitGroup
	for i, lock := range locks {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			errs[i] = b.dispose(ctx, "abandoned", lock)
			if errs[i] != nil && lostConnection(ctx, errs[i]) {
				errs[i] = b.dispose(ctx, "abandoned", lock)
			}
			if errors.Is(errs[i], deadletter.ErrLockLost) {
				errs[i] = nil
			}
		})
	}
	work.Wait()
	return errors.Join(errs...)
}

func uuids(locks []deadletter.LockToken) []amqp.UUID {
	out := make([]amqp.UUID, len(locks))
	for i, l := range locks {
		out[i] = amqp.UUID(l)
	}
	return out
}
