package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/orderworker/orderworker/worker"
)

// healthIdle bounds how long an idle connection to the health endpoint is kept. Probes come every few seconds, each on a
// connection of its own or on one that they keep; anything else would hold a socket for ever.
const healthIdle = time.Minute

// flushTimeout bounds sending the last telemetry.
const flushTimeout = 3 * time.Second

func newRun(sys system) *cobra.Command {
	c := &cobra.Command{
		Use: "run", Short: "Receive, commit and settle until told to stop", Args: needArgs(),
		Long: `Receive, commit and settle until told to stop.

A first SIGTERM or Ctrl-C finishes what is in work and abandons the rest; a second ends at once. Nothing is lost either
way: what was not settled is delivered again.

` + secretSettings(settings()) + `

Exit codes: 0 when it was told to stop and did, 1 for a failure and for a second signal, 2 when a setting or the command is
wrong.`,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := resolve(sys, c.Flags())
			if err != nil {
				return err
			}
			if cfg.logFormat == "" && onTerminal(sys.stdout) {
				cfg.logFormat = formatText
			}
			return runWorker(c.Context(), cfg, sys)
		},
	}
	bind(c.Flags())
	return c
}

func runWorker(ctx context.Context, cfg config, sys system) error {
	easeCollector(sys.environ)
	ctx, abort, release := stopSignals(ctx)
	defer release()
	t, err := newTelemetry(ctx, cfg.program, sys.environ)
	if err != nil {
		return withCode(exitUsage, err)
	}
	log := t.newLogger(cfg, sys.stdout)
	reportTelemetryFaults(cfg.logger(sys.stdout))
	defer flush(t, log, abort)
	outcomes := newSummary(log, cfg)
	w, closeStore, err := cfg.newWorker(ctx, t, log, outcomes)
	if err != nil {
		return err
	}
	defer closeStore()
	stopHealth, err := serveHealth(cfg.healthAddress, w, log)
	if err != nil {
		return err
	}
	defer stopHealth()
	defer outcomes.start()()
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	select {
	case err := <-done:
		return err
	case <-abort:
		return errors.New("ended at once by a second signal; what was in work is delivered again")
	}
}

// collectorPercent lets the heap grow to five times what is alive between collections. That is a few MiB, so the collector
// would run for every few messages: in the throughput benchmark it takes a fifth off the processor time of a message.
const collectorPercent = 400

// easeCollector sets the pace of the garbage collector unless somebody has: GOGC wins, and GOMEMLIMIT holds all the same.
func easeCollector(environ []string) {
	if !slices.ContainsFunc(environ, func(pair string) bool { return strings.HasPrefix(pair, "GOGC=") }) {
		debug.SetGCPercent(collectorPercent)
	}
}

// stopSignals returns a context that ends with the first signal to stop, and a channel that closes with the second.
func stopSignals(ctx context.Context) (stopping context.Context, abort <-chan struct{}, release func()) {
	stopping, stop := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	twice, quit := make(chan struct{}), make(chan struct{})
	go func() {
		for _, react := range []func(){stop, func() { close(twice) }} {
			select {
			case <-signals:
				react()
			case <-quit:
				return
			}
		}
	}()
	return stopping, twice, func() { signal.Stop(signals); close(quit); stop() }
}

// newWorker builds the worker and the store that it uses.
func (c config) newWorker(ctx context.Context, t *telemetry, log *slog.Logger, outcomes *summary) (*worker.Worker, func(), error) {
	workerConfig, err := c.workerConfig(t, log)
	if err != nil {
		return nil, nil, withCode(exitUsage, err)
	}
	workerConfig.Observer = outcomes
	if reader := c.commitLogger(log); reader != nil {
		workerConfig.Observer = worker.ObserverFunc(func(e worker.Event) { outcomes.Observe(e); reader.Observe(e) })
	}
	k, err := newConnector(c)
	if err != nil {
		return nil, nil, withCode(exitUsage, err)
	}
	store, err := k.openStore(ctx, t, log)
	if err != nil {
		return nil, nil, err
	}
	w, err := worker.New(workerConfig, k.broker(), store, c.program.Handler)
	if err != nil {
		store.Close()
		return nil, nil, withCode(exitUsage, err)
	}
	return w, func() { store.Close() }, nil
}

// healthServer bounds everything that a peer could hold it with.
func healthServer(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: healthIdle}
}

// serveHealth listens before the work begins, so that an address in use is an error at the start.
func serveHealth(address string, w *worker.Worker, log *slog.Logger) (func(), error) {
	if address == "off" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("health cannot listen on %s: %w. Set WORKER_HEALTH_ADDRESS to a free address, or to off", address, err)
	}
	log.LogAttrs(context.Background(), slog.LevelInfo, "health is served", slog.String("address", listener.Addr().String()))
	server := healthServer(w.HealthHandler())
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.LogAttrs(context.Background(), slog.LevelError, "health server ended", slog.String("error", err.Error()))
		}
	}()
	return func() { server.Close() }, nil
}

// flush sends the last telemetry, unless a second signal does not want to wait for a collector that is silent.
func flush(t *telemetry, log *slog.Logger, abort <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-abort:
			cancel()
		case <-ctx.Done():
		}
	})
	defer watch.Wait()
	defer cancel()
	if err := t.shutdown(ctx); err != nil {
		log.LogAttrs(ctx, slog.LevelWarn, "telemetry was not sent completely", slog.String("error", err.Error()))
	}
}
