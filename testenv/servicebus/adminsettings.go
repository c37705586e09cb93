package servicebus

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A description is what an entry describes: settings by name, in the order in which they came.
type description struct {
	XMLName  xml.Name
	Elements []element `xml:",any"`
}

// An element is a setting, or a part of one.
type element struct {
	XMLName  xml.Name
	Type     string    `xml:"http://www.w3.org/2001/XMLSchema-instance type,attr"`
	Elements []element `xml:",any"`
	Inner    string    `xml:",innerxml"`
	Text     string    `xml:",chardata"`
}

// child returns the child of a name, or nil.
func child(list []element, name string) *element {
	i := slices.IndexFunc(list, func(e element) bool { return e.XMLName.Local == name })
	if i < 0 {
		return nil
	}
	return &list[i]
}

func childText(list []element, name string) string {
	if e := child(list, name); e != nil {
		return e.Text
	}
	return ""
}

// A settingsReader reads the settings of an entity, and collects what is wrong with them.
type settingsReader struct {
	broker   *Broker
	d        description
	existing *entity // nil where one is made
	faults   []string
}

// forever is how clients write a time without an end: the largest TimeSpan of .NET.
const forever = "P10675199DT2H48M5.4775807S"

// longestDays is more than any time that is not meant to be without an end.
const longestDays = 36_500

// settings returns the settings of an entity, where the description has them.
func (r *settingsReader) settings(q Queue) Queue {
	r.duration("LockDuration", &q.LockDuration)
	r.duration("DefaultMessageTimeToLive", &q.DefaultMessageTimeToLive)
	r.duration("DuplicateDetectionHistoryTimeWindow", &q.DuplicateDetectionHistoryTimeWindow)
	r.flag("DeadLetteringOnMessageExpiration", &q.DeadLetteringOnMessageExpiration)
	r.flag("RequiresDuplicateDetection", &q.RequiresDuplicateDetection)
	r.flag("RequiresSession", &q.RequiresSession)
	r.number("MaxDeliveryCount", func(n int) { q.MaxDeliveryCount = n })
	r.number("MaxSizeInMegabytes", func(n int) { q.MaxSize = int64(n) << 20 })
	r.number("MaxMessageSizeInKilobytes", func(n int) { q.MaxMessageSize = n << 10 })
	q.ForwardTo, _ = r.text("ForwardTo")
	q.ForwardDeadLetteredMessagesTo, _ = r.text("ForwardDeadLetteredMessagesTo")
	r.partitions(&q)
	r.faults = append(r.faults, q.forwardFaults(func(path string) bool {
		e := r.broker.namespace.entities[path]
		return e != nil && e.kind != kindSubscription
	})...)
	return q
}

// partitionsOf is how many partitions the service gives an entity that has them, each of the size that was asked for.
const partitionsOf = 16

// partitions reads whether an entity is partitioned. Here it is one log all the same, whose order is better than it need be.
func (r *settingsReader) partitions(q *Queue) {
	on := false
	r.flag("EnablePartitioning", &on)
	switch {
	case r.existing == nil && on:
		q.MaxSize *= partitionsOf
	case r.existing != nil && on != (r.existing.details["EnablePartitioning"] == "true"):
		r.fault("Partitioning cannot be changed for %s. ", r.existing.kind)
	}
}

func (r *settingsReader) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

func (r *settingsReader) text(name string) (string, bool) {
	s := strings.TrimSpace(childText(r.d.Elements, name))
	return s, s != ""
}

func (r *settingsReader) duration(name string, dst *time.Duration) {
	s, ok := r.text(name)
	if !ok {
		return
	}
	days, _, _ := strings.Cut(strings.TrimPrefix(s, "P"), "D")
	if n, err := strconv.Atoi(days); err == nil && n > longestDays {
		*dst = Forever
		return
	}
	d, err := parseDuration(s)
	if err != nil {
		r.fault("%s: %v", name, err)
		return
	}
	*dst = d
}

func (r *settingsReader) flag(name string, dst *bool) {
	s, ok := r.text(name)
	if !ok {
		return
	}
	b, err := strconv.ParseBool(s)
	if err != nil {
		r.fault("%s: %q is neither true nor false", name, s)
		return
	}
	*dst = b
}

func (r *settingsReader) number(name string, set func(int)) {
	s, ok := r.text(name)
	if !ok {
		return
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		r.fault("%s: %q is not a whole number", name, s)
		return
	}
	set(n)
}

// status returns the status that the description gives.
func (r *settingsReader) status(otherwise Status) Status {
	s, ok := r.text("Status")
	if !ok {
		return otherwise
	}
	i := slices.Index(statusNames, s)
	if i < 0 {
		r.fault("Status: %q is not one of %s", s, strings.Join(statusNames, ", "))
		return otherwise
	}
	return Status(i)
}

// statusNames are the names of the statuses, in their order.
var statusNames = []string{"Active", "Disabled", "SendDisabled", "ReceiveDisabled"}

// details returns the settings as they were written, to be read again as they were.
func (r *settingsReader) details() map[string]string {
	all := map[string]string{}
	for _, e := range r.d.Elements {
		if e.Inner != "" {
			all[e.XMLName.Local] = e.Inner
		}
	}
	delete(all, "DefaultRuleDescription")
	return all
}

// defaultRule returns the rule with which a subscription is made, if the description has one.
func (r *settingsReader) defaultRule() []Rule {
	e := child(r.d.Elements, "DefaultRuleDescription")
	if e == nil {
		return nil
	}
	rule, err := readRule(e.Elements, defaultRule)
	if err != nil {
		r.fault("DefaultRuleDescription: %v", err)
	}
	return []Rule{rule}
}
