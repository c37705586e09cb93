package history

// The operations of the embedded Service Bus.
const (
	Send               = "servicebus.send"
	Publish            = "servicebus.publish"        // arrived at a topic; each copy in a subscription is a Send there
	Forward            = "servicebus.forward"        // moved on to another entity, which Note names; it is a Send there
	DropDuplicate      = "servicebus.drop-duplicate" // dropped by duplicate detection
	Schedule           = "servicebus.schedule"
	CancelScheduled    = "servicebus.cancel-scheduled"
	Lock               = "servicebus.lock" // handed to a receiver in peek-lock
	Take               = "servicebus.take" // handed out in receive-and-delete
	Renew              = "servicebus.renew"
	Complete           = "servicebus.complete"
	Abandon            = "servicebus.abandon"
	DeadLetter         = "servicebus.dead-letter" // by a receiver, by expiry or by the delivery limit; Note has the reason
	Defer              = "servicebus.defer"
	Release            = "servicebus.release"
	LockExpired        = "servicebus.lock-expired"
	Expired            = "servicebus.expired" // time to live ended and the message was dropped
	Peek               = "servicebus.peek"
	ReceiveDeferred    = "servicebus.receive-deferred"
	AcceptSession      = "servicebus.accept-session" // the key of this one and the next is the session id
	RenewSession       = "servicebus.renew-session"
	ReleaseSession     = "servicebus.release-session" // the receiver has gone
	SessionLockExpired = "servicebus.session-lock-expired"
	GetSessionState    = "servicebus.get-session-state"
	SetSessionState    = "servicebus.set-session-state"
	ListSessions       = "servicebus.list-sessions"
	ManageRules        = "servicebus.rules"      // rules of a subscription; Note says which was added or removed
	Administer         = "servicebus.administer" // over HTTP; Note has the method
	Attach             = "servicebus.attach"
	PutToken           = "servicebus.put-token"
	Connect            = "servicebus.connect"
	Refused            = "servicebus.refused" // something the emulator does not implement
	RefusedByCosmos    = "cosmosdb.refused"
	ReadAccount        = "cosmosdb.account"
	ReadDocument       = "cosmosdb.read"
	CreateDocument     = "cosmosdb.create"
	UpsertDocument     = "cosmosdb.upsert"
	ReplaceDocument    = "cosmosdb.replace"
	PatchDocument      = "cosmosdb.patch"
	DeleteDocument     = "cosmosdb.delete"
	ExecuteBatch       = "cosmosdb.batch"
	QueryDocuments     = "cosmosdb.query"
	ReadChangeFeed     = "cosmosdb.change-feed"
	ExpireDocument     = "cosmosdb.expire"
	ReadContainer      = "cosmosdb.read-container"
	ManageContainers   = "cosmosdb.manage"
)
