package servicebus

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// putRuleLocked creates a rule, or replaces one.
func (b *Broker) putRuleLocked(a adminRequest) adminReply {
	e := b.namespace.entities[a.path()]
	if e == nil || a.update && e.rules.find(a.rule) < 0 {
		return a.notFound()
	}
	r, err := readRule(a.description.Elements, a.rule)
	if err == nil {
		_, err = newRule(r, time.Now())
	}
	if err != nil {
		return adminError(http.StatusBadRequest, "SubCode=40000. %v", err)
	}
	if a.update {
		_ = e.removeRuleLocked(a.rule) // it exists
	}
	if err := e.addRuleLocked(r); err != nil {
		return adminError(http.StatusConflict, "SubCode=40900. Conflict. %s", err.Description)
	}
	status := http.StatusCreated
	if a.update {
		status = http.StatusOK
	}
	return adminReply{status: status, body: b.ruleEntry(e, e.rules[e.rules.find(a.rule)])}
}

// readRule reads a rule from the elements of its description.
func readRule(list []element, name string) (Rule, error) {
	r := Rule{Name: name}
	if given := childText(list, "Name"); given != "" {
		r.Name = given
	}
	var err error
	if f := child(list, "Filter"); f != nil {
		if r.Filter, err = readFilter(f); err != nil {
			return r, err
		}
	}
	if a := child(list, "Action"); a != nil && a.Type != "EmptyRuleAction" {
		if a.Type != "SqlRuleAction" {
			return r, fmt.Errorf("an action of type %q is not known", a.Type)
		}
		r.Action = childText(a.Elements, "SqlExpression")
		r.ActionParameters, err = readValues(child(a.Elements, "Parameters"))
	}
	return r, err
}

func readFilter(f *element) (Filter, error) {
	switch f.Type {
	case "TrueFilter":
		return TrueFilter{}, nil
	case "FalseFilter":
		return FalseFilter{}, nil
	case "SqlFilter":
		parameters, err := readValues(child(f.Elements, "Parameters"))
		return SQLFilter{Expression: childText(f.Elements, "SqlExpression"), Parameters: parameters}, err
	case "CorrelationFilter":
		properties, err := readValues(child(f.Elements, "Properties"))
		text := func(name string) string { return childText(f.Elements, name) }
		return CorrelationFilter{
			ContentType: text("ContentType"), CorrelationID: text("CorrelationId"), MessageID: text("MessageId"), ReplyTo: text("ReplyTo"),
			ReplyToSessionID: text("ReplyToSessionId"), SessionID: text("SessionId"), Subject: text("Label"), To: text("To"), Properties: properties,
		}, err
	}
	return nil, fmt.Errorf("a filter of type %q is not known", f.Type)
}

// readValues reads names with values of the types of XML Schema.
func readValues(list *element) (map[string]any, error) {
	if list == nil || len(list.Elements) == 0 {
		return nil, nil
	}
	all := map[string]any{}
	for _, pair := range list.Elements {
		v := child(pair.Elements, "Value")
		if v == nil {
			return nil, fmt.Errorf("the value of %q is missing", childText(pair.Elements, "Key"))
		}
		_, kind, _ := strings.Cut(v.Type, ":")
		value, err := parseValue(kind, v.Text)
		if err != nil {
			return nil, fmt.Errorf("the value of %q: %w", childText(pair.Elements, "Key"), err)
		}
		all[childText(pair.Elements, "Key")] = value
	}
	return all, nil
}

func parseValue(kind, text string) (any, error) {
	switch kind {
	case "string":
		return text, nil
	case "boolean":
		return strconv.ParseBool(text)
	case "double", "float", "decimal":
		return strconv.ParseFloat(text, 64)
	case "int", "long", "short", "byte":
		return strconv.ParseInt(text, 10, 64)
	case "dateTime":
		return time.Parse(time.RFC3339, text)
	}
	return nil, fmt.Errorf("the type %q is not known", kind)
}

// ruleEntry describes a rule.
func (b *Broker) ruleEntry(e *entity, r *rule) string {
	action := `<Action i:type="EmptyRuleAction"></Action>`
	if r.Action != "" {
		action = fmt.Sprintf(`<Action i:type="SqlRuleAction"><SqlExpression>%s</SqlExpression><CompatibilityLevel>20</CompatibilityLevel>%s</Action>`,
			escaped(r.Action), xmlValues("Parameters", r.ActionParameters))
	}
	content := fmt.Sprintf("%s%s<CreatedAt>%s</CreatedAt><Name>%s</Name>", xmlFilter(r.Filter), action, instant(r.created), escaped(r.Name))
	return b.entry(e.cfg.Name+"/Rules/"+r.Name, r.Name, "RuleDescription", content, r.created)
}

func xmlFilter(f Filter) string {
	switch f := f.(type) {
	case SQLFilter:
		return fmt.Sprintf(`<Filter i:type="SqlFilter"><SqlExpression>%s</SqlExpression><CompatibilityLevel>20</CompatibilityLevel>%s</Filter>`,
			escaped(f.Expression), xmlValues("Parameters", f.Parameters))
	case CorrelationFilter:
		var s strings.Builder
		for _, one := range []xmlSetting{
			{"CorrelationId", f.CorrelationID}, {"MessageId", f.MessageID}, {"To", f.To}, {"ReplyTo", f.ReplyTo}, {"Label", f.Subject},
			{"SessionId", f.SessionID}, {"ReplyToSessionId", f.ReplyToSessionID}, {"ContentType", f.ContentType},
		} {
			if one.value != "" {
				fmt.Fprintf(&s, "<%s>%s</%s>", one.name, escaped(one.value), one.name)
			}
		}
		return fmt.Sprintf(`<Filter i:type="CorrelationFilter">%s%s</Filter>`, s.String(), xmlValues("Properties", f.Properties))
	case FalseFilter:
		return `<Filter i:type="FalseFilter"><SqlExpression>1=0</SqlExpression><CompatibilityLevel>20</CompatibilityLevel></Filter>`
	}
	return `<Filter i:type="TrueFilter"><SqlExpression>1=1</SqlExpression><CompatibilityLevel>20</CompatibilityLevel></Filter>`
}

// xmlValues writes names with values, in the order of the names.
func xmlValues(name string, values map[string]any) string {
	var s strings.Builder
	for _, key := range slices.Sorted(maps.Keys(values)) {
		kind, text := xmlValue(values[key])
		fmt.Fprintf(&s, `<KeyValueOfstringanyType><Key>%s</Key><Value i:type="d6p1:%s" xmlns:d6p1="%s">%s</Value></KeyValueOfstringanyType>`,
			escaped(key), kind, xmlSchema, escaped(text))
	}
	if s.Len() == 0 {
		return ""
	}
	return "<" + name + ">" + s.String() + "</" + name + ">"
}

func xmlValue(v any) (kind, text string) {
	switch v := plain(v).(type) {
	case int64:
		return "int", strconv.FormatInt(v, 10) // Go reads no other name of a whole number
	case float64:
		return "double", strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return "boolean", strconv.FormatBool(v)
	case time.Time:
		return "dateTime", instant(v)
	default:
		return "string", fmt.Sprint(v)
	}
}
