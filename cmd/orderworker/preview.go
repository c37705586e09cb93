package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/worker"
)

// previewLine is what the worker would decide for one message.
type previewLine struct {
	SequenceNumber int64  `json:"sequenceNumber"`
	Key            string `json:"key,omitempty"`
	DocumentID     string `json:"documentId,omitempty"`
	Decision       string `json:"decision"`
	Why            string `json:"why,omitempty"`
}

// preview asks the worker's own pipeline, which reads and does not write.
func (c config) preview(ctx context.Context, store worker.Store, messages []*azservicebus.ReceivedMessage) ([]previewLine, error) {
	wc, err := c.workerConfig(&telemetry{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, withCode(exitUsage, err)
	}
	p, err := worker.NewPipeline(wc, store, worker.HandlerFunc(order))
	if err != nil {
		return nil, err
	}
	lines := make([]previewLine, len(messages))
	for i, m := range messages {
		lines[i] = decision(p.Preview(ctx, m))
		if m.SequenceNumber != nil {
			lines[i].SequenceNumber = *m.SequenceNumber
		}
	}
	return lines, nil
}

func decision(r worker.Result) previewLine {
	l := previewLine{DocumentID: r.Commit.DocumentID, Why: r.Detail}
	if r.Admitted {
		l.Key = r.Message.Key.String()
	}
	switch {
	case r.Judgement.Committed():
		l.Decision, l.Why = "complete", "equal content is committed already"
	case r.Judgement != 0 || r.Cause == worker.CauseRefused || r.Cause == worker.CauseUnstorable:
		l.Decision = "dead-letter as " + r.Reason
	case r.Cause == 0:
		l.Decision, l.Why = "create", "nothing is committed under this key; the handler decides"
	default:
		l.Decision = "retry"
		if r.Err != nil {
			l.Why = r.Err.Error()
		}
	}
	return l
}

func writePreviews(out io.Writer, lines []previewLine) error {
	if len(lines) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "SEQUENCE\tKEY\tDECISION\tWHY")
	for _, l := range lines {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", l.SequenceNumber, l.Key, l.Decision, l.Why)
	}
	return w.Flush()
}
