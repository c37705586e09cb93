package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// healthOff is the health address of a worker that serves no health.
const healthOff = "off"

// newHealthcheck asks the worker of the same container how it is, so that an image without a shell can have a health check.
func newHealthcheck(sys system) *cobra.Command {
	var path string
	c := &cobra.Command{
		Use: "healthcheck", Short: "Ask the worker on this machine whether it is alive", Args: needArgs(),
		Long: `Ask the worker on this machine whether it is alive, for an image that has no shell.

It asks at the address in WORKER_HEALTH_ADDRESS, which must be the same for it and for the worker (127.0.0.1:8080 when it is
not set). Exit code 0 when the answer is 200 OK, 1 for another answer or none, 2 when the address or the path is wrong.`,
		RunE: func(c *cobra.Command, _ []string) error {
			values, _ := ownVariables(sys.environ)
			address, err := healthAddress(values["WORKER_HEALTH_ADDRESS"])
			if err != nil {
				return withCode(exitUsage, fmt.Errorf("WORKER_HEALTH_ADDRESS: %w", err))
			}
			path := "/" + strings.TrimPrefix(path, "/")
			if path != "/livez" && path != "/readyz" {
				return withCode(exitUsage, fmt.Errorf("--path %s: the worker answers at /livez and /readyz only", path))
			}
			return probe(c.Context(), "http://"+address+path)
		},
	}
	c.Flags().StringVar(&path, "path", "/livez", "what to ask: /livez, or /readyz")
	return c
}

// healthAddress is where the worker listens, as seen from this machine.
func healthAddress(address string) (string, error) {
	switch address {
	case "":
		return "127.0.0.1:8080", nil
	case healthOff:
		return "", errors.New("it is off: the worker serves no health, so there is nothing to ask")
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("%q is not an address such as 127.0.0.1:8080 or :8080", address)
	}
	if host == "" || net.ParseIP(host).IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// direct asks no proxy: HTTP_PROXY is for the way out, and the worker is on this machine under whichever address.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func probe(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	reply, err := direct.Do(req)
	if err != nil {
		return fmt.Errorf("no answer from %s. Is the worker up (run), and is WORKER_HEALTH_ADDRESS the same for both?", url)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, reply.Status)
	}
	return nil
}
