package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/internal/deadletter"
	"github.com/orderworker/orderworker/internal/page"
)

// identityHeader is where the built-in authentication of Container Apps and App Service says who is asking.
const identityHeader = "X-MS-CLIENT-PRINCIPAL-NAME"

// pageSettings are the flags of serve.
type pageSettings struct {
	address, actor string
	hosts          []string
	write, proxy   bool
}

func newDeadletterServe(sys system) *cobra.Command {
	var p pageSettings
	c := &cobra.Command{
		Use: "serve", Short: "Serve a web page for looking at dead letters and dealing with them", Args: needArgs(),
		Long: `Serve a web page for looking at dead letters and dealing with them.

It listens on this machine only and lets people look; --write lets them act. Every user of a machine can reach its ports:
without --write all of them can look, and with it a browser is let in only by the address that is printed, which works once.
Each use prints the address for the next browser. To serve others, put it behind a proxy that
signs people in, such as the built-in authentication of Azure Container Apps, and start it with --behind-proxy and the
--host names it is reached by: then every request must carry ` + identityHeader + `, which is recorded as the actor.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := p.check(); err != nil {
				return withCode(exitUsage, err)
			}
			return withReview(c, sys, func(ctx context.Context, r *review) error { return r.serve(ctx, sys, p) })
		},
	}
	c.Flags().StringVar(&p.address, "address", "127.0.0.1:8090", "address to listen on")
	c.Flags().BoolVar(&p.write, "write", false, "let people act, not only look")
	c.Flags().BoolVar(&p.proxy, "behind-proxy", false, "a proxy in front signs people in and sets "+identityHeader+"; requests without it are refused")
	c.Flags().StringSliceVar(&p.hosts, "host", nil, "a host name, with its port unless that is the usual one, under which the page is reached besides this machine's own")
	c.Flags().StringVar(&p.actor, "actor", "", "who acts; by default the user of this machine. Not with --behind-proxy")
	return c
}

func (p pageSettings) check() error {
	host, _, err := net.SplitHostPort(p.address)
	switch {
	case err != nil:
		return fmt.Errorf("--address %q is not an address such as 127.0.0.1:8090", p.address)
	case !cosmosstore.Loopback(host) && !p.proxy:
		return fmt.Errorf("--address %s can be reached from other machines, and nobody would sign people in. Listen on 127.0.0.1, or put a proxy in front and add --behind-proxy", p.address)
	case p.proxy && len(p.hosts) == 0:
		return errors.New("--behind-proxy needs --host: the name under which people reach the page")
	case p.proxy && p.actor != "":
		return errors.New("--actor and --behind-proxy: the proxy says who acts")
	}
	return nil
}

// options is what the page is made of, once the address is known.
func (p pageSettings) options(r *review, sys system, address string) page.Options {
	o := page.Options{Reviewer: r.Reviewer, Ledger: r.ledger, Explain: r.explain, Write: p.write, Hosts: p.hosts, Pace: deadletter.Pace{Concurrency: r.config.worker.Concurrency}}
	if p.proxy {
		o.IdentityHeader = identityHeader
		return o
	}
	o.Actor = actorOf(sys, p.actor)
	_, port, _ := net.SplitHostPort(address)
	for _, name := range []string{"127.0.0.1", "localhost", "[::1]"} {
		o.Hosts = append(o.Hosts, name+":"+port)
	}
	return o
}

func (r *review) serve(ctx context.Context, sys system, p pageSettings) error {
	ctx, release := interruptible(ctx)
	defer release()
	l, err := net.Listen("tcp", p.address)
	if err != nil {
		return fmt.Errorf("the page cannot listen on %s: %w. Give another --address", p.address, err)
	}
	o := p.options(r, sys, l.Addr().String())
	fmt.Fprintf(sys.stdout, "The dead letters of %s are at http://%s/ (%s). Ctrl-C ends it.\n", r.config.queue, l.Addr(), map[bool]string{true: "people may act", false: "looking only; --write lets people act"}[p.write])
	o.Announce = func(path string) {
		fmt.Fprintf(sys.stdout, "To let one browser in, open http://%s%s\n", l.Addr(), path)
	}
	s, err := page.New(o)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		s.Close()
		return err
	case <-ctx.Done():
	}
	// What is under way is finished, and its locks are released.
	s.Close()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = server.Shutdown(stop)
	return nil
}
