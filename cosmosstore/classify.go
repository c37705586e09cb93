package cosmosstore

import (
	"net/http"
)

// operation is what the store asked of the account.
type operation string

const (
	opCreate        operation = "create"
	opBatch         operation = "batch"           // the whole batch, by its HTTP status
	opBatchCreate   operation = "create in batch" // one create of a batch, by its own status
	opBatchChange   operation = "change in batch" // one change of a batch, by its own status
	opRead          operation = "read"
	opReadContainer operation = "container read" // of account and container, before anything else
)

// class is what an answer means for the one who asked.
type class int

const (
	// done: the operation had its effect, or the document was read.
	done class = iota + 1
	// exists: a document with the id, or with a unique key, exists already.
	exists
	// absent: there is no such document, or a replica has not seen it yet.
	absent
	// lagging: no replica has reached the session token yet.
	lagging
	// contended: nothing happened, and a short random wait helps.
	contended
	// ambiguous: a write may have happened. The same write may be repeated, since it carries its nonce.
	ambiguous
	// unexpected: an answer that does not belong to the question. A write may have happened.
	unexpected
	// unavailable: nothing happened, and the store cannot be used now.
	unavailable
	// tooLarge: the documents are larger than the store takes.
	tooLarge
	// partitionFull: the logical partition takes no more.
	partitionFull
	// misconfigured: nothing can be stored until a person changes something.
	misconfigured
	// refused: the service refused this request for a cause that its status does not tell. It may be this message or the
	// whole store: a read of another document tells them apart.
	refused
	// moved: a document is no longer as it was read.
	moved
	// rolledBack: another operation of the batch failed.
	rolledBack
)

// The substatuses that change what a status means.
const (
	subWriteForbidden      = 3    // 403: this region takes no writes, a fail-over is going on
	subAccountMoving       = 1008 // 403: the account is not found in this region, a fail-over is going on
	subPartitionFull       = 1014 // 403: the logical partition has reached its size
	subWrongPartitionKey   = 1001 // 400: the value in the document is not the one in the header
	subSessionBehind       = 1002 // 404: the replica has not reached the session token
	subOwnerMissing        = 1003 // 404: the container or the database does not exist
	subContainerBeingBuilt = 1013 // 404: the container is being created
)

// classify says what an answer means. It is a pure function of plain values, and the only place where statuses count.
func classify(op operation, a answer) class {
	switch a.failure {
	case answered:
		return classifyStatus(op, a)
	case notSent, noToken:
		return unavailable
	case severalRegions:
		return misconfigured
	}
	if op == opCreate || op == opBatch {
		return ambiguous
	}
	return unavailable
}

// writes reports whether an operation is a write or a part of one.
func (op operation) writes() bool { return op == opCreate || op == opBatch || op.inBatch() }

// inBatch reports whether an operation is part of a batch that writes.
func (op operation) inBatch() bool { return op == opBatchCreate || op == opBatchChange }

func classifyStatus(op operation, a answer) class {
	switch a.status {
	case http.StatusTooManyRequests:
		return unavailable
	case http.StatusForbidden:
		return classifyForbidden(a.substatus)
	case http.StatusNotFound:
		return classifyNotFound(op, a.substatus)
	case http.StatusRequestTimeout, http.StatusGone, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if op.writes() {
			return ambiguous
		}
		return unavailable
	case statusRetryWith:
		return contended
	case http.StatusRequestEntityTooLarge:
		if op.writes() {
			return tooLarge
		}
		return refused
	case http.StatusBadRequest:
		if a.substatus == subWrongPartitionKey && op.writes() {
			return misconfigured
		}
		return refused
	case http.StatusPreconditionFailed:
		if op == opBatchChange {
			return moved
		}
		return refused
	case http.StatusConflict:
		if op == opCreate || op.inBatch() {
			return exists
		}
		return unexpected
	case http.StatusFailedDependency:
		if op.inBatch() {
			return rolledBack
		}
		return unexpected
	}
	return classifyOther(op, a.status)
}

