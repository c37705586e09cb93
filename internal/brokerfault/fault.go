// Package brokerfault is the one place that looks inside the errors of the Service Bus client, azservicebus, and of the AMQP
// library below it. It never matches the text of an error.
package brokerfault

// A Fault is what an error of the broker's client means.
type Fault int

// The faults.
const (
	None         Fault = iota
	LockLost           // the lock of the message is lost
	Closed             // we closed the receiver
	Canceled           // the context of the call ended
	Connection         // the broker does not answer: name, network, TLS, or a connection lost without a word
	Broken             // the broker answered, and ended or refused the link, session or connection for a reason of its own
	Throttled          // the broker asks for patience
	NoToken            // the identity got no token, so that the broker was not asked
	Unauthorized       // the identity lacks the right, its token is not valid, or its address is not allowed
	NotFound           // there is no such queue
	Disabled           // the queue is disabled
	NotAllowed         // the queue does not take such a receiver, such as one without a session where sessions are required
	Quota              // a limit of the namespace or of the queue is reached
	TooLarge           // what was sent is too large
	Stuck              // the call did not return. For callers that bound their calls; Of never returns it
	Panic              // the call panicked. For callers that recover; Of never returns it
	Unknown            // anything else
)

// Advice says in the operator's words what a fault means and what to do. It has no full stop at its end.
func (f Fault) Advice() string {
	switch f {
	case NoToken:
		return "the identity gets no token. Check that an identity is assigned and can sign in; neither a role on the queue nor the network of the namespace is the cause"
	case Unauthorized:
		return "the broker refuses access to the queue. Give the identity the role Azure Service Bus Data Receiver on it (a new role can take minutes to arrive), " +
			"and check that the firewall of the namespace or its private endpoint lets this address in"
	case NotFound:
		return "there is no such queue. Create it, or correct the name (SERVICEBUS_QUEUE) or the namespace; a worker that runs waits for it and goes on by itself"
	case Disabled:
		return "the queue is disabled. Set its status to Active"
	case NotAllowed:
		return "the queue refuses this receiver. A queue that requires sessions needs SERVICEBUS_SESSIONS=true, and no other queue may have it. One that forwards its messages cannot be used, nor can a topic"
	case Quota:
		return "a limit of the namespace is reached. Look for dead letters that fill it and for receivers that are never closed"
	case Throttled:
		return "the broker asks for patience. The namespace may be too small for its load"
	case Connection, Closed, Canceled:
		return "the broker cannot be reached. Check its address, the network, firewall or private endpoint, and the status of the namespace"
	case Broken:
		return "the broker answers and ends the connection. Look at the health and the metrics of the namespace"
	case Stuck:
		return "a call of the broker's client does not return. It is abandoned and the connection is replaced"
	case Panic:
		return "the broker's client panicked over a message. Messages are received one at a time to isolate it; the broker dead-letters it in the end"
	}
	return "the broker answers with an unexpected error"
}
