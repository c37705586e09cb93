// Package cosmosstore keeps the documents of messages in one container of an Azure Cosmos DB account. It is the [worker.Store]
// of package worker, over an unmodified azcosmos.
//
//	store, err := cosmosstore.Open(ctx, cosmosstore.Options{
//		Endpoint: "https://shop.documents.azure.com", Credential: credential, // of package azidentity
//		Database: "shop", Container: "orders", // partition key path /pk
//		Types: []string{"order", "line"},
//	})
//	if err != nil {
//		return err // wrong options, or a container that does not fit: no waiting helps
//	}
//	defer store.Close()
//	w, err := worker.New(worker.Config{}, broker, store, handler)
//
// # What it promises
//
// [Store.Commit] creates all documents of a message, or none, and at most once per key: the first of them carries the inbox
// record and has an id that belongs to the key alone, so its creation decides. One document is one conditional create; several
// are one transactional batch that begins with it. When it exists already, the store returns the stored record, on every path on
// which it can learn of it, and judges nothing itself: see [worker.Judge].
//
// An error never means that the documents are not stored unless it says so. [worker.UnavailableError] and its field
// Ambiguous say what is known; the same commit may be sent again at any time, since its attempt lets it recognise its own
// document. Any number of processes may use one container. All methods may be called concurrently.
//
// The promise ends where the service's own does. An account with several write regions lets two creates of one id succeed, so
// it is refused, at the start and while running, within the five minutes after which azcosmos reads the account again. A
// container that does not fit any more is refused as soon. A forced fail-over of an account with several regions and a
// consistency below strong may lose the newest documents, so that their messages are new again.
//
// # What a message becomes
//
// The content of each document is a member of its own, named by the type, so that nothing in it can override what the store
// writes. The container's own partition key path takes the id of the first document.
//
//	{ "id": "1042", "pk": "1042", "type": "order", "order": { ...content... },
//	  "exactNumbers": { "/amount": "12345678901234567890" },
//	  "request": { "version": 1, "key": "1042", "messageId": "1042", "program": "shop", "programVersion": "1.4.0", "hash": "...",
//	               "parameters": {...}, "attempt": "...", "sequenceNumber": 7, "enqueuedAt": "...", "committedAt": "...",
//	               "parts": ["line-1"] } }
//
//	{ "id": "1042~part.line-1", "pk": "1042", "type": "line", "line": { ...content... },
//	  "request": { "version": 1, "key": "1042", "messageId": "1042", "attempt": "...", "part": "line-1", "document": "1042", ... } }
//
// The member request of the first document is the inbox record. exactNumbers holds the text of numbers that the service would
// round, also in documents of others that a message replaces, and partTTLs, beside parts, the times to live of parts that have one. A later change of a document by others must leave
// request alone. With [Options.InboxRecords] the inbox record is a document of its own,
// {"id": "1042~part.inbox-record", "type": "inboxRecord", "request": {...}, "ttl": ...}, and the others are as above.
//
// A message that is claimed has such a record in progress first, without committedAt: "state": "claimed", "claim": {"number": 1,
// "leaseSeconds": 60}. [Store.Commit] replaces just that version of it in the transaction of the documents. It holds no time: _ts says
// since when, and the Date of the reply how long ago that is, so that no clock but the service's counts. A claim with "released": true is as
// good as no record.
//
// # How the stored format evolves
//
// The member request has a version, which is 1. A version that this package does not know, none at all, or a state other than
// committed, stale and claimed (a record without a state is committed) makes a record unreadable: [worker.Record.Unknown] says so, and it is never
// judged equal, since a newer worker may store there what is not committed yet. A reader ignores members that it does not
// know, so a member whose absence changes no judgement may be added to version 1, as program and programVersion were;
// anything else needs a new version.
//
// # What it costs
//
// A new message is one create or one batch. A duplicate is one refused create and one read, with inbox records two, and when it
// has several documents one batch that reads the others: an order that lost a line is no duplicate. A document that no read
// shows is looked for once more by a batch of one read, which the primary answers. [Store.Find] is one read, and one batch for the
// parts. A claim is one create more, and a renewal, take-over or release a batch of one replace. The first call reads account and container before that. [worker.Outcome] counts what was sent.
//
// # Whose fault a refusal is
//
// A write that is refused for a cause which its status does not tell (400, 401, 405, 413 for a small document, an answer
// without sense, a conflict with a document that is not there) may be one message's fault or the whole store's: a read-only
// key and many a proxy answer reads as ever. So the store sends a write that can have no effect, and which a working store
// refuses with 400; and it counts: when three messages with different keys were refused in a row, and no write was accepted
// in between, the fault is the store's. Such a message is not blamed. What is left is a store that refuses every real write and
// no other, while one or two keys are all that comes: their messages are blamed at their last delivery.
package cosmosstore
