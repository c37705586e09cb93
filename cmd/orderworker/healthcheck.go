package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// newHealthcheck asks the worker of the same container how it is, so that an image without a shell can have a health check.
func newHealthcheck(sys system) *cobra.Command {
	var path string
	c := &cobra.Command{
		Use: "healthcheck", Short: "Ask the worker on this machine whether it is alive", Args: needArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			address, err := healthAddress(sys.environ)
			if err != nil {
				return withCode(exitUsage, err)
			}
			return probe(c.Context(), "http://"+address+path)
		},
	}
	c.Flags().StringVar(&path, "path", "/livez", "what to ask: /livez or /readyz")
	return c
}

// healthAddress is where the worker listens, as seen from this machine.
func healthAddress(environ []string) (string, error) {
	address := "127.0.0.1:8080"
	values, _ := ownVariables(environ)
	if v := values["WORKER_HEALTH_ADDRESS"]; v != "" {
		address = v
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("WORKER_HEALTH_ADDRESS is %q: there is nothing to ask", address)
	}
	if host == "" || host == "0.0.0.0" || host == "::" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

func probe(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("no answer from %s. Is orderworker run up, and is WORKER_HEALTH_ADDRESS the same for both?", url)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, reply.Status)
	}
	return nil
}
