// Package cosmosdb is an embedded Azure Cosmos DB for tests and demonstrations: a subset of the REST protocol (version
// 2020-11-05) that the unmodified azcosmos client works against, and the clients for JavaScript, Python and Java in gateway
// mode: make clients runs small programs on each.
//
// An [Account] is an http.Handler, and has an in-process transport for clients in testing/synctest bubbles; both doors
// lead to the same code. What it promises:
//
//   - A write happens completely or not at all, batches included, and its order is the order of the history.
//   - Where the service is strict the account is strict: signatures, ETags (in batches too), sizes, depth, partition
//     keys, unique keys, times to live, ids that the routing gateway cannot address.
//   - A header that narrows a request is never ignored: what is not understood or known to be harmless is refused. Ranges
//     of effective partition keys are honoured for version 2 of the partition key.
//   - A query over several partitions has a plan, by which clients run it, for ORDER BY, TOP, OFFSET, LIMIT and COUNT.
//   - A number is a double: what a double cannot hold reads back rounded.
//   - What is not implemented is answered with 501, recorded as history.RefusedByCosmos and listed by [Account.Refusals].
//
// All methods may be called concurrently. Time is the time of package time, so that a bubble moves it. An account that is
// used inside a bubble must be made inside it. One account has one physical partition and keeps everything in memory.
//
// # Faults
//
// The account asks its fault plan before and after the effect of each request; the operation names are those of package
// history, and the key is the document id (for a batch the id of its first create). A client that gives up does not stop
// the service: a write that is delayed before its effect still happens.
//
//   - Drop cuts the connection: HTTP/1 closes, HTTP/2 resets the stream. In process the error is io.EOF, or
//     that of the condition [StreamReset] or [ConnectionRefused].
//   - Silence answers when the client has given up.
//   - Refuse answers with Status, Substatus, an x-ms-retry-after-ms where there is a hint, and Body or the usual error.
//     Status 207 or 200 with a literal array as Body imitates the results of a batch.
//   - Lag, before a read or query, serves it from a replica that lacks the last write. With a session token that the
//     replica has not reached the answer is 404/1002.
//   - Garble answers with text that is not what the client expects: before the effect, or with status 400, an HTML error
//     page; otherwise the right status with a JSON body that is cut off. Body replaces either.
//   - Detach, EndSession and CloseConnection belong to the broker and are refused.
package cosmosdb
