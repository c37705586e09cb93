package servicebus

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// ReadConfig reads the configuration file of the official Service Bus emulator, Config.json, so that one file serves both.
// It holds the file against the official emulator's limits, and against what this broker implements, and reports every
// fault at once, each with its place in the file. The defaults are LockDuration PT1M, MaxDeliveryCount 10,
// DefaultMessageTimeToLive PT1H and DuplicateDetectionHistoryTimeWindow PT20S; the last two are the official emulator's,
// whose limits exclude those of the service, and the official emulator's MaxDeliveryCount would be 3.
func ReadConfig(r io.Reader) (Config, error) {
	var file any
	d := json.NewDecoder(r)
	d.UseNumber()
	if err := d.Decode(&file); err != nil {
		return Config{}, fmt.Errorf("servicebus: the emulator configuration is not JSON: %w", err)
	}
	p := &configReader{}
	c := p.file(object{path: "", v: p.asObject("the file", file)})
	if len(p.errs) > 0 {
		return Config{}, fmt.Errorf("servicebus: the emulator configuration has faults:\n%w", errors.Join(p.errs...))
	}
	return c.withDefaults(), nil
}

// emulatorWindow is the official emulator's default of DuplicateDetectionHistoryTimeWindow.
const emulatorWindow = 20 * time.Second

// limits are the shortest and the longest duration that the official emulator allows.
type limits struct{ min, max time.Duration }

// maxEntities is how many queues and topics the official emulator takes.
const maxEntities = 50

// A configReader collects faults.
type configReader struct{ errs []error }

// An object is a JSON object at a place in the file.
type object struct {
	path string
	v    map[string]any
}

func (o object) at(key string) string { return strings.TrimPrefix(o.path+"."+key, ".") }

func (p *configReader) fault(path, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...)))
}

func (p *configReader) asObject(path string, v any) map[string]any {
	m, ok := v.(map[string]any)
	if !ok && v != nil {
		p.fault(path, "must be an object")
	}
	return m
}

func (p *configReader) sub(o object, key string) object {
	v, ok := o.v[key]
	if !ok {
		p.fault(o.at(key), "is missing")
	}
	return object{path: o.at(key), v: p.asObject(o.at(key), v)}
}

// objects returns the elements of an array.
func (p *configReader) objects(o object, key string) []object {
	v, ok := o.v[key]
	if !ok || v == nil {
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		p.fault(o.at(key), "must be an array")
		return nil
	}
	all := make([]object, len(list))
	for i, e := range list {
		path := fmt.Sprintf("%s[%d]", o.at(key), i)
		all[i] = object{path: path, v: p.asObject(path, e)}
	}
	return all
}

// known faults every key that is not expected; a misspelt setting must not be passed over.
func (p *configReader) known(o object, keys ...string) {
	for _, k := range slices.Sorted(maps.Keys(o.v)) {
		if !slices.Contains(keys, k) {
			p.fault(o.at(k), "is not known; known here: %s", strings.Join(keys, ", "))
		}
	}
}

func (p *configReader) file(root object) Config {
	p.known(root, "UserConfig", "$schema")
	user := p.sub(root, "UserConfig")
	p.known(user, "Namespaces", "Logging")
	spaces := p.objects(user, "Namespaces")
	if len(spaces) != 1 {
		p.fault(user.at("Namespaces"), "must have exactly one element")
		return Config{}
	}
	ns := spaces[0]
	p.known(ns, "Name", "Queues", "Topics")
	c := Config{Namespace: p.text(ns, "Name")}
	if c.Namespace != "sbemulatorns" && c.Namespace != "" {
		p.fault(ns.at("Name"), `must be "sbemulatorns", the only name that the official emulator takes`)
	}
	p.entities(ns, &c)
	p.targets(ns, c)
	return c
}

