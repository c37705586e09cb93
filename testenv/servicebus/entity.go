package servicebus

import (
	"cmp"
	"strings"
	"time"

	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

// Status says what a queue lets happen, in the words of the service.
type Status int

// The statuses of a queue.
const (
	Active Status = iota
	Disabled
	SendDisabled
	ReceiveDisabled
)

const deadLetterSuffix = "/$DeadLetterQueue"

// A kind is what an entity is to clients.
type kind int

const (
	kindQueue kind = iota
	kindTopic
	kindSubscription
)

func (k kind) String() string { return [...]string{"Queue", "Topic", "Subscription"}[k] }

// An entity is a queue, a subscription or a topic: a log of messages, and the log of its dead letters. A message that is
// scheduled waits in the log of the entity to which it was sent. When it arrives, a queue makes it available, and a topic
// keeps nothing: each subscription gets a copy of its own.
type entity struct {
	*namespace
	broker *Broker
	kind   kind
	cfg    Queue // its name is the entity's path

	// created, updated and accessed are when the entity was made, last changed and last attached to, and details the settings as an administration
	// client has written them, by name.
	created, updated, accessed time.Time
	details                    map[string]string

	status     Status
	rights     Rights
	main, dead store
	sequence   int64
	bytes      int64
	locks      map[amqp.UUID]*message
	duplicates duplicates

	topic         *entity   // of a subscription
	rules         rules     // of a subscription
	subscriptions []*entity // of a topic, in the order of their making
}

func newEntity(b *Broker, k kind, cfg Queue) *entity {
	e := &entity{
		namespace: b.namespace, broker: b, kind: k, cfg: cfg, rights: Manage, locks: map[amqp.UUID]*message{},
		duplicates: duplicates{window: cfg.DuplicateDetectionHistoryTimeWindow, seen: map[string]time.Time{}},
	}
	e.cfg.MaxMessageSize = cmp.Or(cfg.MaxMessageSize, b.opts.MaxMessageSize)
	e.created = time.Now()
	e.updated = e.created
	e.main = newStore(e, cfg.Name, false)
	e.dead = newStore(e, cfg.Name+deadLetterSuffix, true)
	return e
}

func lower(path string) string { return strings.ToLower(strings.Trim(path, "/")) }
