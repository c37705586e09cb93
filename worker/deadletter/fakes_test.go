package deadletter_test

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/deadletter"
)

// downPipeline is a pipeline whose store cannot be used.
type downPipeline struct{ deadletter.Pipeline }

func (p downPipeline) Preview(ctx context.Context, m *azservicebus.ReceivedMessage) worker.Result {
	r := p.Pipeline.Preview(ctx, m)
	if r.Admitted {
		r = worker.Result{Admitted: true, Message: r.Message, Cause: worker.CauseUnavailable, Err: errTest}
	}
	return r
}
