package servicebus

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Config describes the namespace.
type Config struct {
	// Namespace is its name. Defaults to "sbemulatorns", the only name that the official emulator takes.
	Namespace string
	Queues    []Queue
	Topics    []Topic
}

// Queue describes a queue. The zero value of a field means its default.
type Queue struct {
	Name string
	// LockDuration is how long a delivery stays locked. Defaults to 1 minute; at most 5 minutes.
	LockDuration time.Duration
	// MaxDeliveryCount is the number of deliveries after which a message is dead-lettered. Defaults to 10.
	MaxDeliveryCount int
	// DefaultMessageTimeToLive is the longest life of a message, and its life when it names none. Defaults to 1 hour.
	DefaultMessageTimeToLive time.Duration
	// DeadLetteringOnMessageExpiration keeps messages whose life has ended in the dead-letter queue, instead of dropping them.
	DeadLetteringOnMessageExpiration bool
	// RequiresSession gives messages to the receiver that has locked their session, and refuses messages without one.
	RequiresSession bool
	// RequiresDuplicateDetection drops a message whose MessageId was seen within DuplicateDetectionHistoryTimeWindow.
	RequiresDuplicateDetection bool
	// DuplicateDetectionHistoryTimeWindow is how long a MessageId is remembered. Defaults to 10 minutes; at most 7 days.
	DuplicateDetectionHistoryTimeWindow time.Duration
	// MaxSize bounds the bytes of all messages of the queue, its dead letters included. Defaults to 1 GiB.
	MaxSize int64
	// MaxMessageSize bounds a message or a batch, in bytes. Defaults to the one of [Options].
	MaxMessageSize int
	// ForwardTo and ForwardDeadLetteredMessagesTo name queues or topics to which messages and dead letters move on. A message
	// moves at most four times. While the target cannot take it, it waits and is tried again every ten seconds.
	ForwardTo, ForwardDeadLetteredMessagesTo string
}

// Topic describes a topic. The zero value of a field means its default, which is that of a queue.
type Topic struct {
	Name string
	// DefaultMessageTimeToLive bounds the life of a message in every subscription, beside the one of the subscription.
	DefaultMessageTimeToLive time.Duration
	// RequiresDuplicateDetection drops a message whose MessageId was seen within DuplicateDetectionHistoryTimeWindow,
	// before any subscription gets a copy.
	RequiresDuplicateDetection          bool
	DuplicateDetectionHistoryTimeWindow time.Duration
	// MaxSize bounds the bytes of all messages of all subscriptions together.
	MaxSize       int64
	Subscriptions []Subscription
}

// settings are those of the entity that a topic is.
func (t Topic) settings() Queue {
	return Queue{
		Name: t.Name, DefaultMessageTimeToLive: t.DefaultMessageTimeToLive, RequiresDuplicateDetection: t.RequiresDuplicateDetection,
		DuplicateDetectionHistoryTimeWindow: t.DuplicateDetectionHistoryTimeWindow, MaxSize: t.MaxSize,
	}.withDefaults()
}

// Subscription describes a subscription: a queue that its topic fills with copies. Its path, for the methods of [Broker], is
// "topic/Subscriptions/name". It has no duplicate detection and no MaxSize of its own; the topic has both.
type Subscription struct {
	Queue
	// Rules select the messages. Defaults to one that selects all, with the name "$Default".
	Rules []Rule
}

// faults are the settings and the rules that are not allowed.
func (s Subscription) faults() []string {
	all := s.Queue.faults()
	if s.RequiresDuplicateDetection {
		all = append(all, "RequiresDuplicateDetection is a setting of the topic")
	}
	_, ofRules := newRules(s.Rules, time.Time{})
	return append(all, ofRules...)
}

const subscriptionsInfix = "/Subscriptions/"

// Forever is a DefaultMessageTimeToLive without an end.
const Forever = time.Duration(1<<63 - 1)

const (
	maxLockDuration    = 5 * time.Minute
	maxDuplicateWindow = 7 * 24 * time.Hour
)

func (c Config) withDefaults() Config {
	c.Namespace = cmp.Or(c.Namespace, "sbemulatorns")
	c.Queues = slices.Clone(c.Queues)
	for i, q := range c.Queues {
		c.Queues[i] = q.withDefaults()
	}
	c.Topics = slices.Clone(c.Topics)
	for i := range c.Topics {
		t := &c.Topics[i]
		t.Subscriptions = slices.Clone(t.Subscriptions)
		for j := range t.Subscriptions {
			t.Subscriptions[j].Queue = t.Subscriptions[j].withDefaults()
		}
	}
	return c
}

