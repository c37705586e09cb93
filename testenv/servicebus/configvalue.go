package servicebus

import (
	"encoding/json"
	"time"
)

func (p *configReader) text(o object, key string) string {
	v, ok := o.v[key]
	s, isText := v.(string)
	if ok && !isText && v != nil {
		p.fault(o.at(key), "must be a string")
	}
	return s
}

func (p *configReader) flag(o object, key string) bool {
	v, ok := o.v[key]
	b, isBool := v.(bool)
	if ok && !isBool {
		p.fault(o.at(key), "must be true or false")
	}
	return b
}

func (p *configReader) duration(o object, key string, missing time.Duration, l limits) time.Duration {
	s := p.text(o, key)
	if s == "" {
		return missing
	}
	d, err := parseDuration(s)
	if err != nil {
		p.fault(o.at(key), "%v", err)
		return missing
	}
	if d < l.min || d > l.max {
		p.fault(o.at(key), "%s is not between %v and %v, the limits of the official emulator", s, l.min, l.max)
	}
	return d
}

func (p *configReader) count(o object, key string, missing, most int) int {
	v, ok := o.v[key]
	if !ok {
		return missing
	}
	n, isNumber := v.(json.Number)
	i, err := n.Int64()
	if !isNumber || err != nil || i < 1 || i > int64(most) {
		p.fault(o.at(key), "must be a whole number from 1 to %d", most)
		return missing
	}
	return int(i)
}
