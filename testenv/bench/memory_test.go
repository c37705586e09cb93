package bench_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/internal/amqp"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
)

// roleVariable makes the test program an environment for another test program, whose memory is to be looked at alone.
const roleVariable = "BENCH_ENVIRONMENT"

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) == "" {
		os.Exit(m.Run())
	}
	if err := environment(os.Stdout, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const (
	memoryMessages = 200_000
	// memoryKeys is the number of different orders among them: the others are repeats, so that the store of the
	// environment does not outgrow the machine.
	memoryKeys = 40_000
	// memoryBacklog is the number of messages that wait at a time.
	memoryBacklog = 2_000
	// maxLive is the live memory that the worker may have at a concurrency of 64, its SDK clients included.
	maxLive = 64 << 20
)

// place is what an environment tells about itself.
type place struct{ ConnectionString, Endpoint, Key string }

// environment serves on free ports, tells where, and feeds the queue until all messages are sent and gone. Each time a
// quarter of them has been worked off it prints a line.
func environment(out io.Writer, in io.Reader) error {
	env, err := testenv.New(testenv.Options{History: history.NewBounded(100), Adjust: func(q *servicebus.Queue) { q.RequiresDuplicateDetection = false }})
	if err != nil {
		return err
	}
	at, err := env.Serve(context.Background(), testenv.Addresses{})
	if err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(place{env.Broker.ConnectionString(at.AMQP), "http://" + at.Cosmos, env.Account.Key()}); err != nil {
		return err
	}
	// The end of our input is the end of the other program.
	gone := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, in); close(gone) }()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	note := strings.Repeat("x", 900)
	for sent, told := 0, 0; told < 4; {
		c, err := env.Broker.Counts("orders")
		if err != nil {
			return err
		}
		waiting := c.Active + c.Locked
		for ; sent < memoryMessages && waiting < memoryBacklog; sent, waiting = sent+1, waiting+1 {
			body := fmt.Sprintf(`{"orderId":"%d","note":%q}`, sent%memoryKeys, note)
			if _, err := env.Broker.Send("orders", amqp.Message{Properties: &amqp.Properties{MessageID: fmt.Sprint(sent % memoryKeys)}, BodyKind: amqp.BodyData, Data: [][]byte{[]byte(body)}}); err != nil {
				return err
			}
		}
		for ; told < 4 && sent-waiting >= (told+1)*memoryMessages/4; told++ {
			fmt.Fprintln(out, sent-waiting)
		}
		select {
		case <-tick.C:
		case <-gone:
			return nil
		}
	}
	<-gone
	return nil
}

// BenchmarkMemory runs the worker alone in this process, on an environment in another, and looks at its live memory while
// 200,000 messages pass.
func BenchmarkMemory(b *testing.B) {
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(b, err)
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	defer func() {
		_ = in.Close()
		require.NoError(b, cmd.Wait())
	}()
	lines := bufio.NewScanner(out)
	require.True(b, lines.Scan())
	var at place
	require.NoError(b, json.Unmarshal(lines.Bytes(), &at))
	before := live()
	stop := startAt(b, at)
	var quarters []uint64
	for lines.Scan() {
		quarters = append(quarters, live()-before)
		b.Logf("after %s messages: %.1f MiB live", lines.Text(), mib(quarters[len(quarters)-1]))
		if len(quarters) == 4 {
			break
		}
	}
	stop()
	require.Len(b, quarters, 4)
	for _, q := range quarters {
		require.Less(b, q, uint64(maxLive))
	}
	require.Less(b, mib(quarters[3])-mib(quarters[0]), 4.0, "the live memory must not grow with the number of messages")
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(mib(quarters[0]), "MiB-at-50k")
	b.ReportMetric(mib(quarters[3]), "MiB-at-200k")
}

// live returns the bytes that are still reachable.
func live() uint64 {
	runtime.GC()
	runtime.GC() // what the first found dead may have held more
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func mib(n uint64) float64 { return float64(n) / (1 << 20) }

// startAt starts the worker as the program does, over sockets.
func startAt(b *testing.B, at place) (stop func()) {
	b.Helper()
	store, err := cosmosstore.Open(b.Context(), cosmosstore.Options{Endpoint: at.Endpoint, Key: cosmosstore.Key(at.Key), Database: "orders", Container: "orders"})
	require.NoError(b, err)
	client := func() (*azservicebus.Client, error) {
		return azservicebus.NewClientFromConnectionString(at.ConnectionString, nil)
	}
	w, err := worker.New(worker.Config{Concurrency: slots}, worker.NewBroker(client, "orders"), store, worker.HandlerFunc(orders))
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return func() {
		cancel()
		require.NoError(b, <-done)
		require.NoError(b, store.Close())
	}
}
