package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/orderworker/orderworker/worker/fingerprint"
)

// checkEffects finds what no store could carry out, naming the field and the fix. What a container cannot hold is for the
// store to say.
func checkEffects(e Effects) error {
	switch {
	case e.ignored != "" && (len(e.Documents) > 0 || len(e.Changes) > 0 || len(e.Messages) > 0 || e.Version != nil || len(e.Outcome) > 0):
		return errors.New("an Ignore together with other effects. Return one or the other")
	case e.ignored != "":
		return nil
	case len(e.Documents) == 0 && len(e.Changes) == 0 && len(e.Messages) == 0 && !e.resolved:
		return errors.New("no effect and no error. Return at least one document, change or message, Ignore the message, or Reject it")
	case e.withoutRecord && len(e.Messages) > 0:
		return errors.New("messages WithoutRecord. What is repeated would send them again: keep the record")
	case e.withoutRecord && len(e.Documents) > 0:
		return errors.New("documents WithoutRecord. A create that is repeated fails: use Upsert, or keep the record")
	case e.withoutRecord && len(e.Outcome) > 0:
		return errors.New("an Outcome WithoutRecord. It is kept in the record: leave one of them out")
	}
	if len(e.Documents) > 0 {
		if err := CheckDocuments(e.Documents); err != nil {
			return err
		}
	}
	if err := checkChanges(e); err != nil {
		return err
	}
	if err := e.checkVersion(); err != nil {
		return err
	}
	if len(e.Outcome) > MaxOutcome || len(e.Outcome) > 0 && !json.Valid(e.Outcome) {
		return fmt.Errorf("an Outcome of %d bytes. Give one JSON value of at most %d bytes", len(e.Outcome), MaxOutcome)
	}
	return nil
}

func checkChanges(e Effects) error {
	seen := map[string]bool{}
	for i, c := range e.Changes {
		if err := checkChange(c, e.withoutRecord); err != nil {
			return fmt.Errorf("a change, Changes[%d] (%s of %+q), that %w", i, c.Kind, clip(c.ID, maxReason), err)
		}
		if seen[c.ID] {
			return fmt.Errorf("a second change of %+q, Changes[%d]. Make one change of the two", clip(c.ID, maxReason), i)
		}
		seen[c.ID] = true
	}
	return nil
}

// checkChange returns the rest of a sentence that begins with the change.
func checkChange(c Change, withoutRecord bool) error {
	if err := checkChangeID(c.ID); err != nil {
		return err
	}
	switch c.Kind {
	case ChangeUpsert, ChangeReplace:
		switch {
		case !object(c.Content):
			return errors.New("has Content that is not one JSON object")
		case c.Kind == ChangeReplace && c.ETag == "":
			return errors.New("has no ETag. Give that of the document as it was read, or use Upsert to write over whatever is stored")
		case c.ETag == "*":
			return errors.New("has the ETag *, which every document has. Give that of the document as it was read, or use Upsert")
		case c.TTL < 0 || c.TTL%time.Second != 0:
			return fmt.Errorf("has the TTL %v, which is not a number of whole seconds", c.TTL)
		}
	case ChangePatch:
		return checkPatch(c, withoutRecord)
	case ChangeDelete:
	default:
		return errors.New("has no known Kind. Make it with Upsert, Replace, Patch or Delete")
	}
	if c.Condition != "" {
		return errors.New("has a Condition, which only a patch can have. Use an ETag")
	}
	return nil
}

// checkChangeID refuses the ids of inbox records, parts and journal entries, which only the store writes.
func checkChangeID(id string) error {
	switch {
	case id == "":
		return errors.New("has no ID. Name the document")
	case strings.HasPrefix(id, "~"), strings.Contains(id, "~part"):
		return errors.New("has an ID that belongs to the inbox records and parts of messages. Change documents of your own")
	}
	return nil
}

func checkPatch(c Change, withoutRecord bool) error {
	if n := len(c.Operations); n == 0 || n > MaxPatchOperations {
		return fmt.Errorf("has %d Operations. Cosmos DB takes 1 to %d", n, MaxPatchOperations)
	}
	for i, o := range c.Operations {
		if err := checkPatchOperation(o, withoutRecord); err != nil {
			return fmt.Errorf("has Operations[%d] (%s %+q) %w", i, o.Kind, clip(o.Path, maxReason), err)
		}
	}
	return checkCondition(c.Condition)
}

// storeMembers are the members of a document that only the store and the service write.
var storeMembers = [...]string{"id", "request", "exactNumbers", "_etag", "_rid", "_self", "_ts", "_attachments"}

