package servicebus

import "time"

// maxSubscriptions is how many subscriptions the official emulator takes for one topic.
const maxSubscriptions = 50

func (p *configReader) topic(o object) Topic {
	p.known(o, "Name", "Properties", "Subscriptions")
	props := p.properties(o, "DefaultMessageTimeToLive", "DuplicateDetectionHistoryTimeWindow", "RequiresDuplicateDetection")
	t := Topic{
		Name: p.name(o), DefaultMessageTimeToLive: p.life(props), DuplicateDetectionHistoryTimeWindow: p.window(props),
		RequiresDuplicateDetection: p.flag(props, "RequiresDuplicateDetection"),
	}
	list := p.objects(o, "Subscriptions")
	if len(list) > maxSubscriptions {
		p.fault(o.at("Subscriptions"), "has %d subscriptions; the official emulator takes %d", len(list), maxSubscriptions)
	}
	seen := map[string]bool{}
	for _, so := range list {
		s := p.subscription(so)
		p.unique(seen, so, s.Name)
		t.Subscriptions = append(t.Subscriptions, s)
	}
	return t
}

func (p *configReader) subscription(o object) Subscription {
	p.known(o, "Name", "Properties", "Rules")
	props := p.properties(o, "DeadLetteringOnMessageExpiration", "DefaultMessageTimeToLive", "ForwardDeadLetteredMessagesTo",
		"ForwardTo", "LockDuration", "MaxDeliveryCount", "RequiresSession")
	s := Subscription{Queue: p.receivable(props)}
	if s.Name = p.text(o, "Name"); !subscriptionName.MatchString(s.Name) {
		p.fault(o.at("Name"), "%q: %s", s.Name, subscriptionNameRule)
	}
	for _, r := range p.objects(o, "Rules") {
		s.Rules = append(s.Rules, p.rule(r))
	}
	_, faults := newRules(s.Rules, time.Time{})
	for _, f := range faults {
		p.fault(o.at("Rules"), "%s", f)
	}
	return s
}
