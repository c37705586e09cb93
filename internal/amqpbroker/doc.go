// Package amqpbroker reaches a Service Bus queue and its dead letters over AMQP 1.0, for package deadletter.
//
// The client of the SDK cannot be used for that. It stops with a panic at a message whose DeadLetterReason is no string,
// which any sender can write, it hides what it has no field for, and a peek that panics tells not even the number of the
// message that was to blame. Here a message stays the bytes that the broker keeps until somebody wants to look inside.
//
// A [Broker] uses one connection, with the same frames as the SDK: a token put at $cbs, a receiver in peek-lock mode, a
// sender, and the requests peek-message, renew-lock and update-disposition at the management node. It needs the right to
// listen, and to send when something is sent, and never the right to manage. A lost connection is opened again by the next
// call. Locks outlive connections, since they are settled and renewed by their tokens.
package amqpbroker
