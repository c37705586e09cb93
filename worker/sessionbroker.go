package worker

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// A SessionBroker is a [Broker] of a queue that requires sessions. That of [NewBroker] is one.
type SessionBroker interface {
	Broker
	// OpenSessions returns what accepts sessions, one at a time, on a connection of its own. It does no I/O.
	OpenSessions(ctx context.Context) (SessionAcceptor, error)
}

// A SessionAcceptor accepts sessions. It is used from one goroutine.
type SessionAcceptor interface {
	// Accept locks the next session that has messages and that nobody has locked. RenewMessageLock of its receiver renews the
	// lock of the session, whatever the message. The broker is asked to wait no longer than the deadline of ctx; then the error
	// is an [azservicebus.Error] with [azservicebus.CodeTimeout].
	Accept(ctx context.Context) (SessionReceiver, error)
	// Close ends the connection.
	Close(ctx context.Context) error
}

// A SessionReceiver is a [Receiver] that has locked a session.
type SessionReceiver interface {
	Receiver
	// LockedUntil is when the lock of the session ends, by the broker's clock.
	LockedUntil() time.Time
}

var _ SessionBroker = (*sdkBroker)(nil)

// OpenSessions implements [SessionBroker].
func (b *sdkBroker) OpenSessions(context.Context) (SessionAcceptor, error) {
	client, err := b.newClient()
	if err != nil {
		return nil, err
	}
	return &sdkAcceptor{client: client, accept: b.accept}, nil
}

type sdkAcceptor struct {
	client *azservicebus.Client
	accept func(context.Context, *azservicebus.Client) (*azservicebus.SessionReceiver, error)
}

func (a *sdkAcceptor) Accept(ctx context.Context) (SessionReceiver, error) {
	r, err := a.accept(ctx, a.client)
	if err != nil {
		return nil, err
	}
	return sdkSession{r}, nil
}

func (a *sdkAcceptor) Close(ctx context.Context) error { return a.client.Close(ctx) }

// sdkSession renews the lock of its session in place of that of a message.
type sdkSession struct{ *azservicebus.SessionReceiver }

func (s sdkSession) RenewMessageLock(ctx context.Context, m *azservicebus.ReceivedMessage, _ *azservicebus.RenewMessageLockOptions) error {
	if err := s.RenewSessionLock(ctx, nil); err != nil {
		return err
	}
	until := s.LockedUntil()
	m.LockedUntil = &until
	return nil
}

// isAcceptTimeout reports whether the broker had no session to give.
func isAcceptTimeout(err error) bool {
	e, ok := errors.AsType[*azservicebus.Error](err)
	return ok && e.Code == azservicebus.CodeTimeout
}