func (q Queue) withDefaults() Queue {
	q.LockDuration = cmp.Or(q.LockDuration, time.Minute)
	q.MaxDeliveryCount = cmp.Or(q.MaxDeliveryCount, 10)
	q.DefaultMessageTimeToLive = cmp.Or(q.DefaultMessageTimeToLive, time.Hour)
	q.DuplicateDetectionHistoryTimeWindow = cmp.Or(q.DuplicateDetectionHistoryTimeWindow, 10*time.Minute)
	q.MaxSize = cmp.Or(q.MaxSize, 1<<30)
	return q
}

const (
	nameRule             = `a queue or topic name has 1 to 260 characters, none of \?#@*$, and no slash at its ends`
	subscriptionNameRule = "a subscription name has 1 to 50 letters, digits, dots, hyphens and underscores"
)

func validName(s string) bool {
	return s != "" && len(s) <= 260 && !strings.ContainsAny(s, `\?#@*$`) && strings.Trim(s, "/") == s
}

var subscriptionName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,50}$`)

// validate holds the entities against the limits of the service, and reports all faults at once.
func (c Config) validate() error {
	seen := names{}
	var errs []error
	known := c.targets()
	for i, q := range c.Queues {
		errs = append(errs, located(fmt.Sprintf("queue %d %q", i, q.Name), slices.Concat(seen.check(q.Name), q.faults(), q.forwardFaults(known)))...)
	}
	for i, t := range c.Topics {
		at := fmt.Sprintf("topic %d %q", i, t.Name)
		errs = append(errs, located(at, append(seen.check(t.Name), t.settings().faults()...))...)
		own := names{}
		for j, s := range t.Subscriptions {
			errs = append(errs, located(fmt.Sprintf("%s, subscription %d %q", at, j, s.Name), slices.Concat(own.checkSubscription(s.Name), s.faults(), s.forwardFaults(known)))...)
		}
	}
	return errors.Join(errs...)
}

// targets returns what reports whether a path is one of a queue or a topic.
func (c Config) targets() func(path string) bool {
	paths := map[string]bool{}
	for _, q := range c.Queues {
		paths[lower(q.Name)] = true
	}
	for _, t := range c.Topics {
		paths[lower(t.Name)] = true
	}
	return func(path string) bool { return paths[path] }
}

// located turns texts into errors that begin with a place.
func located(at string, faults []string) []error {
	errs := make([]error, len(faults))
	for i, f := range faults {
		errs[i] = fmt.Errorf("%s: %s", at, f)
	}
	return errs
}

// names are the names that are taken, in lower case.
type names map[string]bool

// check returns what is wrong with a name of a queue or a topic, and takes it.
func (n names) check(name string) []string {
	if !validName(name) {
		return []string{nameRule}
	}
	return n.take(name)
}

func (n names) checkSubscription(name string) []string {
	if !subscriptionName.MatchString(name) {
		return []string{subscriptionNameRule}
	}
	return n.take(name)
}

func (n names) take(name string) []string {
	if n[strings.ToLower(name)] {
		return []string{"the name is used twice (names do not depend on case)"}
	}
	n[strings.ToLower(name)] = true
	return nil
}

// faults are the settings that the service does not allow.
func (q Queue) faults() []string {
	var all []string
	check := func(ok bool, format string, args ...any) {
		if !ok {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	check(q.LockDuration >= 0 && q.LockDuration <= maxLockDuration, "LockDuration %v must be at most %v", q.LockDuration, maxLockDuration)
	check(q.MaxDeliveryCount >= 1 && q.MaxDeliveryCount <= 2000, "MaxDeliveryCount %d must be between 1 and 2000", q.MaxDeliveryCount)
	check(q.DefaultMessageTimeToLive >= time.Millisecond, "DefaultMessageTimeToLive %v must be at least 1ms", q.DefaultMessageTimeToLive)
	w := q.DuplicateDetectionHistoryTimeWindow
	check(w >= time.Second && w <= maxDuplicateWindow, "DuplicateDetectionHistoryTimeWindow %v must be between 1s and %v", w, maxDuplicateWindow)
	check(q.MaxSize >= 1, "MaxSize %d must be positive", q.MaxSize)
	check(q.MaxMessageSize == 0 || q.MaxMessageSize >= 1024 && q.MaxMessageSize <= 100<<20, "MaxMessageSize %d must be between 1 KiB and 100 MiB", q.MaxMessageSize)
	return all
}
