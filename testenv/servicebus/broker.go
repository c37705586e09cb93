package servicebus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

// ErrClosed is returned by the doors of a broker that has been closed.
var ErrClosed = errors.New("servicebus: the broker is closed")

// A Broker is one namespace. Its methods are safe for concurrent use.
type Broker struct {
	opts      Options
	namespace *namespace
	made      time.Time
	payloads  payloads
	done      chan struct{}
	wg        sync.WaitGroup // every goroutine of the broker but timers

	mu       sync.Mutex
	closed   bool                // guarded by mu
	peers    map[*peer]struct{}  // guarded by mu
	doors    []net.Listener      // guarded by mu
	mute     amqp.Mute           // guarded by mu; for new connections too
	refusals []string            // guarded by mu
	tried    map[string]struct{} // guarded by mu; refusals that were logged
}

// New returns a broker with the queues, topics and subscriptions of the options. It reports every fault of the options at once.
func New(o Options) (*Broker, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("servicebus: invalid options:\n%w", err)
	}
	b := &Broker{
		opts: o, namespace: newNamespace(), made: time.Now(), done: make(chan struct{}), peers: map[*peer]struct{}{}, tried: map[string]struct{}{},
	}
	b.build(o.Config)
	return b, nil
}

// Close cuts every connection and ends the broker. It returns when all goroutines of the broker have ended.
func (b *Broker) Close() {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		close(b.done)
	}
	doors := b.doors
	b.doors = nil
	b.mu.Unlock()
	for _, l := range doors {
		_ = l.Close() // it may be closed already
	}
	for _, p := range b.connections() {
		p.conn.Drop()
	}
	b.namespace.close()
	b.wg.Wait()
}

func (b *Broker) connections() []*peer {
	b.mu.Lock()
	defer b.mu.Unlock()
	ps := make([]*peer, 0, len(b.peers))
	for p := range b.peers {
		ps = append(ps, p)
	}
	return ps
}

// ConnectionString returns what a client needs to connect to addr, with the first key. Behind [Broker.Dial] any address
// does.
func (b *Broker) ConnectionString(addr string) string {
	k := b.opts.Keys[0]
	return fmt.Sprintf("Endpoint=sb://%s;SharedAccessKeyName=%s;SharedAccessKey=%s;UseDevelopmentEmulator=true;", addr, k.Name, k.Secret)
}

// Dial returns the client's end of a new in-memory connection to the broker.
func (b *Broker) Dial(ctx context.Context) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("servicebus: dial: %w", err)
	}
	client, server := net.Pipe()
	if !b.spawn(func() { b.serve(server) }) {
		_ = server.Close() // nobody has seen it
		return nil, ErrClosed
	}
	return client, nil
}

// Serve accepts connections from l until ctx is done or the broker is closed, and closes l. Connections that were accepted
// go on until the broker is closed. It returns nil when it was asked to stop.
func (b *Broker) Serve(ctx context.Context, l net.Listener) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return ErrClosed
	}
	b.doors = append(b.doors, l)
	b.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		nc, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil || b.isClosed() {
				return nil
			}
			return fmt.Errorf("servicebus: accept on %v: %w", l.Addr(), err)
		}
		if !b.spawn(func() { b.serve(nc) }) {
			_ = nc.Close() // too late for it
			return nil
		}
	}
}

func (b *Broker) isClosed() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// serve runs one connection.
func (b *Broker) serve(nc net.Conn) {
	a := b.opts.Faults.At(fault.Point{Op: history.Connect, Phase: fault.Before})
	if !isNone(a) && (!b.endure(a) || a.Kind != fault.None) {
		if a.Kind == fault.Silence {
			<-b.done
		}
		_ = nc.Close() // that is the fault
		return
	}
	p := newPeer(b)
	p.conn = amqp.NewConn(nc, amqp.Config{Handler: b, IdleTimeout: b.opts.IdleTimeout})
	p.conn.Data = p
	b.mu.Lock()
	b.peers[p] = struct{}{}
	p.conn.SetMute(b.mute)
	closed := b.closed
	b.mu.Unlock()
	if closed {
		p.conn.Drop()
	}
	if err := p.conn.Serve(); err != nil && !b.isClosed() {
		b.opts.Logger.LogAttrs(context.Background(), slog.LevelDebug, "connection ended", slog.Any("error", err))
		if p, ok := errors.AsType[*amqp.ProtocolError](err); ok && p.Speaks() != "" {
			b.refuse(p.Speaks() + ": a connection string with UseDevelopmentEmulator=true makes the clients of Azure speak plain AMQP")
		}
	}
	p.close()
	b.mu.Lock()
	delete(b.peers, p)
	b.mu.Unlock()
}

// spawn runs f in a goroutine that Close waits for. It reports false when the broker is closed.
func (b *Broker) spawn(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.wg.Go(f)
	return true
}

// refuse records that a client asked for something that the broker does not implement.
func (b *Broker) refuse(what string) {
	b.mu.Lock()
	b.refusals = append(b.refusals, what)
	_, known := b.tried[what]
	b.tried[what] = struct{}{}
	b.mu.Unlock()
	b.opts.History.Add(history.Event{Op: history.Refused, Error: what})
	if b.opts.OnRefusal != nil {
		b.opts.OnRefusal(what)
	}
	if !known {
		b.opts.Logger.LogAttrs(context.Background(), slog.LevelError, "not implemented by the embedded Service Bus", slog.String("what", what))
	}
}

// Refusals returns what clients asked for and the broker does not implement, in order. A test environment fails the test
// when there are any.
func (b *Broker) Refusals() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.refusals)
}

// sleep waits, and reports false when the broker was closed meanwhile.
func (b *Broker) sleep(d time.Duration) bool {
	if d <= 0 {
		return !b.isClosed()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-b.done:
		return false
	}
}
