package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/shop"
	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/servicebus"
	"github.com/orderworker/orderworker/worker"
)

var update = flag.Bool("update", false, "write the log lines of the incidents instead of comparing with them")

// incidentRow is a row of one of the two log tables of Container Apps. What the platform would write when it ends a replica
// is written by the test; every other line is the worker's own.
type incidentRow struct {
	Table         string `json:",omitempty"` // ContainerAppConsoleLogs unless it says otherwise
	TimeGenerated time.Time
	Replica       string
	Reason        string `json:",omitempty"`
	Log           string
}

// platform runs replicas of the worker as Container Apps does, and keeps what they log.
type platform struct {
	*env

	mu   sync.Mutex
	rows []incidentRow
	dead map[string]bool
}

func (p *platform) keep(r incidentRow) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Table == "" && p.dead[r.Replica] {
		return
	}
	r.TimeGenerated = time.Now().UTC()
	p.rows = append(p.rows, r)
}

// lines is where one replica writes its log.
type lines struct {
	platform *platform
	replica  string
}

func (l lines) Write(line []byte) (int, error) {
	l.platform.keep(incidentRow{Replica: l.replica, Log: string(bytes.TrimSpace(line))})
	return len(line), nil
}

// replica starts a worker under a name.
func (p *platform) replica(name string, h worker.Handler) *runner {
	p.mu.Lock()
	delete(p.dead, name)
	p.mu.Unlock()
	return p.startWith(h, nil, func(c *worker.Config) {
		c.Logger = slog.New(slog.NewJSONHandler(lines{p, name}, nil))
		c.Outbox = worker.OutboxConfig{Destinations: []string{"stock"}, Sender: worker.NewSender((&doorway{env: p.Env}).serviceBus)}
	})
}

// kill ends a replica as SIGKILL does: it writes nothing any more, and the platform writes that it is gone.
func (p *platform) kill(name string, r *runner) {
	p.mu.Lock()
	p.dead[name] = true
	p.mu.Unlock()
	r.die()
	p.keep(incidentRow{Table: "ContainerAppSystemLogs", Replica: name, Reason: "ContainerTerminated",
		Log: "Container 'worker' was terminated with exit code '137' and reason 'ProcessExited'"})
}

func (p *platform) breakStore() {
	p.Faults.Add(fault.On("cosmosdb.*").Always().Before(fault.Reply(503, 0)))
}

func (p *platform) breakBroker() {
	p.Faults.Add(fault.On(history.Connect).Always().Before(fault.DropReply()))
	p.Broker.DropConnections()
}

// orders sends some orders whose ids begin alike, and returns them.
func (p *platform) orders(prefix string, n int, body string) {
	for i := range n {
		p.send(order(fmt.Sprint(prefix, i), body))
	}
}

// incidents are what the alerts of infra/ are tried on. Each begins with a replica a that has been ready for a minute.
var incidents = map[string]func(p *platform, a *runner){
	"nothing but new orders and duplicates": func(p *platform, _ *runner) {
		for range 3 {
			p.orders("o-", 20, `{"amount":40}`)
			time.Sleep(10 * time.Minute)
		}
	},
	"store away for two minutes": func(p *platform, _ *runner) {
		p.breakStore()
		p.orders("o-", 20, `{"amount":40}`)
		time.Sleep(2 * time.Minute)
		p.Faults.Clear()
	},
	"broker away for two minutes": func(p *platform, _ *runner) {
		p.breakBroker()
		time.Sleep(2 * time.Minute)
		p.Faults.Clear()
	},
	"store and broker away together for 110 seconds": func(p *platform, _ *runner) {
		p.breakStore()
		p.orders("o-", 20, `{"amount":40}`)
		time.Sleep(5 * time.Second)
		p.breakBroker()
		time.Sleep(110 * time.Second)
		p.Faults.Clear()
	},
	"store and broker away together and the store for good": func(p *platform, _ *runner) {
		p.breakStore()
		p.orders("o-", 20, `{"amount":40}`)
		time.Sleep(5 * time.Second)
		p.breakBroker()
		time.Sleep(2 * time.Minute)
		p.Faults.Clear()
		p.breakStore()
		time.Sleep(40 * time.Minute)
	},
	"killed while the store is away and started again when it is back": func(p *platform, a *runner) {
		p.breakStore()
		p.orders("o-", 20, `{"amount":40}`)
		time.Sleep(2 * time.Minute)
		p.kill("a", a)
		p.Faults.Clear()
		p.replica("a", worker.HandlerFunc(shop.Order))
	},
	"two replicas leave while the broker is away": func(p *platform, a *runner) {
		b := p.replica("b", worker.HandlerFunc(shop.Order))
		time.Sleep(time.Minute)
		p.breakBroker()
		time.Sleep(2 * time.Minute)
		a.end()
		p.kill("b", b)
		p.Faults.Clear()
	},
	"sixty messages with other content under stored ids": func(p *platform, _ *runner) {
		p.orders("o-", 60, `{"amount":40}`)
		time.Sleep(time.Minute)
		p.orders("o-", 60, `{"amount":41}`)
	},
	"one message with other content": func(p *platform, _ *runner) {
		p.orders("o-", 1, `{"amount":40}`)
		time.Sleep(time.Minute)
		p.orders("o-", 1, `{"amount":41}`)
	},
	"a destination is away for an hour": func(p *platform, a *runner) {
		a.end()
		b := p.replica("b", worker.HandlerFunc(reserving))
		require.NoError(p.t, p.Broker.SetStatus("stock", servicebus.Disabled))
		p.orders("o-", 8, `{"amount":40}`)
		time.Sleep(time.Hour)
		require.NoError(p.t, p.Broker.SetStatus("stock", servicebus.Active))
		time.Sleep(40 * time.Minute)
		require.Len(p.t, p.sentIDs(), 16)
		b.end()
	},
	"a handler that fails for a while": func(p *platform, a *runner) {
		a.end()
		repaired := time.Now().Add(4 * time.Minute)
		p.replica("b", worker.HandlerFunc(func(ctx context.Context, m worker.Message) (worker.Effects, error) {
			if time.Now().Before(repaired) {
				return worker.Effects{}, errors.New("the price list cannot be read")
			}
			return shop.Order(ctx, m)
		}))
		p.orders("o-", 8, `{"amount":40}`)
	},
	"no right on the store from the first start on": func(p *platform, a *runner) {
		a.end()
		p.Account.DenyData(0)
		p.replica("b", worker.HandlerFunc(shop.Order))
		p.orders("o-", 3, `{"amount":40}`)
		time.Sleep(40 * time.Minute)
	},
}

