package main

import (
	"time"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
)

// randomFaults are what goes wrong during torture, each with its probability at every point: often enough that a minute has
// hundreds of faults, seldom enough that work gets done.
func randomFaults() []fault.Choice {
	const (
		often  = 0.02
		seldom = 0.005
		rarely = 0.001
	)
	before, after := fault.Before, fault.After
	return []fault.Choice{
		// The store refuses for a while, or is slow.
		{Op: history.CreateDocument, Phase: before, Probability: often, Action: fault.Throttle(50 * time.Millisecond)},
		{Op: history.ExecuteBatch, Phase: before, Probability: often, Action: fault.Reply(429, 3200)},
		{Op: history.CreateDocument, Phase: before, Probability: seldom, Action: fault.Reply(503, 0)},
		{Op: history.ExecuteBatch, Phase: before, Probability: seldom, Action: fault.Reply(449, 0)},
		{Op: history.ReadDocument, Phase: before, Probability: seldom, Action: fault.Reply(408, 0)},
		{Op: "cosmosdb.*", Phase: before, Probability: often, Action: fault.Wait(150 * time.Millisecond)},
		// The store loses a request, or the answer to one that it has carried out.
		{Op: "cosmosdb.*", Phase: before, Probability: seldom, Action: fault.DropReply()},
		{Op: history.CreateDocument, Phase: after, Probability: often, Action: fault.DropReply()},
		{Op: history.ExecuteBatch, Phase: after, Probability: often, Action: fault.DropReply()},
		{Op: history.CreateDocument, Phase: after, Probability: seldom, Action: fault.Reply(500, 0)},
		// The broker loses settlements and the answers to them.
		{Op: history.Complete, Phase: before, Probability: seldom, Action: fault.DropReply()},
		{Op: history.Complete, Phase: after, Probability: seldom, Action: fault.DropReply()},
		{Op: history.Complete, Phase: after, Probability: seldom, Action: fault.Action{Kind: fault.Silence}},
		{Op: history.Complete, Phase: before, Probability: seldom, Action: fault.Reject("com.microsoft:server-busy")},
		{Op: history.DeadLetter, Phase: before, Probability: seldom, Action: fault.DropReply()},
		{Op: history.DeadLetter, Phase: after, Probability: seldom, Action: fault.DropReply()},
		{Op: history.Renew, Phase: before, Probability: often, Action: fault.Reply(500, 0)},
		{Op: history.Complete, Phase: before, Probability: often, Action: fault.Wait(100 * time.Millisecond)},
		// Links and connections break under deliveries.
		{Op: history.Lock, Phase: before, Probability: seldom, Action: fault.DetachLink("amqp:link:detach-forced")},
		{Op: history.Lock, Phase: after, Probability: rarely, Action: fault.DetachLink("com.microsoft:server-busy")},
		{Op: history.Lock, Phase: after, Probability: seldom, Action: fault.Action{Kind: fault.Silence}},
		{Op: history.Lock, Phase: after, Probability: rarely, Action: fault.Action{Kind: fault.CloseConnection, Condition: "amqp:connection:forced"}},
		{Op: history.Lock, Phase: after, Probability: rarely, Action: fault.Action{Kind: fault.EndSession, Condition: "amqp:internal-error"}},
		// Even getting back is hard.
		{Op: history.Connect, Phase: before, Probability: 0.1, Action: fault.DropReply()},
		{Op: history.PutToken, Phase: before, Probability: often, Action: fault.Reply(500, 0)},
		{Op: history.Attach, Phase: before, Probability: often, Action: fault.Reject("com.microsoft:server-busy")},
	}
}
