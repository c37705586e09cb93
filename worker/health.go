package worker

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// The parts of a worker that can be not ready.
const (
	partStore        = "store"         // the store has not said that it can be used, or cannot be used
	partBroker       = "broker"        // the broker has not been reached, or cannot be used
	partNotReceiving = "not_receiving" // messages wait in the queue and none arrives
	partHandler      = "handler"       // what the handler calls seems to be away
	partHung         = "hung"          // no slot is left, for calls that do not return
	partStopping     = "stopping"      // the worker is draining
)

// Health is what a worker says of itself.
type Health struct {
	// Ready tells that store and broker can be used and that the worker is not about to stop.
	Ready bool `json:"ready"`
	// Problems are the parts that are not ready, each with what is wrong and what to do.
	Problems []Problem `json:"problems,omitempty"`
	// Breaker is the state of the breaker before the store: starting, closed, open, trial or ramp.
	Breaker string `json:"breaker"`
	// InFlight is the number of messages in process, and Held how many of them wait for the store.
	InFlight int `json:"inFlight"`
	Held     int `json:"held"`
	// LastMessage is when a message was last received; zero when none was.
	LastMessage time.Time `json:"lastMessage,omitzero"`
}

// A Problem is one part that is not ready.
type Problem struct {
	Part   string    `json:"part"`
	Detail string    `json:"detail"`
	Since  time.Time `json:"since"`
}

// conditions holds what is not ready. It is safe for concurrent use.
type conditions struct {
	observe func(Event)

	mu       sync.Mutex
	problems map[string]Problem
	told     map[string]bool // parts whose incident has had its event
}

// newConditions starts with what has not answered yet. That is no incident until it fails.
func newConditions(observe func(Event)) *conditions {
	now := time.Now()
	return &conditions{observe: observe, told: map[string]bool{}, problems: map[string]Problem{
		partStore:  {Part: partStore, Detail: "the store has not answered yet", Since: now},
		partBroker: {Part: partBroker, Detail: "the broker has not answered yet", Since: now},
	}}
}

// set tells that a part is not ready. There is one event for each incident, the first; what follows replaces only what
// health shows.
func (c *conditions) set(part, detail string) {
	c.mu.Lock()
	p := Problem{Part: part, Detail: detail, Since: time.Now()}
	if old, known := c.problems[part]; known {
		p.Since = old.Since
	}
	c.problems[part] = p
	fresh := !c.told[part]
	c.told[part] = true
	c.mu.Unlock()
	if fresh && part != partStopping {
		c.observe(Event{Kind: EventNotReady, Reason: part, Detail: detail})
	}
}

// clear tells that a part is ready. Each incident has an event of its own at its end, which says what is still not ready:
// parts fail together and recover one after the other. A start has one event, when all parts are ready.
func (c *conditions) clear(part string) {
	c.mu.Lock()
	p, known := c.problems[part]
	told := c.told[part]
	delete(c.problems, part)
	delete(c.told, part)
	rest := slices.Sorted(maps.Keys(c.problems))
	c.mu.Unlock()
	if !known || !told && len(rest) > 0 {
		return
	}
	e := Event{Kind: EventReady, Reason: part, Duration: time.Since(p.Since)}
	if len(rest) > 0 {
		e.Detail = "still not ready: " + strings.Join(rest, ", ")
	}
	c.observe(e)
}

// list returns the problems in the order of their parts.
func (c *conditions) list() []Problem {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]Problem, 0, len(c.problems))
	for _, p := range c.problems {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b Problem) int { return strings.Compare(a.Part, b.Part) })
	return list
}

// Health returns what the worker says of itself now. It is safe for concurrent use, also before and after Run.
func (w *Worker) Health() Health {
	problems := w.conditions.list()
	state, _ := w.breaker.Watch()
	return Health{
		Ready:       len(problems) == 0,
		Problems:    problems,
		Breaker:     state.String(),
		InFlight:    w.slots.inFlight(),
		Held:        w.breaker.Waiting(),
		LastMessage: w.lastMessage(),
	}
}

// HealthHandler serves /livez and /readyz. The first says 200 as long as the process serves requests at all: restarting
// the process repairs neither a store nor a broker. The second says 503 when [Health] is not ready. Both answer with
// Health as JSON.
func (w *Worker) HealthHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(rw http.ResponseWriter, _ *http.Request) { writeHealth(rw, http.StatusOK, w.Health()) })
	mux.HandleFunc("GET /readyz", func(rw http.ResponseWriter, _ *http.Request) {
		h := w.Health()
		status := http.StatusOK
		if !h.Ready {
			status = http.StatusServiceUnavailable
		}
		writeHealth(rw, status, h)
	})
	return mux
}

func writeHealth(rw http.ResponseWriter, status int, h Health) {
	rw.Header().Set("Content-Type", "application/json")
	rw.Header().Set("Cache-Control", "no-store")
	rw.WriteHeader(status)
	_ = json.NewEncoder(rw).Encode(h) // the prober has gone away, and there is nobody to tell
}
