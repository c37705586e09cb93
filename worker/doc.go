// Package worker consumes an Azure Service Bus queue in peek-lock mode and commits what its messages stand for to a
// [Store], effectively once.
//
//	handle := worker.HandlerFunc(func(_ context.Context, m worker.Message) (worker.Effects, error) {
//		return worker.Create(worker.Document{Type: "order", Content: m.Body}), nil
//	})
//	broker := worker.NewBroker(func() (*azservicebus.Client, error) {
//		return azservicebus.NewClient("shop.servicebus.windows.net", credential, nil)
//	}, "orders")
//	w, err := worker.New(worker.Config{Logger: log}, broker, store, handle) // the store is one of package cosmosstore
//	if err != nil {
//		return err
//	}
//	return w.Run(ctx) // until ctx ends
//
// The example has the whole of it. For a program with commands, settings and the review of dead letters around the handler see
// package app.
//
// # The guarantee
//
// For one consumer and one message key, the effects of a message, which are documents created and changed, are committed at
// most once, and all of them or none. A message leaves the queue only when its effects are known to be committed, or equal
// content is known to have been processed before, or the handler said that it is none of its business, or it is in the
// dead-letter queue with a reason that a person can act on. Whatever fails, an uncommitted message stays on the queue, and an
// outage of the store dead-letters nothing. The exception is said by the handler, see [Effects.WithoutRecord].
//
// It rests on one thing: the store creates the inbox record of a key if and only if there is none. Everything else here
// may be lost, repeated or late. A message is completed for [CauseCommitted], to which every way leads through [Judge], or for
// [CauseIgnored], when the handler ignored the message. The first writer of a key wins; other content under the key
// is a conflict, no matter which was first at the broker.
//
// A process that has committed nothing yet has proven nothing: until its first commit it asks the store about one message at a
// time, so that restarts while writes hang touch one message each at most. A message that is touched in its last delivery by a
// process that is stopped then is dead-lettered by the broker, as below.
//
// What no worker can do: a process that must stop while it has a message in its last delivery cannot keep the broker from
// dead-lettering that message, with its own reason MaxDeliveryCountExceeded, when the lock ends. Nothing is lost then
// either: reprocess the dead letter.
//
// # Promises on concurrency
//
//  1. A handler runs for at most Concurrency messages at a time, one that ignored its context and was left behind included.
//     Messages that the store refuses while it takes others come on top, at most as many again, so that they hold up nobody.
//     Concurrency messages more may be about to be settled.
//  2. No more messages are asked for than can start at once, so no lock runs down in a queue of our own. What the broker
//     hands out in the moment between two receive calls goes back by itself and costs no delivery; what it hands to a receiver
//     that is being given up comes back when its lock ends, which costs one. On a thin line, where locks arrive nearly expired,
//     fewer are asked for at once until they arrive fresh again.
//  3. A lock is renewed half way to its end, by the monotonic clock, from before the first step until the settlement begins.
//     A lost lock cancels the handler with [ErrLockLost]; after the commit it is harmless.
//  4. A commit starts only under a lock that covers it.
//  5. Nothing is settled twice on one object, and nothing without a lock.
//  6. Every call of the broker's client, of the store and of the handler is bounded from outside, also when it ignores its
//     context. What does not return is left behind, and its slot stays taken.
//  7. [Worker.Run] returns only after every goroutine that holds a message has ended or was left behind by promise 6, at
//     the latest DrainTimeout and some ten seconds after it was told to stop.
package worker
