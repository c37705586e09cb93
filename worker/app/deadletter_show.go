package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/Azure/go-amqp"
	"github.com/spf13/cobra"

	"github.com/orderworker/orderworker/internal/deadletter"
)

func newDeadletterShow(sys system) *cobra.Command {
	var output string
	var limit int
	c := &cobra.Command{
		Use: "show SEQUENCE", Short: "Show one dead letter, what its verdict means and what each action would do", Args: needArgs("SEQUENCE"),
		RunE: func(c *cobra.Command, args []string) error {
			return withMessage(c, sys, args, output, func(r *review, item deadletter.Item) error {
				if output == "json" {
					return writeJSON(sys.stdout, r.describeWhole(item))
				}
				others, err := r.OfKey(c.Context(), item.DeadLetter, 0)
				if err != nil {
					return err
				}
				return r.show(sys.stdout, item, others, limit)
			})
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	c.Flags().IntVar(&limit, "body", 4096, "show at most so many bytes of a body")
	return c
}

// withMessage finds the one dead letter that args name and hands it to f.
func withMessage(c *cobra.Command, sys system, args []string, output string, f func(*review, deadletter.Item) error) error {
	if err := checkOutput(output); err != nil {
		return err
	}
	n, err := sequences(args)
	if err != nil {
		return err
	}
	return withReview(c, sys, func(ctx context.Context, r *review) error {
		item, err := r.find(ctx, n[0])
		if err != nil {
			return err
		}
		return f(r, item)
	})
}

// find is Find with the exit code for a message that is not there.
func (r *review) find(ctx context.Context, sequence int64) (deadletter.Item, error) {
	item, err := r.Find(ctx, sequence)
	if errors.Is(err, deadletter.ErrAbsent) {
		err = r.absent(sequence)
	}
	return item, err
}

// absent is the error for a message that is not there.
func (r *review) absent(sequence int64) error {
	return withCode(exitAbsent, fmt.Errorf("there is no dead letter %d in %s: it was removed, or never there. The log may say more: %s deadletter log --sequence %d", sequence, r.config.queue, r.config.program.Name, sequence))
}

func (r *review) describeWhole(item deadletter.Item) messageJSON {
	out := r.describe(item)
	out.Differences = item.Changes()
	out.Stored, out.Properties = item.Stored, map[string]string{}
	for name, v := range item.DeadLetter.Message.ApplicationProperties {
		out.Properties[name] = deadletter.Value(v)
	}
	for _, f := range item.DeadLetter.Facts(r.config.queue) {
		out.Facts = append(out.Facts, factJSON{f.Name, f.Value})
	}
	content, _ := item.DeadLetter.Content()
	if utf8.Valid(content) {
		out.Body = string(content)
	} else {
		out.BodyB64 = content
	}
	for _, o := range deadletter.Offers(item.DeadLetter, item.Verdict, r.Settings(), deadletter.Choice{}, time.Now()) {
		out.Offers = append(out.Offers, offerJSON{o.Action, o.Sentence, o.Refused, o.Warning})
	}
	return out
}

// show writes a message for people. Nothing of the message reaches the terminal unescaped.
func (r *review) show(out io.Writer, item deadletter.Item, others []int64, limit int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Dead letter %d of %s: %s\n\n", item.DeadLetter.Sequence, r.config.queue, item.Verdict.Kind)
	fmt.Fprintf(&b, "%s\n", deadletter.Visible(item.Verdict.Meaning()))
	for _, n := range deadletter.Notices(item.DeadLetter, r.Settings(), time.Now()) {
		fmt.Fprintf(&b, "Note: %s\n", deadletter.Visible(n.Text))
	}
	if len(others) > 0 {
		fmt.Fprintf(&b, "Note: %d other dead letter(s) with this key wait, the first is %d. What is applied first is stored; the others are conflicts then.\n", len(others), min(others[0], item.DeadLetter.Sequence))
	}
	b.WriteString("\n")
	r.showFacts(&b, item)
	showChanges(&b, item)
	showProperties(&b, item.DeadLetter)
	showBody(&b, item, limit)
	r.showOffers(&b, item)
	_, err := io.WriteString(out, b.String())
	return err
}

func (r *review) showFacts(out io.Writer, item deadletter.Item) {
	l, v, now := item.DeadLetter, item.Verdict, time.Now()
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fact := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %s\t%s\n", name, deadletter.Visible(fmt.Sprintf(format, args...)))
	}
	id, _ := l.MessageID()
	fact("message id", "%s", id)
	if item.Key != "" {
		fact("key", "%s", item.Key)
		fact("document id", "%s", item.DocumentID)
	}
	if !l.EnqueuedAt.IsZero() {
		fact("came in", "%s (%s ago)", l.EnqueuedAt.UTC().Format(time.RFC3339), age(l.EnqueuedAt, now))
	}
	fact("dead-lettered for", "%s", l.Reason())
	if d := l.Description(); d != "" {
		fact("description", "%s", d)
	}
	for _, f := range l.Facts(r.config.queue) {
		fact(strings.ToLower(f.Name), "%s", f.Value)
	}
	if name, version := l.Program(); name != "" {
		fact("program", "%s", strings.TrimSpace(name+" "+version))
	} else {
		fact("program", "not recorded")
	}
	fact("failed deliveries", "%d", l.Deliveries())
	fact("size", "%d bytes", len(l.Encoded))
	for _, h := range []struct{ name, hash string }{{"stored hash", v.StoredHash}, {"arrived hash", v.ArrivedHash}} {
		if h.hash != "" {
			fact(h.name, "%s", h.hash)
		}
	}
	if v.Outcome != nil {
		fact("recorded outcome", "%s", v.Outcome)
	}
	for _, d := range l.Damage {
		fact("cannot be read", "%s", d)
	}
	_ = w.Flush()
}

func showChanges(out io.Writer, item deadletter.Item) {
	changes := item.Changes()
	if len(changes) == 0 {
		return
	}
	fmt.Fprintf(out, "\nStored (-) and this message (+)\n")
	for _, c := range changes {
		writeChange(out, c)
	}
}

func writeChange(out io.Writer, c deadletter.Change) {
	path := c.Path
	if path == "" {
		path = "(the whole body)"
	}
	fmt.Fprintf(out, "  %s\n", path)
	if c.Kind != "added" {
		fmt.Fprintf(out, "    - %s\n", c.Stored)
	}
	if c.Kind != "removed" {
		fmt.Fprintf(out, "    + %s\n", c.Arrived)
	}
}

func showProperties(out io.Writer, l *deadletter.DeadLetter) {
	if len(l.Message.ApplicationProperties) == 0 {
		return
	}
	fmt.Fprintf(out, "\nApplication properties\n")
	for _, name := range slices.Sorted(maps.Keys(l.Message.ApplicationProperties)) {
		fmt.Fprintf(out, "  %s = %s\n", deadletter.Visible(name), deadletter.Clip(deadletter.Value(l.Message.ApplicationProperties[name]), 300))
	}
}

func showBody(out io.Writer, item deadletter.Item, limit int) {
	b := deadletter.BodyOf(item.DeadLetter.Message, limit)
	how := ""
	if b.Binary && item.Content != nil {
		// Such as a compressed body: a dump of it tells a person nothing.
		read := deadletter.BodyOf(&amqp.Message{Data: [][]byte{item.Content}}, limit)
		b.Text, b.Cut, how = read.Text, read.Cut, ", as the worker reads it"
	}
	if b.Cut {
		how += ", the beginning"
	}
	fmt.Fprintf(out, "\nBody (%s, %d bytes%s)\n", b.Kind, b.Bytes, how)
	for line := range strings.Lines(b.Text) {
		fmt.Fprintf(out, "  %s\n", strings.TrimSuffix(line, "\n"))
	}
}

func (r *review) showOffers(out io.Writer, item deadletter.Item) {
	fmt.Fprintf(out, "\nWhat you can do\n")
	if first := item.Verdict.First(); !first.Changes() {
		command, what, flags := "export", "Writes the whole message to a file.", ""
		switch first {
		case deadletter.Resolve:
			command, flags = "resolve", ` --as done|not-done --reason "..."`
			what = deadletter.OfferOf(deadletter.Resolve, item.DeadLetter, item.Verdict, r.Settings(), deadletter.Choice{}, time.Now()).Sentence
		case deadletter.Compare:
			command, what = "diff", "Shows where the message and the stored document differ."
		}
		fmt.Fprintf(out, "  %s: %s\n      %s deadletter %s %d%s\n", command, what, r.config.program.Name, command, item.DeadLetter.Sequence, flags)
	}
	for _, o := range deadletter.Offers(item.DeadLetter, item.Verdict, r.Settings(), deadletter.Choice{}, time.Now()) {
		if o.Refused != "" {
			fmt.Fprintf(out, "  %s is refused: %s\n", o.Action, deadletter.Visible(o.Refused))
			continue
		}
		fmt.Fprintf(out, "  %s: %s\n", o.Action, deadletter.Visible(o.Sentence))
		flag := ""
		if o.Warning != "" {
			fmt.Fprintf(out, "      Warning: %s\n", deadletter.Visible(o.Warning))
			flag = " --accept-warning"
		}
		fmt.Fprintf(out, "      %s deadletter %s %d --reason \"...\"%s\n", r.config.program.Name, o.Action, item.DeadLetter.Sequence, flag)
	}
}
