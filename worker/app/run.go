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
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/orderworker/orderworker/worker"
)

// flushTimeout bounds sending the last telemetry.
const flushTimeout = 3 * time.Second

func newRun(sys system) *cobra.Command {
	table := new(config).settings()
	c := &cobra.Command{
		Use: "run", Short: "Receive, commit and settle until told to stop", Args: needArgs(),
		Long: `Receive, commit and settle until told to stop.

A first SIGTERM or Ctrl-C finishes what is in work and abandons the rest; a second ends the process at once. Nothing is lost
either way: what was not settled is delivered again.

` + secretSettings(table) + `

Exit codes: 0 when it was told to stop and did, 1 for a failure, 2 when a setting or the command is wrong.`,
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
	bind(c.Flags(), table)
	return c
}

func runWorker(ctx context.Context, cfg config, sys system) error {
	easeCollector(sys.environ)
	ctx, release := interruptible(ctx)
	defer release()
	t, err := newTelemetry(ctx, cfg.program, sys.environ)
	if err != nil {
		return withCode(exitUsage, err)
	}
	log := t.newLogger(cfg, sys.stdout)
	reportTelemetryFaults(cfg.logger(sys.stdout))
	defer flush(t, log)
	k, err := newConnector(cfg)
	if err != nil {
		return withCode(exitUsage, err)
	}
	store, err := k.openStore(ctx, t, log)
	if err != nil {
		return err
	}
	defer store.Close()
	outcomes, wc := newSummary(log, cfg), cfg.workerConfig(t, log)
	wc.Observer, wc.Outbox = outcomes, k.outbox(wc.Outbox)
	w, err := worker.New(wc, k.broker(), store, cfg.program.Handler)
	if err != nil {
		return withCode(exitUsage, err)
	}
	stopHealth, err := serveHealth(cfg.healthAddress, w, log)
	if err != nil {
		return err
	}
	defer stopHealth()
	defer outcomes.start()()
	return w.Run(ctx)
}

// interruptible ends a context with a first Ctrl-C or SIGTERM, so that what is begun can be finished. A second one ends the
// process.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
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

// healthServer bounds everything that a peer could hold it with.
func healthServer(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute}
}

// serveHealth listens before the work begins, so that an address in use is an error at the start.
func serveHealth(address string, w *worker.Worker, log *slog.Logger) (func(), error) {
	if address == healthOff {
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

// flush sends the last telemetry. A collector that is silent must not hold up the end for long.
func flush(t *telemetry, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := t.shutdown(ctx); err != nil {
		log.LogAttrs(ctx, slog.LevelWarn, "telemetry was not sent completely", slog.String("error", err.Error()))
	}
}
