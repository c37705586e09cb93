package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
	"github.com/orderworker/orderworker/testenv/traffic"
)

// order is a message of the demonstration that is an order.
func order(id, body, what, why string, writes int) *demoMessage {
	return &demoMessage{Message: traffic.Message{ID: id, Body: []byte(body), Kind: traffic.New, Type: traffic.TypeOrder, Entity: id}, what: what, why: why, writes: writes, deliveries: 1}
}

// command is a message of the demonstration that changes something. Amount may be a version.
func command(id, do, entity string, amount int64, what, why string, writes int) *demoMessage {
	body, _ := json.Marshal(traffic.Command{Do: do, Entity: entity, Amount: amount, Note: "demo"}) // texts and a number have no error
	return &demoMessage{Message: traffic.Message{ID: id, Body: body, Kind: traffic.NewCommand, Type: do, Entity: entity}, what: what, why: why, writes: writes, deliveries: 1}
}

// dead tells that a message must be dead-lettered.
func (m *demoMessage) dead(reason string) *demoMessage {
	m.reason = reason
	return m
}

// stored tells that a document is stored before.
func (m *demoMessage) stored(members string) *demoMessage {
	m.Before = fmt.Sprintf(`{"id":%q,"pk":%[1]q,%s}`, m.Entity, members)
	return m
}

func (d *demo) newOrders(ctx context.Context) error {
	d.sys.say("Worker 1 starts. Sending four messages: two orders, an order with three lines, and one that nobody can read.")
	unreadable := order("1004", `{"orderId":"1004","amount":`, "a body that is no JSON", "", 0).dead("NotJSON")
	unreadable.Kind = traffic.Unreadable
	return d.sendAndWait(ctx,
		order("1001", `{"orderId":"1001","customer":"Ada","amount":40}`, "new order", "the id was new: created", 1),
		order("1002", `{"orderId":"1002","customer":"Grace","amount":12.5}`, "new order", "the id was new: created", 1),
		order("1003", `{"orderId":"1003","lines":[{"sku":"tea","quantity":2},{"sku":"pot","quantity":1},{"sku":"cup","quantity":6}]}`,
			"new order with three lines", "the order and its 3 lines were created in one transaction", 4),
		unreadable)
}

func (d *demo) repeats(ctx context.Context) error {
	d.sys.say("Sending three more: one again, one again with its names in another order, and one under a used id with another amount.")
	return d.sendAndWait(ctx,
		order("1001", `{"orderId":"1001","customer":"Ada","amount":40}`, "1001 again, the same bytes", "already stored, with the same hash", 0),
		order("1002", `{ "amount": 12.50, "customer": "Grace", "orderId": "1002" }`, "1002 again, names in another order", "already stored, with the same hash", 0),
		order("1001", `{"orderId":"1001","customer":"Ada","amount":400}`, "1001 with another amount", "", 0).dead("ContentConflict"))
}

// crash kills the worker at the worst moment: its document is committed, and the broker does not know yet.
func (d *demo) crash(ctx context.Context) error {
	alive, err := d.fleet.alive()
	if err != nil || len(alive) == 0 {
		return errors.Join(errors.New("no worker is running"), err)
	}
	d.Faults.Add(fault.On(history.CreateDocument).Key("1005").After(fault.Call(alive[0].kill)))
	d.sys.say("Sending one more, and killing worker 1 (SIGKILL to process %d) just after it has committed and before it can complete.", alive[0].pid())
	m := order("1005", `{"orderId":"1005","customer":"Alan","amount":7}`, "new order; its worker is killed between commit and complete",
		"delivery 1 committed and its worker died; delivery 2 found the document, with the same hash", 1)
	m.deliveries = 2
	if err := d.send(ctx, m); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, demoLimit)
	defer cancel()
	select {
	case <-alive[0].done:
	case <-ctx.Done():
		return fmt.Errorf("worker 1 did not commit order 1005 within %v", demoLimit)
	}
	if _, err := d.fleet.start(); err != nil {
		return err
	}
	d.sys.say("Worker 1 is dead. Worker 2 starts; the broker delivers the order again when the lock of the dead worker ends, within %v.", demoLock)
	return d.wait(ctx, m)
}

func (d *demo) firstChanges(ctx context.Context) error {
	d.sys.say("The program shop changes what exists. Sending a payment of a bill, a debit of an account with 100, a shipment, version 3 of a")
	d.sys.say("projection, a price, and a message of a type that is none of its business.")
	return d.sendAndWait(ctx,
		command("2001", traffic.Capture, "bill-1", 40, "payment of bill 1", "the bill was set to PAID, in one transaction with the inbox record", 2).stored(`"status":"NEW","paid":0,"shipped":0,"history":[]`),
		command("2002", traffic.Debit, "account-1", 60, "debit of 60", "the account was read and replaced: 40 are left", 2).stored(`"balance":100,"debits":0`),
		command("2003", traffic.Ship, "bill-2", 3, "shipment of 3", "the bill was patched without a read", 2).stored(`"status":"NEW","paid":0,"shipped":0,"history":[]`),
		command("2004", traffic.Project, "projection-1", 3, "version 3 of a projection", "no newer version is stored", 2),
		command("2005", traffic.Price, "article-1", 5, "price of an article", "the whole state was stored, without a record", 1),
		command("2006", traffic.Foreign, "stranger-1", 1, "a type that the program does not know", "ignored", 0))
}

func (d *demo) laterChanges(ctx context.Context) error {
	d.sys.say("Sending the payment, the debit and the shipment again; another payment, another debit of 60; and version 1 after version 3.")
	return d.sendAndWait(ctx,
		command("2001", traffic.Capture, "bill-1", 40, "2001 again", "its inbox record is stored", 0),
		command("2002", traffic.Debit, "account-1", 60, "2002 again", "its inbox record is stored", 0),
		command("2003", traffic.Ship, "bill-2", 3, "2003 again", "its inbox record is stored", 0),
		command("2007", traffic.Capture, "bill-1", 40, "a second payment of bill 1", "", 0).dead(traffic.AlreadyPaid),
		command("2008", traffic.Debit, "account-1", 60, "another debit of 60", "", 0).dead(traffic.InsufficientFunds),
		command("2009", traffic.Project, "projection-1", 1, "version 1 of the projection", "stale: nothing but its record was stored", 1))
}
