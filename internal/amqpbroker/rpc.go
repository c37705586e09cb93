package amqpbroker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/orderworker/orderworker/internal/wire"
)

// A StatusError is an answer of the broker that refuses a request.
type StatusError struct {
	// Operation is what was asked, such as "com.microsoft:peek-message" or "put-token", and Entity of what.
	Operation, Entity string
	// Status is like an HTTP status: 401 for a missing right, 404 for a missing queue, 410 for a lost lock.
	Status      int
	Description string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("the broker refused %s for %s with status %d: %s", strings.TrimPrefix(e.Operation, "com.microsoft:"), e.Entity, e.Status, e.Description)
}

// RPCCode is the status, by which package brokerfault knows an answer of the broker.
func (e *StatusError) RPCCode() int { return e.Status }

// replyCredit is how many answers may be under way.
const replyCredit = 1000

// rpc is a pair of links over which requests are sent and answered. It is safe for concurrent use.
type rpc struct {
	node     string
	reply    string
	session  *amqp.Session
	sender   *amqp.Sender
	receiver *amqp.Receiver
	waiting  sync.Map // channels of answers by the id of the request
	stop     context.CancelFunc
	ended    chan struct{} // closed when no more answers come
	err      error         // why; set before ended is closed
}

// openRPC attaches the two links in a session of their own.
func openRPC(ctx context.Context, conn *amqp.Conn, node string) (*rpc, error) {
	session, err := conn.NewSession(ctx, nil)
	if err != nil {
		return nil, err
	}
	r := &rpc{node: node, reply: "reply-" + rand.Text(), session: session, ended: make(chan struct{})}
	if err := r.attach(ctx); err != nil {
		_ = session.Close(ctx)
		return nil, err
	}
	routeCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop = stop
	go r.route(routeCtx)
	return r, nil
}

func (r *rpc) attach(ctx context.Context) (err error) {
	if r.sender, err = r.session.NewSender(ctx, r.node, nil); err != nil {
		return err
	}
	r.receiver, err = r.session.NewReceiver(ctx, r.node, &amqp.ReceiverOptions{
		TargetAddress: r.reply, Credit: replyCredit,
		SettlementMode:            amqp.ReceiverSettleModeFirst.Ptr(),
		RequestedSenderSettleMode: amqp.SenderSettleModeSettled.Ptr(),
	})
	return err
}

// route hands out answers until the link ends.
func (r *rpc) route(ctx context.Context) {
	defer close(r.ended)
	for {
		received, err := r.receiver.Receive(ctx, nil)
		if err != nil {
			r.err = err
			return
		}
		m, _, _ := wire.Decode(wire.Unwrap(received.Data))
		if m.Properties == nil {
			continue
		}
		id, _ := m.Properties.CorrelationID.(string)
		if answer, ok := r.waiting.LoadAndDelete(id); ok {
			answer.(chan *amqp.Message) <- m
		}
	}
}

// close ends the session, as the SDK does: the links of a request are never detached one by one.
func (r *rpc) close(ctx context.Context) {
	r.stop()
	<-r.ended
	_ = r.session.Close(ctx)
}

// call sends a request and waits for its answer.
func (r *rpc) call(ctx context.Context, m *amqp.Message) (*amqp.Message, error) {
	id := rand.Text()
	m.Properties = &amqp.MessageProperties{MessageID: id, ReplyTo: &r.reply}
	answer := make(chan *amqp.Message, 1)
	r.waiting.Store(id, answer)
	defer r.waiting.Delete(id)
	if err := r.sender.Send(ctx, m, nil); err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-r.ended:
		return nil, r.err
	case reply := <-answer:
		return reply, r.status(m, reply)
	}
}

// status reads whether an answer grants the request.
func (r *rpc) status(request, reply *amqp.Message) error {
	e := &StatusError{Entity: strings.TrimSuffix(r.node, "/$management")}
	e.Operation, _ = request.ApplicationProperties["operation"].(string)
	e.Status = statusOf(reply)
	for _, name := range []string{"status-description", "statusDescription"} {
		if text, ok := reply.ApplicationProperties[name].(string); ok {
			e.Description = text
		}
	}
	switch {
	case e.Status >= 200 && e.Status < 300:
		return nil
	case e.Status == 0:
		return errors.New("an answer of the broker has no status")
	}
	return e
}

// statusOf returns the status of an answer, and zero when it has none.
func statusOf(reply *amqp.Message) int {
	for _, name := range []string{"status-code", "statusCode"} {
		if code, ok := reply.ApplicationProperties[name].(int32); ok {
			return int(code)
		}
	}
	return 0
}

// serverTimeout is what a management request tells the broker: a little less than the time that the caller waits.
func serverTimeout(ctx context.Context) uint64 {
	deadline, ok := ctx.Deadline()
	if !ok {
		return uint64(time.Minute / time.Millisecond)
	}
	return uint64(max(0, time.Until(deadline)-time.Second) / time.Millisecond)
}
