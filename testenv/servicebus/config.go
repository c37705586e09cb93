package servicebus

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Config describes the namespace.
type Config struct {
	// Namespace is its name. Defaults to "sbemulatorns", the only name that the official emulator takes.
	Namespace string
	Queues    []Queue
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
	// RequiresDuplicateDetection drops a message whose MessageId was seen within DuplicateDetectionHistoryTimeWindow.
	RequiresDuplicateDetection bool
	// DuplicateDetectionHistoryTimeWindow is how long a MessageId is remembered. Defaults to 10 minutes; at most 7 days.
	DuplicateDetectionHistoryTimeWindow time.Duration
	// MaxSize bounds the bytes of all messages of the queue, its dead letters included. Defaults to 1 GiB.
	MaxSize int64
}

// Forever is a DefaultMessageTimeToLive without an end.
const Forever = time.Duration(1<<63 - 1)

const (
	maxLockDuration    = 5 * time.Minute
	maxDuplicateWindow = 7 * 24 * time.Hour
)

func (c Config) withDefaults() Config {
	c.Namespace = cmp.Or(c.Namespace, "sbemulatorns")
	c.Queues = slices.Clone(c.Queues)
	for i := range c.Queues {
		q := &c.Queues[i]
		q.LockDuration = cmp.Or(q.LockDuration, time.Minute)
		q.MaxDeliveryCount = cmp.Or(q.MaxDeliveryCount, 10)
		q.DefaultMessageTimeToLive = cmp.Or(q.DefaultMessageTimeToLive, time.Hour)
		q.DuplicateDetectionHistoryTimeWindow = cmp.Or(q.DuplicateDetectionHistoryTimeWindow, 10*time.Minute)
		q.MaxSize = cmp.Or(q.MaxSize, 1<<30)
	}
	return c
}

const nameRule = `a queue name has 1 to 260 characters, none of \?#@*$, and no slash at its ends`

func validName(s string) bool {
	return s != "" && len(s) <= 260 && !strings.ContainsAny(s, `\?#@*$`) && strings.Trim(s, "/") == s
}

// validate holds the queues against the limits of the service, and reports all faults at once.
func (c Config) validate() error {
	var errs []error
	seen := map[string]bool{}
	for i, q := range c.Queues {
		fault := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("queue %d %q: %s", i, q.Name, fmt.Sprintf(format, args...)))
		}
		lower := strings.ToLower(q.Name)
		switch {
		case !validName(q.Name):
			fault(nameRule)
		case seen[lower]:
			fault("the name is used twice (names do not depend on case)")
		}
		seen[lower] = true
		if q.LockDuration < 0 || q.LockDuration > maxLockDuration {
			fault("LockDuration %v must be at most %v", q.LockDuration, maxLockDuration)
		}
		if q.MaxDeliveryCount < 1 || q.MaxDeliveryCount > 2000 {
			fault("MaxDeliveryCount %d must be between 1 and 2000", q.MaxDeliveryCount)
		}
		if q.DefaultMessageTimeToLive < time.Millisecond {
			fault("DefaultMessageTimeToLive %v must be at least 1ms", q.DefaultMessageTimeToLive)
		}
		if w := q.DuplicateDetectionHistoryTimeWindow; w < time.Second || w > maxDuplicateWindow {
			fault("DuplicateDetectionHistoryTimeWindow %v must be between 1s and %v", w, maxDuplicateWindow)
		}
		if q.MaxSize < 1 {
			fault("MaxSize %d must be positive", q.MaxSize)
		}
	}
	return errors.Join(errs...)
}
