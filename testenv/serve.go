package testenv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// Addresses are the addresses to listen on, as host:port. An empty one, and port 0, stand for a free port on loopback.
type Addresses struct {
	// AMQP is Service Bus, plain AMQP 1.0 without TLS.
	AMQP string
	// Management is the health and management endpoint of Service Bus over HTTP.
	Management string
	// Cosmos is Cosmos DB over plain HTTP.
	Cosmos string
}

// doors are what an environment listens on.
type doors struct {
	mu         sync.Mutex
	served     Addresses        // guarded by mu; empty until Serve
	cosmos     *cosmosdb.Server // guarded by mu
	management *http.Server     // guarded by mu
	stop       func()           // guarded by mu
	running    sync.WaitGroup
	errs       chan error
}

// Serve listens on the addresses until the environment is closed or ctx is done, and returns at once with the addresses that
// it got. On an error nothing is left open. An environment can serve once.
func (e *Env) Serve(ctx context.Context, wanted Addresses) (Addresses, error) {
	d := e.doors
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stop != nil {
		return Addresses{}, errors.New("the environment is serving already")
	}
	listeners, err := listenAll([]door{
		{"Service Bus", wanted.AMQP}, {"Service Bus health and management", wanted.Management}, {"Cosmos DB", wanted.Cosmos},
	})
	if err != nil {
		return Addresses{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	d.stop, d.errs = cancel, make(chan error, 2)
	d.running.Go(func() {
		err := e.Broker.Serve(ctx, listeners[0])
		if errors.Is(err, servicebus.ErrClosed) { // closed before it began, so that it never took the listener
			err = listeners[0].Close()
		}
		d.errs <- err
	})
	d.management = &http.Server{Handler: e.Broker.Handler(), ReadHeaderTimeout: 10 * time.Second}
	d.running.Go(func() {
		if err := d.management.Serve(listeners[1]); !errors.Is(err, http.ErrServerClosed) {
			d.errs <- err
			return
		}
		d.errs <- nil
	})
	d.cosmos = e.Account.Serve(listeners[2])
	d.served = Addresses{AMQP: listeners[0].Addr().String(), Management: listeners[1].Addr().String(), Cosmos: listeners[2].Addr().String()}
	return d.served, nil
}

// door is one thing to listen on.
type door struct{ name, address string }

// listenAll listens on all doors or on none, and reports every door that cannot be had at once.
func listenAll(wanted []door) ([]net.Listener, error) {
	var listeners []net.Listener
	var errs []error
	for _, w := range wanted {
		l, err := net.Listen("tcp", cmp.Or(w.address, "127.0.0.1:0"))
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			errs = append(errs, &PortInUseError{Door: w.name, Address: w.address, Cause: err})
		case err != nil:
			errs = append(errs, fmt.Errorf("%s cannot listen on %s: %w", w.name, w.address, err))
		default:
			listeners = append(listeners, l)
		}
	}
	if len(errs) == 0 {
		return listeners, nil
	}
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	return nil, errors.Join(errs...)
}

// PortInUseError means that another program listens on an address already.
type PortInUseError struct {
	// Door says what was to listen there.
	Door    string
	Address string
	Cause   error
}

func (e *PortInUseError) Error() string {
	return fmt.Sprintf("%s cannot listen on %s: another program does already", e.Door, e.Address)
}
func (e *PortInUseError) Unwrap() error { return e.Cause }

// close stops listening.
func (d *doors) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stop == nil {
		return nil
	}
	d.stop()
	return errors.Join(d.management.Close(), d.cosmos.Close())
}

// wait returns when everything that serves has ended.
func (d *doors) wait() error {
	d.running.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for len(d.errs) > 0 {
		errs = append(errs, <-d.errs)
	}
	return errors.Join(errs...)
}
