package servicebus

import "time"

// build makes the entities of a configuration.
func (b *Broker) build(c Config) {
	for _, q := range c.Queues {
		b.addLocked(newEntity(b, kindQueue, q))
	}
	for _, t := range c.Topics {
		topic := newEntity(b, kindTopic, t.settings())
		b.addLocked(topic)
		for _, s := range t.Subscriptions {
			b.addLocked(newSubscription(topic, s))
		}
	}
}

// newSubscription makes a subscription, which its topic does not know yet.
func newSubscription(topic *entity, s Subscription) *entity {
	cfg := s.Queue
	cfg.Name = topic.cfg.Name + subscriptionsInfix + s.Name
	cfg.MaxSize = topic.cfg.MaxSize
	e := newEntity(topic.broker, kindSubscription, cfg)
	e.topic, e.accessed = topic, e.created     // the service counts the making of a subscription
	e.rules, _ = newRules(s.Rules, time.Now()) // their faults were found before
	return e
}

// addLocked makes an entity known.
func (b *Broker) addLocked(e *entity) {
	b.namespace.entities[lower(e.cfg.Name)] = e
	if e.topic != nil {
		e.topic.subscriptions = append(e.topic.subscriptions, e)
	}
}
