// Package deadletter answers what a person must know about a dead letter: was the message applied, and what happens when
// I press this?
//
// Every dead letter gets a [Verdict], computed from three sources: the message, the document in the store and
// the settings of the queue. The verdict says which actions are offered, refused or warned about, each with a sentence of
// what it would do. Looking touches nothing: messages are peeked, and the store is only read.
//
// # What the actions promise
//
// Reprocess runs the worker's own admission, handler, commit and judgement on the dead letter, where it lies, and removes
// it only when its documents are known to be committed. Resubmit sends the message again as it was, removes the dead
// letter after its copy was seen, and is refused where the copy would be lost or come straight back. Discard
// removes the dead letter. Each action is written to the [Ledger] before it has any effect and again when its outcome is
// known; when the ledger cannot be written, nothing is done.
//
// A dead letter is never removed before the outcome of its action is known. A crash between two steps leaves the dead
// letter where it was: a second run finds the message applied, or the copy sent, and only finishes. Two people who act on
// one dead letter at a time do no harm: the broker's lock lets one of them in, and the store applies a key once.
//
// # Whose message it is
//
// A message that another program dead-lettered is left to that program, and one for which the worker computed another document
// id is not acted on: what is stored under the id that the settings here lead to proves nothing about it.
//
// # Reaching one message
//
// The broker gives out dead letters from the front and no other way. To act on chosen ones, everything in front is locked,
// renewed, so that it does not come again, and released at the end. In a dead-letter queue this does not increment the delivery
// count. What is locked is only a number and a token: what a message says is peeked, since the client library cannot decode every
// message that the broker keeps.
//
// A [Reviewer] is safe for concurrent use, but two that lock at a time only hinder each other.
package deadletter
