package deadletter

import (
	"strconv"
	"time"
)

// TableHeader names the columns of [Item.TableRow].
func TableHeader() []string {
	return []string{"sequence", "message id", "verdict", "reason", "came in", "description"}
}

// TableRow is a message as a row of a table for a spreadsheet, in which nothing of a message can be a formula.
func (i Item) TableRow() []string {
	l, came := i.DeadLetter, ""
	if !l.EnqueuedAt.IsZero() {
		came = l.EnqueuedAt.UTC().Format(time.RFC3339)
	}
	id, _ := l.MessageID()
	return []string{strconv.FormatInt(l.Sequence, 10), Cell(id), string(i.Verdict.Kind), Cell(l.Reason()), came, Cell(l.Description())}
}
