package servicebus

import "encoding/json"

// rule reads a rule of the official emulator's configuration. Its expressions are looked at by [newRules].
func (p *configReader) rule(o object) Rule {
	p.known(o, "Name", "Properties")
	props := p.properties(o, "Action", "CorrelationFilter", "FilterType", "SqlFilter")
	r := Rule{Name: p.text(o, "Name"), Action: p.expression(props, "Action")}
	switch kind := p.text(props, "FilterType"); kind {
	case "Correlation":
		r.Filter = p.correlation(object{path: props.at("CorrelationFilter"), v: p.asObject(props.at("CorrelationFilter"), props.v["CorrelationFilter"])})
	case "Sql":
		r.Filter = SQLFilter{Expression: p.expression(props, "SqlFilter")}
	default:
		p.fault(props.at("FilterType"), "%q is neither Correlation nor Sql", kind)
	}
	return r
}

// expression reads the SqlExpression of an object that may be missing.
func (p *configReader) expression(o object, key string) string {
	inner := object{path: o.at(key), v: p.asObject(o.at(key), o.v[key])}
	p.known(inner, "SqlExpression", "RequiresPreprocessing", "CompatibilityLevel")
	return p.text(inner, "SqlExpression")
}

func (p *configReader) correlation(o object) CorrelationFilter {
	p.known(o, "ContentType", "CorrelationId", "Label", "MessageId", "Properties", "ReplyTo", "ReplyToSessionId", "SessionId", "To")
	f := CorrelationFilter{
		ContentType: p.text(o, "ContentType"), CorrelationID: p.text(o, "CorrelationId"), MessageID: p.text(o, "MessageId"),
		ReplyTo: p.text(o, "ReplyTo"), ReplyToSessionID: p.text(o, "ReplyToSessionId"), SessionID: p.text(o, "SessionId"),
		Subject: p.text(o, "Label"), To: p.text(o, "To"),
	}
	for name, value := range p.asObject(o.at("Properties"), o.v["Properties"]) {
		if f.Properties == nil {
			f.Properties = map[string]any{}
		}
		switch value := value.(type) {
		case string, bool:
			f.Properties[name] = value
		case json.Number:
			f.Properties[name] = numberOf(value)
		default:
			p.fault(o.at("Properties")+"."+name, "must be a string, a number, true or false")
		}
	}
	return f
}

// numberOf returns a whole number as an int64, and another one as a float64.
func numberOf(n json.Number) any {
	if i, err := n.Int64(); err == nil {
		return i
	}
	f, _ := n.Float64() // it is a number of JSON
	return f
}