// statusRetryWith is what the service answers to one of several writes that meet.
const statusRetryWith = 449

// classifyOther handles the statuses that have one good meaning or none.
func classifyOther(op operation, status int) class {
	good := http.StatusOK
	if op == opCreate || op == opBatchCreate {
		good = http.StatusCreated
	}
	switch {
	case status == good, op == opBatchChange && (status == http.StatusCreated || status == http.StatusNoContent):
		return done
	case status >= 500:
		if op == opRead || op == opReadContainer {
			return unavailable
		}
		return ambiguous
	case status >= 400:
		return refused
	}
	return unexpected
}

func classifyForbidden(substatus int) class {
	switch substatus {
	case subWriteForbidden, subAccountMoving:
		return unavailable
	case subPartitionFull:
		return partitionFull
	}
	return misconfigured // a role or a firewall rule is missing, or the identity may not do this at all
}

func classifyNotFound(op operation, substatus int) class {
	switch {
	case substatus == subContainerBeingBuilt:
		return unavailable
	case op == opRead && substatus == subSessionBehind:
		return lagging
	case substatus == subSessionBehind:
		return unavailable
	case (op == opRead || op == opBatchChange) && substatus != subOwnerMissing:
		return absent
	}
	return misconfigured // a create, or the container itself, is not found: the container or the database is missing
}

// fixFor says what a person can do about a misconfigured answer.
func fixFor(op operation, a answer) string {
	switch {
	case a.failure == severalRegions:
		return fixSeveralRegions
	case a.explanation.fix != "":
		return a.explanation.fix
	case a.status == http.StatusUnauthorized && op.writes():
		return "Use a key that may write, which a read-only key may not, or an identity with a data plane role that may create " +
			"items, such as Cosmos DB Built-in Data Contributor. If reads fail too, check that the key belongs to this account and " +
			"has not been rotated."
	case a.status == http.StatusRequestEntityTooLarge:
		return "Cosmos DB takes requests of 2 MB. Find what limits them to less between the worker and the account, such as a proxy " +
			"or a gateway, and raise its limit."
	case a.status == http.StatusProxyAuthRequired, a.status == http.StatusMethodNotAllowed, a.status == http.StatusPaymentRequired:
		return "Cosmos DB does not answer a write like this. Find what does between the worker and the account, such as a proxy, " +
			"a gateway or a firewall, and let it pass POST requests to the account."
	case a.status == http.StatusUnauthorized:
		return "Check that the key belongs to this account and has not been rotated, or that the identity exists in its tenant; " +
			"check the clock of this machine."
	case a.status == http.StatusForbidden && a.substatus == 5300:
		return fixDataOnly
	case a.status == http.StatusForbidden:
		return "Give the identity a data plane role that may read metadata and create and read items, such as Cosmos DB Built-in " +
			"Data Contributor, and check the firewall and private endpoint of the account. A new role takes some minutes to work. If all " +
			"of that is right, check the clock of this machine: a signature of another time is refused like this too."
	case a.status == http.StatusBadRequest && a.substatus == subWrongPartitionKey:
		return "The partition key of the container has changed: it must be the one that the container had when the store read it. " +
			"The store reads it again."
	case a.status == http.StatusNotFound:
		return "Create the database and the container, or correct their names and the endpoint."
	}
	if op.writes() {
		return "The store answers reads and refuses every write. Check that the key or the role may write, that the container is the " +
			"right one, and that nothing between the worker and the account changes requests; then look the status up in the " +
			"documentation of Cosmos DB."
	}
	return "Look the status up in the documentation of Cosmos DB."
}

const fixSeveralRegions = "Switch off multi-region writes for the account, or use an account with one write region: in two " +
	"regions both creates of one id succeed, and one of them is dropped later."
