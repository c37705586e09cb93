package deadletter

import (
	"context"
	"slices"
)

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
	run.summary.Steps = len(messages)
	numbers := make([]int64, len(messages))
	for i, l := range messages {
		id, _ := l.MessageID()
		numbers[i] = int64(i)
		run.steps[int64(i)] = PlanStep{Sequence: l.Sequence, Action: a.Command.Action, MessageID: id}
	}
	if a.Command.Action == Resubmit {
		var err error
		if run.Command.queueEnd, err = r.queueEnd(ctx); err != nil {
			return run.summary, err
		}
	}
	for group := range slices.Chunk(numbers, importGroup) {
		run.group(ctx, group, func(ctx context.Context, n int64) Outcome { return run.fromFile(ctx, messages[n]) })
		switch {
		case ctx.Err() != nil:
			run.summary.Stopped = interrupted
			return run.summary, nil
		case run.tooMany() != "":
			run.summary.Stopped = run.tooMany()
			return run.summary, nil
		}
	}
	return run.summary, nil
}

// fromFile deals with one message of a file to its end. What was sent is read anew for each: messages of a file may be the same.
func (r *run) fromFile(ctx context.Context, l *DeadLetter) Outcome {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), actTime)
	defer cancel()
	c := r.Command
	if c.Action == Resubmit {
		var err error
		id, _ := l.MessageID()
		if c.sent, c.seen, err = r.loadSent(ctx, id); err != nil {
			return Outcome{Sequence: l.Sequence, MessageID: id, Action: c.Action}.with(Broken, err.Error())
		}
	}
	return r.act(ctx, c, l, func(context.Context) error { return nil })
}
