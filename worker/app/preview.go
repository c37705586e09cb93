package app

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/admission"
	"github.com/orderworker/orderworker/worker/fingerprint"
	"github.com/orderworker/orderworker/worker/reason"
)

// previewLine is what the worker would decide for one message.
type previewLine struct {
	SequenceNumber int64  `json:"sequenceNumber"`
	Key            string `json:"key,omitempty"`
	MessageID      string `json:"messageId,omitempty"`
	DocumentID     string `json:"documentId,omitempty"`
	Decision       string `json:"decision"`
	Why            string `json:"why,omitempty"`
}

// preview asks the worker's own pipeline, which reads and does not write.
func (c config) preview(ctx context.Context, store worker.Store, messages []*azservicebus.ReceivedMessage) ([]previewLine, error) {
	wc := c.workerConfig(quiet())
	p, err := worker.NewPipeline(wc, store, c.program.Handler)
	if err != nil {
		return nil, err
	}
	admitter, err := admission.New(wc.Admission)
	if err != nil {
		return nil, err
	}
	lines, before := make([]previewLine, len(messages)), waiting{}
	for i, m := range messages {
		r := p.Preview(ctx, m)
		l := previewLine{SequenceNumber: *m.SequenceNumber, MessageID: m.MessageID, DocumentID: r.Commit.DocumentID}
		// A message that was refused for its body still has its key.
		if key, _, refusal := admitter.Key(m); refusal == nil {
			l.Key = key.String()
		}
		l.Decision, l.Why = decision(r)
		if l.Decision == decisionCreate {
			l = before.compare(l, r)
		}
		lines[i] = l
	}
	return lines, nil
}

// waiting are the messages that wait to be created, by the ids of their documents.
type waiting map[string]first

// first is the first of several messages with one key.
type first struct {
	sequence int64
	print    fingerprint.Fingerprint
}

// compare says what becomes of a message whose key a message before it has too, once that one is created.
func (w waiting) compare(l previewLine, r worker.Result) previewLine {
	f, again := w[l.DocumentID]
	switch {
	case !again:
		w[l.DocumentID] = first{l.SequenceNumber, r.Message.Fingerprint}
	case f.print.Equal(r.Message.Fingerprint):
		l.Decision, l.Why = "complete", fmt.Sprintf("equal content as message %d before it, once that is created", f.sequence)
	default:
		l.Decision, l.Why = "dead-letter as "+reason.ContentConflict, fmt.Sprintf("the key of message %d before it with other content, once that is created", f.sequence)
	}
	return l
}

const decisionCreate = "create"

func decision(r worker.Result) (what, why string) {
	switch {
	case r.Judgement.Committed():
		return "complete", "equal content is committed already"
	case r.Judgement != 0 || r.Cause == worker.CauseRefused || r.Cause == worker.CauseUnstorable:
		return "dead-letter as " + r.Reason, r.Detail
	case r.Cause == 0:
		return decisionCreate, "nothing is committed under this key; the handler decides"
	case r.Err != nil:
		return "retry", r.Err.Error()
	}
	return "retry", r.Detail
}

func writePreviews(out io.Writer, lines []previewLine) error {
	if len(lines) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "\nSEQUENCE\tKEY\tDECISION\tWHY")
	for _, l := range lines {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", l.SequenceNumber, cmp.Or(l.Key, "MessageId "+strconv.QuoteToASCII(l.MessageID)), l.Decision, l.Why)
	}
	return w.Flush()
}