func checkPatchOperation(o PatchOperation, withoutRecord bool) error {
	first, _, _ := strings.Cut(strings.TrimPrefix(o.Path, "/"), "/")
	if !strings.HasPrefix(o.Path, "/") || o.Path == "/" || strings.Contains(o.Path, "//") || strings.HasSuffix(o.Path, "/") {
		return errors.New("whose Path is no JSON pointer such as /order/status")
	}
	for _, own := range storeMembers {
		if first == own {
			return fmt.Errorf("on /%s, which the store writes. Leave it alone", own)
		}
	}
	switch o.Kind {
	case PatchSet, PatchAdd, PatchReplace:
		if o.Value == nil { // the client leaves it out, and the service answers 400
			return errors.New("without a Value. Use Remove, or a value that is not null")
		}
		if withoutRecord && inArray(o.Path) {
			return errors.New("of an array element WithoutRecord. What is repeated would be done twice: keep the record")
		}
	case PatchRemove:
		if withoutRecord && inArray(o.Path) {
			return errors.New("of an array element WithoutRecord. What is repeated would be done twice: keep the record")
		}
	case PatchIncrement:
		if _, whole := o.Value.(int64); !whole { // azcosmos takes no other
			return errors.New("whose Value is no int64")
		}
		if withoutRecord {
			return errors.New("WithoutRecord. What is repeated would be counted twice: keep the record")
		}
	default:
		return errors.New("of no known Kind. Use Set, Add, Remove or Increment")
	}
	return nil
}

// inArray reports whether a path may name an element of an array: then a repetition inserts, appends or removes another one.
func inArray(path string) bool {
	last := path[strings.LastIndexByte(path, '/')+1:]
	return last == "-" || last != "" && strings.Trim(last, "0123456789") == ""
}

// conditionPrefix begins every filter predicate of a patch.
const conditionPrefix = "from c where "

// checkCondition refuses what azcosmos would splice into the request without escaping it.
func checkCondition(predicate string) error {
	switch {
	case predicate == "":
		return nil
	case len(predicate) <= len(conditionPrefix) || !strings.EqualFold(predicate[:len(conditionPrefix)], conditionPrefix):
		return fmt.Errorf("has a Condition that does not begin with %q", conditionPrefix)
	case strings.ContainsFunc(predicate, func(r rune) bool { return r == '"' || r == '\\' || r < ' ' }):
		return errors.New("has a Condition with a double quote, a backslash or a control character. Write texts in single quotes, and nothing that a sender chose")
	}
	return nil
}

// maxVersion is the largest version: up to it a double holds every whole number.
const maxVersion = 1<<53 - 1

func (e Effects) checkVersion() error {
	v := e.Version
	switch {
	case v == nil:
		return nil
	case v.Value < 0 || v.Value > maxVersion:
		return fmt.Errorf("a Version.Value of %d. Give a whole number from 0 to 2^53-1", v.Value)
	case !plainPointer(v.Path):
		return fmt.Errorf("a Version.Path of %+q. Give a JSON pointer of members made of letters, digits and underscores, such as /version", clip(v.Path, maxReason))
	}
	for _, c := range e.Changes {
		if c.ID != v.Document {
			continue
		}
		if c.Kind == ChangeDelete || c.Kind == ChangeReplace {
			return fmt.Errorf("a Version of %+q with a %s of it. The ETag decides there already: use Patch or Upsert, or leave the Version out", v.Document, c.Kind)
		}
		if c.Kind == ChangeUpsert && c.ETag != "" {
			return fmt.Errorf("a Version of %+q with an ETag of its upsert. One of them decides: leave the other out", v.Document)
		}
		if c.Kind == ChangeUpsert && !hasVersion(c.Content, *v) {
			return fmt.Errorf("a Version of %+q whose content has no number %d at %s. The next message is compared with it: set it there", v.Document, v.Value, v.Path)
		}
		return nil
	}
	return fmt.Errorf("a Version.Document %+q, which none of Changes changes. Name the document of a change", clip(v.Document, maxReason))
}

// hasVersion reports whether the content of an upsert has the version, as a number.
func hasVersion(content []byte, v Version) bool {
	raw, _ := fingerprint.Extract(content, v.Path)
	n, ok := fingerprint.WholeNumber(raw)
	return ok && n == strconv.FormatInt(v.Value, 10)
}

// plainPointer reports whether a pointer can stand in a query: it is written into one.
func plainPointer(path string) bool {
	rest, ok := strings.CutPrefix(path, "/")
	for name := range strings.SplitSeq(rest, "/") {
		ok = ok && name != ""
		for i, c := range []byte(name) {
			letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
			ok = ok && (letter || i > 0 && '0' <= c && c <= '9')
		}
	}
	return ok
}
