package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/orderworker/orderworker/internal/traffic"
	"github.com/orderworker/orderworker/testenv/history"
)

// tally adds up the rounds.
type tally struct {
	sent                     map[traffic.Kind]int
	completed                int
	dead                     map[string]int
	documents                int
	deliveries, most         int
	killed, stopped, started int
	faults                   int
	promises                 history.Report
}

func (t *tally) add(r *round, events []history.Event, outcomes []traffic.Outcome, report history.Report, documents int) {
	if t.sent == nil {
		t.sent, t.dead = map[traffic.Kind]int{}, map[string]int{}
	}
	r.mu.Lock()
	for _, m := range r.sent {
		t.sent[m.Kind]++
	}
	t.killed, t.stopped = t.killed+r.killed, t.stopped+r.stopped
	r.mu.Unlock()
	for _, f := range outcomes {
		if f.Completed {
			t.completed++
		} else {
			t.dead[f.Reason]++
		}
	}
	for _, e := range events {
		if e.Op == history.Lock && e.Effect {
			t.deliveries++
			t.most = max(t.most, e.Delivery)
		}
	}
	t.documents += documents
	t.started += r.fleet.started
	t.faults += r.env.Faults.Struck()
	t.addPromises(report)
}

func (t *tally) addPromises(report history.Report) {
	if t.promises == nil {
		t.promises = report
		return
	}
	for i, p := range report {
		t.promises[i].Checked += p.Checked
		t.promises[i].Broken = append(t.promises[i].Broken, p.Broken...)
	}
}

// print writes the report. A tally without a round prints nothing.
func (t *tally) print(w io.Writer) {
	if t.sent == nil {
		return
	}
	total := 0
	for _, n := range t.sent {
		total += n
	}
	fmt.Fprintf(w, "\nsent           %7d  %s\n", total, breakdown(t.sent))
	fmt.Fprintf(w, "completed      %7d\n", t.completed)
	fmt.Fprintf(w, "dead-lettered  %7d  %s\n", sumOf(t.dead), breakdown(t.dead))
	fmt.Fprintf(w, "documents      %7d\n", t.documents)
	fmt.Fprintf(w, "deliveries     %7d  at most %d of one message\n", t.deliveries, t.most)
	fmt.Fprintf(w, "faults         %7d\n", t.faults)
	fmt.Fprintf(w, "workers        %7d  %d killed, %d stopped\n\n", t.started, t.killed, t.stopped)
	promises := table{head: []string{"promise", "checked", "broken"}, most: []int{100, 9, 9}}
	for _, p := range t.promises {
		promises.rows = append(promises.rows, []string{p.Sentence, fmt.Sprint(p.Checked), fmt.Sprint(len(p.Broken))})
	}
	promises.write(w)
}

func sumOf[K comparable](counts map[K]int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}

// breakdown lists counts by name, the largest first.
func breakdown[K ~string](counts map[K]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b K) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(string(a), string(b))
	})
	parts := make([]string, len(names))
	for i, n := range names {
		parts[i] = fmt.Sprintf("%s %d", n, counts[n])
	}
	return strings.Join(parts, ", ")
}
