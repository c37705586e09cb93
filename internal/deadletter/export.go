package deadletter

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/Azure/go-amqp"

	"github.com/orderworker/orderworker/internal/messagejson"
	"github.com/orderworker/orderworker/internal/wire"
)

// encodedLine is the form of an exported message that has no form for people.
type encodedLine struct {
	// Encoded is the message as the broker keeps it.
	Encoded []byte `json:"encoded_b64"`
	Why     string `json:"why,omitempty"`
}

// ExportLine writes a message as one line of JSON without its newline, losing nothing but its delivery count. The line is
// one of package messagejson, which people can read and fix and the send command takes, unless something in the message
// has no such form: then it holds the encoded message.
func ExportLine(l *DeadLetter) ([]byte, error) {
	if len(l.Damage)+len(l.Foreign) == 0 {
		line, err := messagejson.Encode(annotated(l.Message))
		if line = VisibleJSON(line); err == nil && faithful(l, line) {
			return line, nil
		}
	}
	why := "something in this message has no form in JSON"
	if odd := slices.Concat(l.Damage, l.Foreign); len(odd) > 0 {
		why = odd[0]
	}
	return json.Marshal(encodedLine{Encoded: l.Encoded, Why: Visible(why)})
}

// faithful reports whether a line brings the message back.
func faithful(l *DeadLetter, line []byte) bool {
	back, err := ImportLine(line)
	if err != nil {
		return false
	}
	sections, err := wire.Split(l.Encoded)
	nullBody := slices.ContainsFunc(sections, func(s wire.Section) bool { return s.Code == wire.Value }) && l.Message.Value == nil
	return err == nil && !nullBody && reflect.DeepEqual(normalised(l.Message), normalised(back.Message))
}

// normalised returns a message without what makes no difference: the delivery, and whether an empty section is there.
func normalised(m *amqp.Message) amqp.Message {
	out := amqp.Message{
		Header: &amqp.MessageHeader{Priority: 4}, Properties: m.Properties, Annotations: amqp.Annotations{},
		ApplicationProperties: map[string]any{}, Footer: amqp.Annotations{}, Data: m.Data, Value: m.Value, Sequence: m.Sequence,
	}
	if h := m.Header; h != nil {
		out.Header = &amqp.MessageHeader{Durable: h.Durable, Priority: h.Priority, TTL: h.TTL, FirstAcquirer: h.FirstAcquirer}
	}
	if out.Properties == nil {
		out.Properties = &amqp.MessageProperties{}
	}
	for k, v := range m.Annotations {
		out.Annotations[k] = v
	}
	for k, v := range m.ApplicationProperties {
		out.ApplicationProperties[k] = v
	}
	for k, v := range m.Footer {
		out.Footer[k] = v
	}
	return out
}

// ImportLine reads a line of either form.
func ImportLine(line []byte) (*DeadLetter, error) {
	var e encodedLine
	if json.Unmarshal(line, &e) == nil && len(e.Encoded) > 0 {
		l := Parse(e.Encoded)
		if _, err := wire.Split(e.Encoded); err != nil {
			return nil, fmt.Errorf("encoded_b64: %w", err)
		}
		return l, nil
	}
	m, err := messagejson.Decode(line)
	if err != nil {
		return nil, err
	}
	return fromAnnotated(m)
}

// originImport marks entries of messages that came out of a file.
const originImport = "import"

// importGroup is how many messages of a file are begun before the failures are counted.
const importGroup = 100

// Import carries out a command on messages that were exported and do not lie in the dead letters any more, or need not: it
// reprocesses them, or sends them to the queue, under the same rules and records as for dead letters. Nothing is removed. A
// message that was imported before is recognised by the store, or by the record of its send.
func (r *Reviewer) Import(ctx context.Context, a Application, messages []*DeadLetter) (Summary, error) {
	a.Command.Origin, a.Command.Plan, a.Steps = originImport, "", nil
	run := r.newRun(a)
	run.file, run.summary.Steps = messages, len(messages)
	numbers := make([]int64, len(messages))
	for i, l := range messages {
		id, _ := l.MessageID()
		numbers[i] = int64(i)
		run.steps[int64(i)] = PlanStep{Sequence: l.Sequence, Action: a.Command.Action, MessageID: id}
	}
	if a.Command.Action == Resubmit {
		var err error
		if run.queueEnd, err = r.queueEnd(ctx); err != nil {
			return run.summary, err
		}
	}
	for group := range slices.Chunk(numbers, importGroup) {
		run.group(ctx, group)
		switch {
		case ctx.Err() != nil:
			run.summary.Stopped = "it was interrupted"
			return run.summary, nil
		case a.Pace.MaxFailures > 0 && run.tooMany() != "":
			run.summary.Stopped = run.tooMany()
			return run.summary, nil
		}
	}
	return run.summary, nil
}

// fromFile deals with one message of a file to its end.
func (r *run) fromFile(ctx context.Context, o Command, l *DeadLetter) Outcome {
	if o.Action == Resubmit {
		var err error
		id, _ := l.MessageID()
		if o.sent, o.seen, err = r.loadSent(ctx, id); err != nil {
			return Outcome{Sequence: l.Sequence, MessageID: id, Action: o.Action}.with(Broken, err.Error())
		}
	}
	return r.act(ctx, o, l, func(context.Context) error { return nil })
}

// DryRunImport says what [Reviewer.Import] would do with each message, and does nothing.
func (r *Reviewer) DryRunImport(ctx context.Context, o Command, messages []*DeadLetter, yield func(Outcome)) error {
	o.Origin = originImport
	slots := make(chan struct{}, lookups)
	for group := range slices.Chunk(messages, importGroup) {
		for _, item := range r.examine(ctx, group, slots) {
			yield(r.wouldDo(o, PlanStep{Sequence: item.DeadLetter.Sequence, Action: o.Action}, item))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
