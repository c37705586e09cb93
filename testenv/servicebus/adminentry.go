package servicebus

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	atomNamespace    = "http://www.w3.org/2005/Atom"
	connectNamespace = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
	// countNamespace is where Python looks for the counts. JavaScript looks for the prefix that CountDetails declares, and for a
	// prefix of four letters, as the service writes it, at the types of values.
	countNamespace = "http://schemas.microsoft.com/netservices/2011/06/servicebus"
	schemaInstance = "http://www.w3.org/2001/XMLSchema-instance"
	xmlSchema      = "http://www.w3.org/2001/XMLSchema"
)

// never is how the service writes a time that has not come.
const never = "0001-01-01T00:00:00"

// escaped writes text as XML. Quotes stay, because people read it.
func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a builder takes everything
	return strings.NewReplacer("&#39;", "'", "&#34;", `"`).Replace(b.String())
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// entry returns an ATOM entry.
func (b *Broker) entry(path, title, description, content string, updated time.Time) string {
	return fmt.Sprintf(`<entry xmlns="%s"><id>sb://%s/%s</id><title type="text">%s</title><updated>%s</updated><author><name>%s</name></author>`+
		`<content type="application/xml"><%s xmlns="%s" xmlns:i="%s">%s</%s></content></entry>`,
		atomNamespace, escaped(b.opts.Config.Namespace), escaped(path), escaped(title), instant(updated), escaped(b.opts.Config.Namespace),
		description, connectNamespace, schemaInstance, content, description)
}

// feed returns a page of entries, with the address of the next one if there is more: Go counts by itself, JavaScript follows
// the link, which it reads only beside another one.
func feed[T any](title string, a adminRequest, all []T, entryOf func(T) string) adminReply {
	var s strings.Builder
	fmt.Fprintf(&s, `<feed xmlns="%s"><title type="text">%s</title><updated>%s</updated>`, atomNamespace, title, instant(time.Now()))
	page := all[min(a.skip, len(all)):]
	if len(page) > a.top {
		page = page[:a.top]
		fmt.Fprintf(&s, `<link rel="self" href="%s"/><link rel="next" href="%s?$skip=%d&amp;$top=%d"/>`, escaped(a.address), escaped(a.address), a.skip+a.top, a.top)
	}
	for _, one := range page {
		s.WriteString(entryOf(one))
	}
	s.WriteString("</feed>")
	return adminReply{status: http.StatusOK, body: s.String()}
}

// namespaceEntry describes the namespace.
func (b *Broker) namespaceEntry() string {
	name, at := escaped(b.opts.Config.Namespace), instant(b.made)
	return b.entry("$namespaceinfo", name, "NamespaceInfo", fmt.Sprintf(
		"<CreatedTime>%s</CreatedTime><MessagingSKU>Standard</MessagingSKU><ModifiedTime>%s</ModifiedTime><Name>%s</Name><NamespaceType>Messaging</NamespaceType>",
		at, at, name), b.made)
}

// entityEntryLocked describes an entity with its settings and counts.
func (b *Broker) entityEntryLocked(e *entity) string {
	title := e.cfg.Name
	if e.topic != nil {
		title = strings.TrimPrefix(title, e.topic.cfg.Name+subscriptionsInfix)
	}
	var s strings.Builder
	for _, one := range e.elementsLocked() {
		switch {
		case one.name == "":
			s.WriteString(one.value)
		case one.value != "":
			fmt.Fprintf(&s, "<%s>%s</%s>", one.name, one.value, one.name)
		}
	}
	return b.entry(e.cfg.Name, title, e.kind.String()+"Description", s.String(), e.updated)
}

// An xmlSetting is an element of a description; its value is XML. Without a name the value is the whole element.
type xmlSetting struct{ name, value string }

