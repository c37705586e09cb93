package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

// TestTheContainerWorksWithTheEnvironmentOfTheTemplate starts the program as the image does, with the variables that the
// template gives its container and nothing else. Only the names of hosts, and the identity that a machine without Azure
// cannot have, are replaced by those of the embedded environment.
func TestTheContainerWorksWithTheEnvironmentOfTheTemplate(t *testing.T) {
	t.Parallel()
	env, err := testenv.New(testenv.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, env.Close()) })
	_, err = env.Serve(t.Context(), testenv.Addresses{})
	require.NoError(t, err)

	p := startContainer(t, buildAsTheImageDoes(t), environment(t, env))
	p.waitFor("worker is ready")
	require.Equal(t, http.StatusOK, p.get("/readyz"))
	require.Equal(t, http.StatusOK, p.get("/livez"))

	sequence, err := env.Broker.Send(env.Queue.Name, amqp.Message{
		Properties: &amqp.Properties{MessageID: "1042"}, BodyKind: amqp.BodyData, Data: [][]byte{[]byte(`{"orderId":"1042"}`)},
	})
	require.NoError(t, err)
	p.waitUntil(func() bool {
		return env.History.Count(func(e history.Event) bool {
			return e.Op == history.Complete && e.Sequence == sequence && e.Effect
		}) == 1
	})
	document, found := env.Account.Document(env.Database, env.Container, "1042")
	require.True(t, found)
	require.Contains(t, document.Body, `"orderId":"1042"`)

	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	p.waitFor("worker stopped")
	require.NoError(t, p.cmd.Wait(), "a stop that was asked for is exit code 0")
}

// environment is that of the template with the hosts replaced.
func environment(t *testing.T, env *testenv.Env) []string {
	t.Helper()
	variables := templateEnvironment(t)
	require.Equal(t, ":8080", variables["WORKER_HEALTH_ADDRESS"])
	variables["WORKER_HEALTH_ADDRESS"] = "127.0.0.1:0"
	delete(variables, "SERVICEBUS_NAMESPACE_FQDN")
	for _, s := range env.Settings() {
		variables[s.Name] = s.Value
	}
	var environ []string
	for name, value := range variables {
		environ = append(environ, name+"="+value)
	}
	return environ
}

// templateEnvironment returns the variables that worker.bicep gives to its container by default, as its committed snapshot
// says. Names of hosts and ids are those of the snapshot's parameters.
func templateEnvironment(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("../../infra/snapshots/worker.snapshot.json")
	require.NoError(t, err)
	var content struct {
		Resources []struct {
			Type       string
			Properties struct {
				Template struct {
					Containers []struct {
						Env []struct{ Name, Value string }
					}
				}
			}
		} `json:"predictedResources"`
	}
	require.NoError(t, json.Unmarshal(raw, &content))
	variables := map[string]string{}
	for _, r := range content.Resources {
		if r.Type != "Microsoft.App/containerApps" {
			continue
		}
		require.Len(t, r.Properties.Template.Containers, 1)
		for _, v := range r.Properties.Template.Containers[0].Env {
			variables[v.Name] = v.Value
		}
	}
	require.Equal(t, "ManagedIdentityCredential", variables["AZURE_TOKEN_CREDENTIALS"])
	return variables
}

// buildAsTheImageDoes builds the program with the flags of the Dockerfile.
func buildAsTheImageDoes(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "orderworker")
	c := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version=rehearsal", "-o", program, "../../cmd/orderworker")
	c.Env = append(c.Environ(), "CGO_ENABLED=0")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// container is the program as a process, with the lines that it logs.
type container struct {
	t       *testing.T
	cmd     *exec.Cmd
	lines   chan map[string]any
	address string
}

func startContainer(t *testing.T, program string, environ []string) *container {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	c := &container{t: t, cmd: exec.CommandContext(ctx, program, "run"), lines: make(chan map[string]any, 1000)}
	c.cmd.Env = environ
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	c.cmd.Stderr = testWriter{t}
	require.NoError(t, c.cmd.Start())
	go func() {
		defer close(c.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			line := map[string]any{}
			if json.Unmarshal(s.Bytes(), &line) == nil {
				c.lines <- line
			}
		}
	}()
	c.address, _ = c.waitFor("health is served")["address"].(string)
	return c
}

// waitFor reads lines until one has this message, and fails when the program ends before.
func (c *container) waitFor(message string) map[string]any {
	c.t.Helper()
	for line := range c.lines {
		if line["msg"] == message {
			return line
		}
	}
	require.Fail(c.t, "the program ended", "waited for %q", message)
	return nil
}

// waitUntil asks for a condition with every answer of the health endpoint, which paces it, until it holds.
func (c *container) waitUntil(holds func() bool) {
	c.t.Helper()
	for !holds() {
		require.Equal(c.t, http.StatusOK, c.get("/livez"))
	}
}

func (c *container) get(path string) int {
	c.t.Helper()
	resp, err := http.Get("http://" + c.address + path)
	require.NoError(c.t, err)
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(c.t, err)
	return resp.StatusCode
}

// testWriter shows what the program says on standard error.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}
