package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/spf13/cobra"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/internal/brokerfault"
)

// peekTimeout bounds one look into the queue, connecting included.
const peekTimeout = 20 * time.Second

func newCheck(sys system) *cobra.Command {
	var peek int
	var output string
	table := new(config).settings()
	c := &cobra.Command{
		Use: "check", Short: "Look whether the worker could work, change nothing, and say how to fix what is wrong", Args: needArgs(),
		Long: `Look whether the worker could work, change nothing, and say how to fix what is wrong.

Reads the container and peeks into the queue with the rights of the worker itself. With --peek N it also shows what the
worker would decide for the next N messages, without touching them.

` + secretSettings(table) + `

Exit codes: 0 when the worker could work, 1 when the check itself failed, 2 when a setting or the command is wrong, 3 when a
fault was found.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			if peek < 0 {
				return withCode(exitUsage, fmt.Errorf("--peek %d: give the number of messages to look at", peek))
			}
			cfg, err := resolve(sys, c.Flags())
			if err != nil {
				return err
			}
			report, err := check(c.Context(), cfg, peek)
			if err != nil {
				return err
			}
			if err := report.write(sys.stdout, output); err != nil {
				return err
			}
			if n := report.faults(); n > 0 {
				return withCode(exitDifferent, fmt.Errorf("%d fault(s) found", n))
			}
			return nil
		},
	}
	bind(c.Flags(), table)
	c.Flags().IntVar(&peek, "peek", 0, "show what the worker would decide for the next N messages")
	c.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return c
}

// checkReport is what check found.
type checkReport struct {
	Checked  []string      `json:"checked"`
	Findings []finding     `json:"findings"`
	Previews []previewLine `json:"previews"`
	// Notes are worth knowing and no fault.
	Notes []string `json:"notes"`
}

// finding is one thing to fix, or to know.
type finding struct {
	Severity string `json:"severity"`
	About    string `json:"about"`
	Text     string `json:"text"`
	Fix      string `json:"fix"`
}

const (
	severityFault   = "fault"
	severityWarning = "warning"
)

func (r *checkReport) faults() int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == severityFault {
			n++
		}
	}
	return n
}

// check gathers findings. Its own error is only for what keeps it from looking at all.
func check(ctx context.Context, cfg config, peek int) (*checkReport, error) {
	k, err := newConnector(cfg)
	if err != nil {
		return nil, withCode(exitUsage, err)
	}
	k.impatient = true
	r := &checkReport{Findings: cfg.sums(), Previews: []previewLine{}}
	store, found := k.checkStore(ctx)
	if store != nil {
		defer store.Close()
	}
	r.Findings = append(r.Findings, found...)
	r.Checked = []string{fmt.Sprintf("container %s/%s at %s", cfg.store.Database, cfg.store.Container, cfg.store.Endpoint), cfg.unseen()}
	r.Findings = append(r.Findings, k.checkDestinations(ctx)...)
	messages, err := k.peek(ctx, max(peek, 1))
	r.Notes = []string{cfg.bandwidth(messages)}
	switch {
	case cfg.worker.Sessions && brokerfault.Of(err) == brokerfault.NotAllowed:
		r.Notes = append(r.Notes, fmt.Sprintf("Queue %s requires sessions, as SERVICEBUS_SESSIONS says: its messages are not looked at, because that would take a session from the worker.", cfg.queue))
		return r, nil
	case cfg.worker.Sessions && err == nil:
		r.Findings = append(r.Findings, finding{severityFault, "queue", fmt.Sprintf("queue %s does not require sessions, and SERVICEBUS_SESSIONS is true", cfg.queue),
			"Set SERVICEBUS_SESSIONS to false, or create a queue that requires sessions: an existing one cannot be changed."})
		return r, nil
	case err != nil:
		r.Findings = append(r.Findings, cfg.aboutQueue(err))
		return r, nil
	case len(messages) == 0:
		r.Notes = append(r.Notes, fmt.Sprintf("Queue %s is empty: there is no message to look at.", cfg.queue))
		return r, nil
	case peek == 0:
		return r, nil
	}
	r.Findings = append(r.Findings, cfg.aboutIDs(messages)...)
	if store != nil {
		r.Previews, err = cfg.preview(ctx, store, messages)
	}
	return r, err
}

// unseen names the queue with what cannot be seen of it: its settings need the right to manage it, which a worker must not
// have.
func (c config) unseen() string {
	return fmt.Sprintf("queue %s, without its settings, which only the right Manage shows: see for yourself that its lock duration is %s and its maximum delivery count %d",
		c.queue, c.worker.LockDuration, c.worker.MaxDeliveryCount)
}

// standardMessage is the largest message that a queue of the tier Standard takes, in bytes.
const standardMessage = 256 << 10

// bandwidth says how fast the line must be, so that no lock is nearly over when its message arrives: the broker locks all
// messages of a receive call before it sends the first. The worker takes a quarter of a lock for too long.
func (c config) bandwidth(messages []*azservicebus.ReceivedMessage) string {
	size, what := standardMessage, "the most that the tier Standard takes"
	for i, m := range messages {
		if i == 0 || len(m.Body) > size {
			size, what = len(m.Body), "the largest that was looked at"
		}
	}
	rate := float64(c.worker.Concurrency*size) / (c.worker.LockDuration / 4).Seconds()
	return fmt.Sprintf("WORKER_CONCURRENCY %d x %d bytes (%s) within a quarter of the lock of %s take a line of %.0f KB/s. On a thinner one the worker asks for fewer at once.",
		c.worker.Concurrency, size, what, c.worker.LockDuration, max(1, rate/1000))
}

// checkDestinations opens a link to each destination, which takes the right to send, and sends nothing.
func (k *connector) checkDestinations(ctx context.Context) []finding {
	var found []finding
	for _, to := range k.config.worker.Outbox.Destinations {
		if err := k.reach(ctx, to); err != nil {
			text, fix := err.Error(), "Its messages are committed and wait until it can be sent to."
			if p := problemOf(k.config, err); p != nil {
				text, fix = p.text, fullStop(p.fix)
			}
			found = append(found, finding{severityFault, "destination", fmt.Sprintf("destination %s: %s", to, text), fix})
		}
	}
	return found
}

// reach asks for the largest message that an entity takes, which needs a link for sending.
func (k *connector) reach(ctx context.Context, to string) error {
	ctx, cancel := context.WithTimeout(ctx, peekTimeout)
	defer cancel()
	client, err := k.serviceBus()
	if err != nil {
		return err
	}
	defer closeClient(client)
	sender, err := client.NewSender(to, nil)
	if err != nil {
		return err
	}
	_, err = sender.NewMessageBatch(ctx, nil)
	return err
}

// aboutQueue is what keeps the worker from its queue.
func (c config) aboutQueue(err error) finding {
	if errors.Is(err, errUnshowable) {
		return finding{severityWarning, "queue", err.Error(), "The worker receives one message at a time until the broker has dead-lettered this one, after its last delivery. Then look at it with " + c.program.Name + " deadletter list."}
	}
	if p := problemOf(c, err); p != nil {
		return finding{severityFault, "queue", p.text, fullStop(p.fix)}
	}
	return finding{severityFault, "queue", err.Error(), "The worker does not receive until this is fixed. If the text does not help, look at the health of the namespace."}
}

// sums are the findings that follow from the settings alone.
func (c config) sums() []finding {
	found := []finding{}
	warn := func(wrong bool, about, fix, format string, args ...any) {
		if wrong {
			found = append(found, finding{severityWarning, about, fmt.Sprintf(format, args...), fix})
		}
	}
	warn(c.worker.DrainTimeout > 50*time.Second, "drain", "Lower WORKER_DRAIN_TIMEOUT, or raise the grace period above it by ten seconds.",
		"the drain limit of %s is longer than the templates' grace period of 60s allows", c.worker.DrainTimeout)
	warn(c.worker.MaxDeliveryCount < 3, "deliveries", "Configure the queue with 10, and set WORKER_MAX_DELIVERY_COUNT to the same.",
		"with a maximum delivery count of %d, two killed workers dead-letter a healthy message", c.worker.MaxDeliveryCount)
	warn(c.worker.Admission.Partition.FromBody(), "partition", "Let the sender set an application property, and use property:NAME. The queue's duplicate detection sees such a reuse within its window.",
		"the partition is read from the body (%s): a message that comes back under the same key with another value there is looked for in another partition, so that the store does not see the reuse of its key",
		c.worker.Admission.Partition)
	return found
}

func (k *connector) checkStore(ctx context.Context) (*cosmosstore.Store, []finding) {
	t, log := quiet()
	store, err := k.openStore(ctx, t, log)
	findings := cosmosstore.Findings(err)
	if err == nil {
		findings = store.Check(ctx)
	}
	var found []finding
	for _, f := range findings {
		text := fmt.Sprintf("%s/%s: %s", k.config.store.Database, k.config.store.Container, strings.TrimPrefix(f.Text, "cosmosstore: "))
		found = append(found, finding{string(f.Severity), "container", text, f.Fix})
	}
	return store, found
}

var errUnshowable = errors.New("one of the next messages carries a DeadLetterReason or DeadLetterErrorDescription that is not text, and cannot be shown")

// peek looks at the first messages of the queue without locking any. The client panics over a message whose dead-letter
// properties are not text, which any sender can send.
func (k *connector) peek(ctx context.Context, n int) (messages []*azservicebus.ReceivedMessage, err error) {
	ctx, cancel := context.WithTimeout(ctx, peekTimeout)
	defer cancel()
	defer func() {
		if recover() != nil {
			messages, err = nil, errUnshowable
		}
	}()
	client, err := k.serviceBus()
	if err != nil {
		return nil, err
	}
	defer closeClient(client)
	receiver, err := k.receiver(client)
	if err != nil {
		return nil, err
	}
	return receiver.PeekMessages(ctx, n, nil)
}

func (r *checkReport) write(out io.Writer, format string) error {
	if format == "json" {
		return writeJSON(out, r)
	}
	for _, c := range r.Checked {
		fmt.Fprintf(out, "looked at %s\n", c)
	}
	for _, f := range r.Findings {
		fmt.Fprintf(out, "\n%s: %s\n  %s\n", f.Severity, f.Text, f.Fix)
	}
	if len(r.Findings) == 0 {
		fmt.Fprintln(out, "nothing to fix")
	}
	for _, n := range r.Notes {
		fmt.Fprintf(out, "note: %s\n", n)
	}
	return writePreviews(out, r.Previews)
}
