package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/traffic"
)

// tally adds up the rounds.
type tally struct {
	sent                     map[string]int // by kind, or by what a command does
	dead                     map[string]int // by reason
	completed, documents     int
	deliveries, most         int
	killed, stopped, started int
	faults                   int
	promises                 history.Report
}

// add adds a round whose workers have ended.
func (t *tally) add(r *round, run traffic.Run, report history.Report) {
	if t.sent == nil {
		t.sent, t.dead = map[string]int{}, map[string]int{}
	}
	for _, m := range run.Sent {
		if m.Kind == traffic.NewCommand {
			t.sent[m.Type]++
		} else {
			t.sent[string(m.Kind)]++
		}
	}
	for _, o := range run.Outcomes() {
		if o.Completed {
			t.completed++
		} else {
			t.dead[o.Reason]++
		}
	}
	for _, e := range run.Events {
		if e.Op == history.Lock && e.Effect {
			t.deliveries++
			t.most = max(t.most, e.Delivery)
		}
	}
	t.documents += len(run.Documents)
	t.killed, t.stopped, t.started = t.killed+r.killed, t.stopped+r.stopped, t.started+r.fleet.started
	t.faults += r.Faults.Applied()
	for i, p := range t.promises {
		report[i].Checked += p.Checked
	}
	t.promises = report
}

// print writes the report. A tally without a round prints nothing.
func (t *tally) print(w io.Writer) {
	if t.sent == nil {
		return
	}
	sent, listed := breakdown(t.sent)
	fmt.Fprintf(w, "\nsent           %7d  %s\n", sent, listed)
	fmt.Fprintf(w, "completed      %7d\n", t.completed)
	dead, listed := breakdown(t.dead)
	fmt.Fprintf(w, "dead-lettered  %7d  %s\n", dead, listed)
	fmt.Fprintf(w, "documents      %7d\n", t.documents)
	fmt.Fprintf(w, "deliveries     %7d  at most %d of one message\n", t.deliveries, t.most)
	fmt.Fprintf(w, "faults         %7d\n", t.faults)
	fmt.Fprintf(w, "workers        %7d  %d killed, %d stopped\n\n", t.started, t.killed, t.stopped)
	fmt.Fprintf(w, "checked  broken  promise\n")
	for _, p := range t.promises {
		fmt.Fprintf(w, "%7d  %6d  %s\n", p.Checked, len(p.Broken), p.Sentence)
	}
}

// breakdown returns the sum of counts, and lists them by name, the largest first.
func breakdown(counts map[string]int) (sum int, listed string) {
	var parts []string
	for _, name := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	}) {
		sum += counts[name]
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return sum, strings.Join(parts, ", ")
}