// elementsLocked returns the settings of an entity, in the order of the service. What a client has written is there as it
// was written.
func (e *entity) elementsLocked() []xmlSetting {
	q := e.cfg
	given := func(name, otherwise string) xmlSetting {
		if v, ok := e.details[name]; ok {
			return xmlSetting{name, v}
		}
		return xmlSetting{name, otherwise}
	}
	flag := strconv.FormatBool
	receivable := e.kind != kindTopic
	accessed := never
	if !e.accessed.IsZero() {
		accessed = instant(e.accessed)
	}
	sql, correlation := e.filterCountsLocked()
	only := func(applies bool, s xmlSetting) xmlSetting {
		if !applies {
			s.value = ""
		}
		return s
	}
	return []xmlSetting{
		only(receivable, given("LockDuration", formatDuration(q.LockDuration))),
		only(e.kind != kindSubscription, xmlSetting{"MaxSizeInMegabytes", strconv.FormatInt(max(1, q.MaxSize>>20), 10)}),
		only(e.kind != kindSubscription, xmlSetting{"RequiresDuplicateDetection", flag(q.RequiresDuplicateDetection)}),
		only(receivable, xmlSetting{"RequiresSession", flag(q.RequiresSession)}),
		given("DefaultMessageTimeToLive", formatDuration(q.DefaultMessageTimeToLive)),
		only(receivable, xmlSetting{"DeadLetteringOnMessageExpiration", flag(q.DeadLetteringOnMessageExpiration)}),
		only(e.kind == kindSubscription, given("DeadLetteringOnFilterEvaluationExceptions", "true")),
		only(e.kind != kindSubscription, given("DuplicateDetectionHistoryTimeWindow", formatDuration(q.DuplicateDetectionHistoryTimeWindow))),
		only(receivable, xmlSetting{"MaxDeliveryCount", strconv.Itoa(q.MaxDeliveryCount)}),
		given("EnableBatchedOperations", "true"),
		only(e.kind != kindSubscription, xmlSetting{"SizeInBytes", strconv.FormatInt(e.usedLocked(), 10)}),
		only(receivable, xmlSetting{"MessageCount", strconv.Itoa(e.main.all.live + e.dead.all.live)}),
		given("AuthorizationRules", ""),
		{"Status", statusNames[e.status]},
		given("ForwardTo", escaped(q.ForwardTo)),
		given("UserMetadata", ""),
		{"CreatedAt", instant(e.created)}, {"UpdatedAt", instant(e.updated)}, {"AccessedAt", accessed},
		only(e.kind != kindSubscription, given("SupportOrdering", "true")),
		{"", e.countDetailsLocked()},
		only(e.kind == kindTopic, xmlSetting{"SubscriptionCount", strconv.Itoa(len(e.subscriptions))}),
		only(e.kind == kindTopic, xmlSetting{"SqlFilterCount", strconv.Itoa(sql)}),
		only(e.kind == kindTopic, xmlSetting{"CorrelationFilterCount", strconv.Itoa(correlation)}),
		given("ForwardDeadLetteredMessagesTo", escaped(q.ForwardDeadLetteredMessagesTo)),
		given("AutoDeleteOnIdle", forever),
		only(e.kind != kindSubscription, given("EnablePartitioning", "false")),
		{"EntityAvailabilityStatus", "Available"},
		only(e.kind != kindSubscription, given("EnableExpress", "false")),
		only(e.kind != kindSubscription, given("MaxMessageSizeInKilobytes", strconv.Itoa(q.MaxMessageSize>>10))),
	}
}

// filterCountsLocked counts the filters of the subscriptions of a topic. True and false are SQL too.
func (e *entity) filterCountsLocked() (sql, correlation int) {
	for _, s := range e.subscriptions {
		for _, r := range s.rules {
			if _, ok := r.Filter.(CorrelationFilter); ok {
				correlation++
			} else {
				sql++
			}
		}
	}
	return sql, correlation
}

// countDetailsLocked are the runtime properties. A locked message counts as active, as in the service.
func (e *entity) countDetailsLocked() string {
	c := e.main.countsLocked()
	var s strings.Builder
	for _, one := range []struct {
		name string
		n    int
	}{
		{"ActiveMessageCount", c.Active + c.Locked + c.Deferred}, {"DeadLetterMessageCount", e.dead.all.live},
		{"ScheduledMessageCount", c.Scheduled}, {"TransferMessageCount", 0}, {"TransferDeadLetterMessageCount", 0},
	} {
		fmt.Fprintf(&s, `<d2p1:%s>%d</d2p1:%s>`, one.name, one.n, one.name)
	}
	return fmt.Sprintf(`<CountDetails xmlns:d2p1="%s">%s</CountDetails>`, countNamespace, s.String())
}

// formatDuration writes a duration in ISO 8601.
func formatDuration(d time.Duration) string {
	if d == Forever {
		return forever
	}
	days := d / (24 * time.Hour)
	clock := strings.ToUpper(strings.NewReplacer("h0m", "h", "m0s", "m").Replace((d % (24 * time.Hour)).String()))
	switch {
	case days == 0:
		return "PT" + clock
	case d%(24*time.Hour) == 0:
		return fmt.Sprintf("P%dD", days)
	}
	return fmt.Sprintf("P%dDT%s", days, clock)
}
