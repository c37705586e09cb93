package app

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/orderworker/orderworker/internal/deadletter"
)

func newDeadletterList(sys system) *cobra.Command {
	var f filterFlags
	var output, by string
	var limit int
	c := &cobra.Command{
		Use: "list", Short: "List dead letters with the verdict on each", Args: needArgs(),
		Long: `List dead letters with the verdict on each, in the order of their sequence numbers.

Messages are peeked and nothing is touched. The verdict is computed now, from the message, the stored document and the
settings of the queue.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkListOutput(output, by != ""); err != nil {
				return err
			}
			now := time.Now()
			filter, err := f.filter(now)
			if err != nil {
				return err
			}
			grouping := deadletter.ByVerdict
			if by != "" {
				if grouping, err = deadletter.ParseGrouping(by); err != nil {
					return withCode(exitUsage, fmt.Errorf("--group: %w", err))
				}
			}
			return withReview(c, sys, func(ctx context.Context, r *review) error {
				l := lister{review: r, filter: filter, limit: limit, now: now, groups: deadletter.NewGroups(grouping), byVerdict: grouping == deadletter.ByVerdict, out: sys.stdout}
				switch {
				case by != "":
					return l.grouped(ctx, output)
				case output == "json":
					return l.json(ctx)
				case output == "csv":
					return l.csv(ctx)
				}
				return l.table(ctx)
			})
		},
	}
	f.bind(c.Flags())
	c.Flags().StringVarP(&output, "output", "o", "table", "table, json or csv")
	c.Flags().StringVar(&by, "group", "", "count instead, by verdict or reason")
	c.Flags().IntVar(&limit, "limit", 0, "stop after so many; 0 lists all")
	return c
}

func checkOutput(output string) error {
	if output == "table" || output == "json" {
		return nil
	}
	return withCode(exitUsage, fmt.Errorf("-o %q is neither table nor json", output))
}

// checkListOutput is checkOutput for list, which writes CSV too unless it only counts.
func checkListOutput(output string, grouped bool) error {
	err := checkOutput(output)
	switch {
	case grouped || err == nil:
		return err
	case output == "csv":
		return nil
	}
	return withCode(exitUsage, fmt.Errorf("-o %q is neither table, json nor csv", output))
}

// lister writes messages as they come, so that any number of them takes the same memory.
type lister struct {
	*review
	filter deadletter.Filter
	limit  int
	now    time.Time
	groups *deadletter.Groups
	// byVerdict tells that the groups are verdicts.
	byVerdict bool
	out       io.Writer
	// unanswered is why the first undecided message is so.
	unanswered string
	undecided  int
}

// each calls visit for every message up to the limit, and returns how many there were.
func (l *lister) each(ctx context.Context, visit func(deadletter.Item) error) (int, error) {
	n := 0
	for item, err := range l.List(ctx, l.filter) {
		if err != nil {
			return n, err
		}
		l.groups.Add(item.DeadLetter, item.Verdict)
		if item.Verdict.Kind == deadletter.Undecided {
			if item.Verdict.Retry {
				l.undecided++
			}
			l.unanswered = cmp.Or(l.unanswered, item.Verdict.Detail)
		}
		n++
		if err := visit(item); err != nil {
			return n, err
		}
		if n == l.limit {
			return n, nil
		}
	}
	return n, nil
}

const listRow = "%-10v  %-15s  %-26s  %5s  %-38s  %s\n"

func (l *lister) table(ctx context.Context) error {
	header := false
	n, err := l.each(ctx, func(item deadletter.Item) error {
		if !header {
			header = true
			if _, err := fmt.Fprintf(l.out, listRow, "SEQUENCE", "VERDICT", "REASON", "AGE", "MESSAGE ID", "NOTES"); err != nil {
				return err
			}
		}
		id, _ := item.DeadLetter.MessageID()
		row := fmt.Sprintf(listRow, item.DeadLetter.Sequence, item.Verdict.Kind, cell(item.DeadLetter.Reason(), 26), age(item.DeadLetter.EnqueuedAt, l.now), cell(id, 38), l.notes(item))
		_, err := io.WriteString(l.out, strings.TrimRight(row, " \n")+"\n")
		return err
	})
	if err != nil {
		return err
	}
	text := l.total(n)
	if n == 0 {
		if text, err = l.noneOf(ctx, l.filter); err != nil {
			return err
		}
	}
	if _, err = fmt.Fprintf(l.out, "%s\n", text); err != nil {
		return err
	}
	return l.answered(n)
}

// noneOf says that nothing is selected, and of how many: an empty queue is not a filter that matches nothing.
func (r *review) noneOf(ctx context.Context, f deadletter.Filter) (string, error) {
	total := 0
	for messages, err := range r.Pages(ctx, 1, 0) {
		if err != nil {
			return "", err
		}
		total += len(messages)
	}
	if total > 0 {
		return fmt.Sprintf("none of %d dead letters match", total), nil
	}
	forwarded, err := r.Forwarded(ctx)
	if err != nil || forwarded == 0 {
		return "no dead letters", err
	}
	return fmt.Sprintf("no dead letters of %s itself, but %d or more messages in the queue carry a DeadLetterReason: they were forwarded to it. To look at these, add --forwarded", r.config.queue, forwarded), nil
}

// answered is the error of a listing in which the store gave no answer for some, although it might have.
func (l *lister) answered(n int) error {
	if l.undecided == 0 {
		return nil
	}
	return withCode(exitFailure, fmt.Errorf("%d of %d are undecided, since the store gave no answer. List again for these", l.undecided, n))
}

// cell is a text from a message in a table.
func cell(text string, width int) string { return deadletter.Clip(deadletter.Visible(text), width) }

func (l *lister) notes(item deadletter.Item) string {
	var notes []string
	for _, n := range deadletter.Notices(item.DeadLetter, l.Settings(), l.now) {
		notes = append(notes, string(n.Kind))
	}
	return strings.Join(notes, ", ")
}

// total sums a listing up: "5 dead letters: 3 never-applied, 2 conflict".
func (l *lister) total(n int) string {
	if n == 0 {
		return "no dead letters"
	}
	var parts []string
	for _, g := range l.groups.All() {
		parts = append(parts, fmt.Sprintf("%d %s", g.Count, g.Name))
	}
	noun := "dead letters"
	if n == 1 {
		noun = "dead letter"
	}
	text := fmt.Sprintf("%d %s: %s", n, noun, strings.Join(parts, ", "))
	if l.unanswered != "" {
		text += "\nundecided because of this: " + deadletter.Visible(l.unanswered)
	}
	return text
}

// json writes an array element by element. When it breaks off, the array is closed and the error follows; before its first
// element nothing is written, since an empty array says that there are no dead letters.
func (l *lister) json(ctx context.Context) error {
	separator := "["
	n, err := l.each(ctx, func(item deadletter.Item) error {
		text, err := json.Marshal(l.describe(item))
		if err == nil {
			_, err = fmt.Fprintf(l.out, "%s\n%s", separator, deadletter.VisibleJSON(text))
			separator = ","
		}
		return err
	})
	end := "\n]\n"
	switch {
	case separator == "[" && err != nil:
		return err
	case separator == "[":
		end = "[]\n"
	}
	if _, writeErr := io.WriteString(l.out, end); err == nil {
		err = writeErr
	}
	return cmp.Or(err, l.answered(n))
}

// csv writes a table for a spreadsheet, in which nothing of a message can be a formula.
func (l *lister) csv(ctx context.Context) error {
	out := csv.NewWriter(l.out)
	if err := out.Write(deadletter.TableHeader()); err != nil {
		return err
	}
	n, err := l.each(ctx, func(item deadletter.Item) error { return out.Write(item.TableRow()) })
	out.Flush()
	return cmp.Or(errors.Join(err, out.Error()), l.answered(n))
}

func (l *lister) grouped(ctx context.Context, output string) error {
	if err := l.count(ctx); err != nil {
		return err
	}
	groups := l.groups.All()
	if output == "json" {
		return writeJSON(l.out, groups)
	}
	w := tabwriter.NewWriter(l.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "COUNT\tOLDEST\tFIRST\tGROUP")
	for _, g := range groups {
		fmt.Fprintf(w, "%d\t%s\t%d\t%s\n", g.Count, age(g.Oldest, l.now), g.First, deadletter.Visible(g.Name))
	}
	return w.Flush()
}

// count fills the groups. What does not need verdicts does not ask the store.
func (l *lister) count(ctx context.Context) error {
	if l.byVerdict || l.filter.NeedsVerdict() {
		n, err := l.each(ctx, func(deadletter.Item) error { return nil })
		return cmp.Or(err, l.answered(n))
	}
	for messages, err := range l.Pages(ctx, max(l.filter.FirstSequence, 1), l.filter.LastSequence) {
		if err != nil {
			return err
		}
		for _, message := range messages {
			if l.filter.MatchesMessage(message) {
				l.groups.Add(message, deadletter.Verdict{})
			}
		}
	}
	return nil
}

// messageJSON is a dead letter for programs.
type messageJSON struct {
	Sequence    int64               `json:"sequence"`
	MessageID   string              `json:"messageId"`
	Key         string              `json:"key,omitempty"`
	DocumentID  string              `json:"documentId,omitempty"`
	EnqueuedAt  time.Time           `json:"enqueuedAt,omitzero"`
	Reason      string              `json:"reason"`
	Description string              `json:"description,omitempty"`
	Program     string              `json:"program,omitempty"`
	Deliveries  uint32              `json:"deliveries"`
	Bytes       int                 `json:"bytes"`
	Verdict     deadletter.Kind     `json:"verdict"`
	Meaning     string              `json:"meaning"`
	StoredHash  string              `json:"storedHash,omitempty"`
	ArrivedHash string              `json:"arrivedHash,omitempty"`
	CommittedAt time.Time           `json:"committedAt,omitzero"`
	Outcome     json.RawMessage     `json:"outcome,omitempty"`
	Differences []deadletter.Change `json:"differences,omitempty"`
	First       deadletter.Action   `json:"firstAction"`
	Notices     []string            `json:"notices,omitempty"`
	Offers      []offerJSON         `json:"actions,omitempty"`
	// What only show says. Body is the text of the body, and BodyB64 one that is no text.
	Facts      []factJSON        `json:"facts,omitempty"`
	Properties map[string]string `json:"properties,omitempty"`
	Body       string            `json:"body,omitempty"`
	BodyB64    []byte            `json:"body_b64,omitempty"`
	Stored     json.RawMessage   `json:"stored,omitempty"`
}

type factJSON struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type offerJSON struct {
	Action   deadletter.Action `json:"action"`
	Sentence string            `json:"sentence"`
	Refused  string            `json:"refused,omitempty"`
	Warning  string            `json:"warning,omitempty"`
}

// describe leaves texts as they are: what a terminal must not see is escaped in the JSON.
func (r *review) describe(item deadletter.Item) messageJSON {
	l, v, now := item.DeadLetter, item.Verdict, time.Now()
	id, _ := l.MessageID()
	out := messageJSON{
		Sequence: l.Sequence, MessageID: id, Key: item.Key, DocumentID: item.DocumentID, EnqueuedAt: l.EnqueuedAt,
		Reason: l.Reason(), Description: l.Description(), Deliveries: l.Deliveries(), Bytes: len(l.Encoded),
		Verdict: v.Kind, Meaning: v.Meaning(), StoredHash: v.StoredHash, ArrivedHash: v.ArrivedHash, CommittedAt: v.CommittedAt,
		First: v.First(), Outcome: v.Outcome,
	}
	out.Program, _ = l.Program()
	for _, n := range deadletter.Notices(l, r.Settings(), now) {
		out.Notices = append(out.Notices, n.Text)
	}
	return out
}

func writeJSON(out io.Writer, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		_, err = out.Write(append(deadletter.VisibleJSON(text), '\n'))
	}
	return err
}
