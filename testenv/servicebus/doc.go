// Package servicebus is an Azure Service Bus in process: queues, topics with subscriptions, and their dead-letter queues,
// spoken to over AMQP 1.0 by the unmodified client libraries.
//
// They are azservicebus, and the clients for JavaScript, Python and Java: make clients runs small programs on each. Where
// clients read the protocol differently, a comment says who needs what.
//
// A [Broker] has two doors with the same code behind them. [Broker.Serve] listens on a socket, for clients whose connection
// string says UseDevelopmentEmulator=true. [Broker.Dial] gives one end of an in-memory connection, for a client's
// NewWebSocketConn; with it everything runs inside testing/synctest bubbles, where a lock of five minutes costs nothing.
// [Broker.Close] ends every goroutine the broker started and waits for it.
//
// The broker is stricter than the official emulator. Settling or renewing after the lock has ended fails with
// com.microsoft:message-lock-lost. A lock ends without a word to the client. Tokens are verified, and without one, or a key
// shown by SASL PLAIN, no link is attached. Sizes and quotas are enforced. Messages pass byte for byte: the sections that a
// sender wrote are stored as they came, in any order, and only the header, the broker's annotations and the properties that
// a settlement asks to modify are written anew. A message that was sent without a message id gets one, as in the service.
//
// In a bubble, time stands still while a goroutine waits for a mutex, and the client library holds mutexes while it waits
// for the broker in these operations: connecting, putting tokens (again every five minutes), attaching links and closing
// them. Where two goroutines use one client at that moment, a delayed or missing answer to one of them stops the bubble
// for ever. Delay or silence those operations only where one goroutine uses the client, or give each its own client.
// Answers to sends, settlements, renewals and deliveries may come late or never.
//
// A topic gives each of its subscriptions a copy of every message. A subscription is a queue in everything but its name,
// "topic/Subscriptions/name": locks, delivery counts, dead letters, faults, history and the methods of Broker are the same.
//
// Rules select what a subscription gets; [Rule] and [Filter] say how, and what SQL cannot be evaluated makes [New] fail.
//
// In a queue or a subscription that requires sessions only the receiver that has locked a session gets its messages, in
// order. A lock that is not renewed ends: the link is detached with com.microsoft:session-lock-lost, and what its receiver
// had counts as delivered. A receiver that goes away, by whatever way, gives its session up, and nothing is counted.
//
// [Broker.Handler] speaks the administration API of Azure over HTTP, for queues, topics, subscriptions and rules.
//
// What it does not have, it refuses loudly: transactions, transfer dead-letter queues, management operations that it does not know, TLS and
// WebSockets. Each refusal is an error to the client, an event history.Refused, and an entry of [Broker.Refusals], so that
// a test environment can fail the test that asked for it.
//
// Faults are asked of the plan before and after the effect of these operations of package history; the key is the
// MessageId unless said otherwise, and the entity is the path of the queue, topic or subscription. Connect (no key) and
// PutToken, Attach, Peek (key: the entity's path); Send, Schedule, CancelScheduled, Lock, Take, Renew, Complete, Abandon,
// DeadLetter, Defer, Release, ReceiveDeferred; ManageRules (key: the rule's name); RenewSession, GetSessionState,
// SetSessionState (key: the session id), ListSessions. Attach is the point at which a session is accepted. Each kind of action but Lag can be carried out. Refuse rejects a transfer
// or a settlement with the Condition, or answers a management or $cbs request with the Status; where there is no answer to
// refuse with, it detaches the link (Lock, Take) or cuts the connection (Connect). Silence before Lock uses up one credit
// and delivers nothing; after Lock the message is locked and never arrives. Waiting never holds up another operation, but
// messages sent over one link keep their order, and so do the messages of one session.
package servicebus