// TestIncidentsLogWhatTheAlertsAreTriedOn records the log of each incident for the test of the alert queries in infra/.
// Which lines appear in which incident must not change unnoticed; their order and their texts may. After a change that is
// wanted: go test ./testenv/e2e -run Incidents -update, then go test ./infra.
func TestIncidentsLogWhatTheAlertsAreTriedOn(t *testing.T) {
	for name, happens := range incidents {
		t.Run(name, func(t *testing.T) {
			golden := "../../infra/testdata/incidents/" + strings.ReplaceAll(name, " ", "-") + ".jsonl"
			var rows []incidentRow
			options := testenv.Options{}
			if strings.HasPrefix(name, "a destination") {
				options.Config, options.Queue = strings.NewReader(twoQueues), "orders"
			}
			inBubble(t, options, func(w *env) {
				w.skipCheck = true // the promises are tested elsewhere, with what is left on the queue
				p := &platform{env: w, dead: map[string]bool{}}
				a := p.replica("a", worker.HandlerFunc(shop.Order))
				time.Sleep(time.Minute)
				happens(p, a)
				time.Sleep(10 * time.Minute)
				p.mu.Lock()
				defer p.mu.Unlock()
				rows = p.rows
			})
			if *update {
				writeRows(t, golden, rows)
			}
			require.Equal(t, kindsOf(readRows(t, golden)), kindsOf(rows))
			require.Equal(t, lastOf(readRows(t, golden)), lastOf(rows))
		})
	}
}

// kindsOf returns what each replica wrote of what the alerts ask for, without order and texts. How often a message was
// abandoned, and how a connection was found to be lost, depends on the order of events at one instant.
func kindsOf(rows []incidentRow) []string {
	asked := []string{"ready", "not_ready", "worker_started", "worker_stopped", "breaker_opened", "content_conflict", "message_abandoned"}
	var kinds []string
	for _, r := range rows {
		var line struct{ Level, Event, Reason string }
		if json.Unmarshal([]byte(r.Log), &line) != nil {
			line.Event = r.Reason
		}
		kind := fmt.Sprint(r.Replica, " ", line.Level, " ", line.Event, " ", line.Reason)
		if r.Table != "" || slices.Contains(asked, line.Event) {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// lastOf returns the last that each replica wrote of each part: whether it is ready.
func lastOf(rows []incidentRow) map[string]string {
	last := map[string]string{}
	for _, r := range rows {
		var line struct{ Event, Reason string }
		if json.Unmarshal([]byte(r.Log), &line) == nil && strings.HasSuffix(line.Event, "ready") {
			last[r.Replica+" "+line.Reason] = line.Event
		}
	}
	return last
}

func writeRows(t *testing.T, path string, rows []incidentRow) {
	t.Helper()
	var text bytes.Buffer
	for _, r := range rows {
		require.NoError(t, json.NewEncoder(&text).Encode(r))
	}
	require.NoError(t, os.MkdirAll("../../infra/testdata/incidents", 0o755))
	require.NoError(t, os.WriteFile(path, text.Bytes(), 0o644))
}

func readRows(t *testing.T, path string) []incidentRow {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	var rows []incidentRow
	for line := range bytes.Lines(raw) {
		var r incidentRow
		require.NoError(t, json.Unmarshal(line, &r))
		rows = append(rows, r)
	}
	return rows
}
