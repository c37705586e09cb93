package app

import (
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
		return nil, withCode(exitUsage, err)
	}
	lines, before := make([]previewLine, len(messages)), waiting{}
	for i, m := range messages {
		r := p.Preview(ctx, m)
		l := decision(r)
		l.identify(admitter, m)
		if l.Decision == decisionCreate {
			l = before.compare(l, r)
		}
		lines[i] = l
	}
	return lines, nil
}

// identify says which message a line is about, also when the message was refused.
func (l *previewLine) identify(admitter *admission.Admitter, m *azservicebus.ReceivedMessage) {
	l.MessageID = m.MessageID
	if m.SequenceNumber != nil {
		l.SequenceNumber = *m.SequenceNumber
	}
	if l.Key != "" {
		return
	}
	if key, _, refusal := admitter.Key(m); refusal == nil {
		l.Key = key.String()
	}
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
		l.Decision, l.Why = decisionCreate, "nothing is committed under this key; the handler decides"
	default:
		l.Decision = "retry"
		if r.Err != nil {
			l.Why = r.Err.Error()
		}
	}
	return l
}

// name is the key, or the MessageId of a message that has no key.
func (l previewLine) name() string {
	switch {
	case l.Key != "":
		return l.Key
	case l.MessageID != "":
		return "MessageId " + strconv.QuoteToASCII(l.MessageID)
	}
	return "-"
}

func writePreviews(out io.Writer, lines []previewLine) error {
	if len(lines) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "SEQUENCE\tKEY\tDECISION\tWHY")
	for _, l := range lines {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", l.SequenceNumber, l.name(), l.Decision, l.Why)
	}
	return w.Flush()
}
