package amqpbroker

import (
	"context"
	"errors"

	"github.com/Azure/go-amqp"
	"golang.org/x/sync/errgroup"

	"github.com/orderworker/orderworker/internal/deadletter"
)

// Renew extends locks. See [deadletter.Broker].
func (b *Broker) Renew(ctx context.Context, locks []deadletter.LockToken) error {
	if len(locks) == 0 {
		return nil
	}
	_, err := b.manage(ctx, b.source, tries, "renew-lock", map[string]any{"lock-tokens": uuids(locks)})
	return asLock(err)
}

// Complete removes a locked message. See [deadletter.Broker]. It is not repeated here: the caller must look what became of it.
func (b *Broker) Complete(ctx context.Context, lock deadletter.LockToken) error {
	return b.dispose(ctx, 1, "completed", lock)
}

func (b *Broker) dispose(ctx context.Context, most int, status string, lock deadletter.LockToken) error {
	_, err := b.manage(ctx, b.source, most, "update-disposition", map[string]any{
		"disposition-status": status, "lock-tokens": uuids([]deadletter.LockToken{lock}),
	})
	return asLock(err)
}

// releases is how many locks are released at a time: the broker takes one in each request.
const releases = 32

// Release abandons locked messages. See [deadletter.Broker]. Those that are lost already do not keep it from the others.
func (b *Broker) Release(ctx context.Context, locks []deadletter.LockToken) error {
	errs := make([]error, len(locks))
	var work errgroup.Group
	work.SetLimit(releases)
	for i, lock := range locks {
		work.Go(func() error {
			if err := b.dispose(ctx, tries, "abandoned", lock); !errors.Is(err, deadletter.ErrLockLost) {
				errs[i] = err
			}
			return nil
		})
	}
	_ = work.Wait()
	return errors.Join(errs...)
}

func uuids(locks []deadletter.LockToken) []amqp.UUID {
	out := make([]amqp.UUID, len(locks))
	for i, l := range locks {
		out[i] = amqp.UUID(l)
	}
	return out
}
