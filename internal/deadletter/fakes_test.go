package deadletter_test

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/admission"
	"github.com/orderworker/orderworker/worker/identity"
	"github.com/orderworker/orderworker/worker/reason"
)

// downPipeline is a pipeline whose store cannot be used.
type downPipeline struct {
	deadletter.Pipeline
	until time.Time // zero is for ever
}

func (p downPipeline) down() bool { return p.until.IsZero() || time.Now().Before(p.until) }

func (p downPipeline) Preview(ctx context.Context, m *azservicebus.ReceivedMessage) worker.Result {
	r := p.Pipeline.Preview(ctx, m)
	if r.Admitted && p.down() {
		r = worker.Result{Admitted: true, Message: r.Message, Cause: worker.CauseUnavailable, Err: errTest}
	}
	return r
}

func (p downPipeline) Lookup(_ context.Context, m *azservicebus.ReceivedMessage) (identity.Key, worker.Record, error) {
	key, _, err := p.Pipeline.Lookup(context.Background(), m)
	if _, none := errors.AsType[*reason.Refusal](err); none {
		return key, worker.Record{}, err
	}
	return key, worker.Record{}, errTest
}

func mustKey(text string) admission.KeySource {
	k, err := admission.ParseKeySource(text)
	if err != nil {
		panic(err)
	}
	return k
}

// sendHook does something as soon as a copy is sent.
type sendHook struct {
	deadletter.Broker
	after func()
}

func (b *sendHook) Send(ctx context.Context, encoded []byte) error {
	err := b.Broker.Send(ctx, encoded)
	b.after()
	return err
}
