package traffic

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// document is a stored document without what the service adds.
type document map[string]any

// parseDocument reads a document without what the service adds to it.
func parseDocument(text []byte) document {
	var d document
	if json.Unmarshal(text, &d) != nil {
		return nil
	}
	maps.DeleteFunc(d, func(name string, _ any) bool { return strings.HasPrefix(name, "_") })
	return d
}

// apply returns what a command makes of a document, and false when it must not be carried out.
func (c Command) apply(messageID string, before document) (after document, ok bool) {
	if before == nil && c.Do != Project && c.Do != Price {
		return nil, false
	}
	after = maps.Clone(before)
	number := func(member string) float64 { n, _ := before[member].(float64); return n }
	switch c.Do {
	case Debit:
		after["balance"], after["debits"] = number("balance")-float64(c.Amount), number("debits")+1
		return after, number("balance") >= float64(c.Amount)
	case Capture:
		after["status"], after["paid"] = "PAID", float64(c.Amount)
		return after, before["status"] == "NEW"
	case Ship:
		list, _ := before["history"].([]any)
		after["shipped"], after["history"] = number("shipped")+float64(c.Amount), append(slices.Clone(list), messageID)
		return after, true
	case Revise:
		after["version"], after["note"] = float64(c.Amount), c.Note
		return after, true
	case Project:
		return document{"id": c.Entity, "pk": c.Entity, "version": float64(c.Amount), "note": c.Note}, true
	case Price:
		return document{"id": c.Entity, "pk": c.Entity, "do": c.Do, "entity": c.Entity, "amount": float64(c.Amount), "note": c.Note}, true
	}
	return nil, false
}
