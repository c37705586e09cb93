// Package shop is the handler for the messages of package traffic: every effect that a message can have, in one program. The
// tests of the whole path run it in bubbles, and torture runs it as the program shop.
package shop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/orderworker/orderworker/worker"
)

// Partition is the source of the partition, as WORKER_PARTITION names it.
const Partition = "property:entity"

// Handler finds the handler of a message by its subject. Types that are not here are ignored.
func Handler() worker.Handler {
	return worker.Route(worker.BySubject, map[string]worker.Handler{
		"order":   worker.HandlerFunc(Order),
		"debit":   worker.HandlerFunc(debit),
		"capture": worker.HandlerFunc(capture),
		"ship":    worker.HandlerFunc(ship),
		"project": worker.HandlerFunc(project),
		"revise":  worker.HandlerFunc(revise),
		"price":   worker.HandlerFunc(price),
	}, worker.IgnoreUnknown)
}

// Order makes one document of an order, and one of each of its lines.
func Order(_ context.Context, m worker.Message) (worker.Effects, error) {
	var body struct {
		Lines []json.RawMessage `json:"lines"`
	}
	if err := json.Unmarshal(m.Body, &body); err != nil {
		return worker.Effects{}, worker.Reject("InvalidOrder", err)
	}
	documents := []worker.Document{{Type: "order", Content: m.Body}}
	for i, line := range body.Lines {
		documents = append(documents, worker.Document{Name: fmt.Sprintf("line-%d", i+1), Type: "line", Content: line})
	}
	return worker.Create(documents...), nil
}

// command is the body of every other message.
type command struct {
	Amount int64  `json:"amount"`
	Note   string `json:"note"`
}

func commandOf(m worker.Message) (c command, err error) {
	if err := json.Unmarshal(m.Body, &c); err != nil {
		return c, worker.Reject("InvalidCommand", err)
	}
	return c, nil
}

// read reads the document that a command is about.
func read(ctx context.Context, m worker.Message, into any) (c command, etag string, err error) {
	if c, err = commandOf(m); err != nil {
		return c, "", err
	}
	state, err := m.Read(ctx, m.Partition)
	if err != nil {
		return c, "", err
	}
	return c, state.ETag, json.Unmarshal(state.Content, into)
}

// debit replaces an account as it was read.
func debit(ctx context.Context, m worker.Message) (worker.Effects, error) {
	var account struct {
		Balance int64 `json:"balance"`
		Debits  int   `json:"debits"`
	}
	c, etag, err := read(ctx, m, &account)
	if err != nil {
		return worker.Effects{}, err
	}
	if account.Balance < c.Amount {
		return worker.Effects{}, worker.Reject("InsufficientFunds", fmt.Errorf("the balance is %d and the debit %d", account.Balance, c.Amount))
	}
	account.Balance -= c.Amount
	account.Debits++
	content, err := json.Marshal(account)
	return worker.Apply(worker.Replace(m.Partition, content, etag)), err
}

// capture sets a bill to PAID once, whichever of several messages comes first.
func capture(ctx context.Context, m worker.Message) (worker.Effects, error) {
	var bill struct{ Status string }
	c, _, err := read(ctx, m, &bill)
	if err != nil {
		return worker.Effects{}, err
	}
	if bill.Status == "PAID" {
		return worker.Effects{}, worker.Reject("AlreadyPaid", errors.New("another message has paid it"))
	}
	return worker.Apply(worker.Patch(m.Partition, worker.Set("/status", "PAID"), worker.Set("/paid", c.Amount)).If("from c where c.status = 'NEW'")), nil
}

// ship adds to a bill without a read: the inbox record keeps a copy of the message from it.
func ship(_ context.Context, m worker.Message) (worker.Effects, error) {
	c, err := commandOf(m)
	return worker.Apply(worker.Patch(m.Partition, worker.Increment("/shipped", c.Amount), worker.Add("/history/-", m.MessageID))), err
}

// project stores a whole state with its version, and creates it where there is none.
func project(_ context.Context, m worker.Message) (worker.Effects, error) {
	c, err := commandOf(m)
	if err != nil {
		return worker.Effects{}, err
	}
	content, err := json.Marshal(map[string]any{"version": c.Amount, "note": c.Note})
	return worker.Apply(worker.Upsert(m.Partition, content)).SetVersion(m.Partition, "/version", c.Amount), err
}

// revise patches a document that exists, with a version.
func revise(_ context.Context, m worker.Message) (worker.Effects, error) {
	c, err := commandOf(m)
	return worker.Apply(worker.Patch(m.Partition, worker.Set("/note", c.Note))).SetVersion(m.Partition, "/version", c.Amount), err
}

// price stores a whole state without a record.
func price(_ context.Context, m worker.Message) (worker.Effects, error) {
	return worker.Apply(worker.Upsert(m.Partition, m.Body)).WithoutRecord(), nil
}