// entities reads the queues and topics, whose names are not to be used twice.
func (p *configReader) entities(ns object, c *Config) {
	queues, topics := p.objects(ns, "Queues"), p.objects(ns, "Topics")
	if n := len(queues) + len(topics); n > maxEntities {
		p.fault(ns.at("Queues"), "has %d queues, and there are %d topics; the official emulator takes %d together", len(queues), len(topics), maxEntities)
	}
	seen := map[string]bool{}
	for _, o := range queues {
		q := p.queue(o)
		p.unique(seen, o, q.Name)
		c.Queues = append(c.Queues, q)
	}
	for _, o := range topics {
		t := p.topic(o)
		p.unique(seen, o, t.Name)
		c.Topics = append(c.Topics, t)
	}
}

// targets faults what is forwarded to nowhere.
func (p *configReader) targets(ns object, c Config) {
	known := c.targets()
	check := func(at string, q Queue) {
		for _, f := range q.forwardFaults(known) {
			p.fault(at+".Properties", "%s", f)
		}
	}
	for i, q := range c.Queues {
		check(fmt.Sprintf("%s[%d]", ns.at("Queues"), i), q)
	}
	for i, t := range c.Topics {
		for j, s := range t.Subscriptions {
			check(fmt.Sprintf("%s[%d].Subscriptions[%d]", ns.at("Topics"), i, j), s.Queue)
		}
	}
}

// unique faults a name that was used before.
func (p *configReader) unique(seen map[string]bool, o object, name string) {
	if seen[lower(name)] {
		p.fault(o.at("Name"), "%q is used twice (names do not depend on case)", name)
	}
	seen[lower(name)] = true
}

// properties returns the object of that name, which may be missing, with only known keys.
func (p *configReader) properties(o object, known ...string) object {
	props := object{path: o.at("Properties"), v: p.asObject(o.at("Properties"), o.v["Properties"])}
	p.known(props, known...)
	return props
}

func (p *configReader) queue(o object) Queue {
	p.known(o, "Name", "Properties")
	props := p.properties(o, "DeadLetteringOnMessageExpiration", "DefaultMessageTimeToLive", "DuplicateDetectionHistoryTimeWindow",
		"ForwardDeadLetteredMessagesTo", "ForwardTo", "LockDuration", "MaxDeliveryCount", "RequiresDuplicateDetection", "RequiresSession")
	q := p.receivable(props)
	q.Name = p.name(o)
	q.RequiresDuplicateDetection = p.flag(props, "RequiresDuplicateDetection")
	q.DuplicateDetectionHistoryTimeWindow = p.window(props)
	return q
}

func (p *configReader) name(o object) string {
	name := p.text(o, "Name")
	if !validName(name) {
		p.fault(o.at("Name"), "%q: %s", name, nameRule)
	}
	return name
}

// receivable reads what queues and subscriptions have in common.
func (p *configReader) receivable(props object) Queue {
	q := Queue{
		DeadLetteringOnMessageExpiration: p.flag(props, "DeadLetteringOnMessageExpiration"),
		DefaultMessageTimeToLive:         p.life(props),
		LockDuration:                     p.duration(props, "LockDuration", time.Minute, limits{5 * time.Second, maxLockDuration}),
		MaxDeliveryCount:                 p.count(props, "MaxDeliveryCount", 10, 10),
		RequiresSession:                  p.flag(props, "RequiresSession"),
		ForwardTo:                        p.text(props, "ForwardTo"),
		ForwardDeadLetteredMessagesTo:    p.text(props, "ForwardDeadLetteredMessagesTo"),
	}
	return q
}

func (p *configReader) life(props object) time.Duration {
	return p.duration(props, "DefaultMessageTimeToLive", time.Hour, limits{5 * time.Minute, time.Hour})
}

func (p *configReader) window(props object) time.Duration {
	return p.duration(props, "DuplicateDetectionHistoryTimeWindow", emulatorWindow, limits{5 * time.Second, 5 * time.Minute})
}
